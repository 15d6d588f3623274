//! Cases about pages of large templates: they end before their content exceeds a mebibyte.

use galley_domain::{
    id::{AccountId, TemplateId},
    rulebook::Category::Utility,
    template::edit::Edit,
};
use galley_store::{ListQuery, NameFilter, Page, TranslationGroup};

use super::{
    fixture::{Shared, account, change, create, done, noon, translation},
    lists::{all, search, update_index},
};
use galley_test_macros::on_both_databases;

const MAX_BYTES: usize = 1_024 * 1_024;

const LANGUAGES: [&str; 8] =
    ["en_US", "en_GB", "de_DE", "fr_FR", "pt_BR", "es_MX", "es_ES", "it_IT"];

/// Content of this many bytes, with the words `large` and `size`.
fn content(bytes: usize) -> String {
    let frame = r#"{"components":[{"type":"BODY","text":"large size "}]}"#;
    let padding = "x".repeat(bytes - frame.len());
    frame.replace("size ", &format!("size {padding}"))
}

async fn edit(store: &Shared, account: AccountId, id: TemplateId, bytes: usize) {
    let edit = Edit::Replace { content: Some(content(bytes)), category: None };
    done(store.edit_template(change(account, id), edit).await.unwrap());
}

/// Translations of one name, with these sizes of content, the first one oldest.
async fn with_sizes(store: &Shared, account: AccountId, sizes: &[usize]) -> Vec<TemplateId> {
    let mut ids = Vec::new();
    for (bytes, language) in sizes.iter().zip(LANGUAGES) {
        let id = create(store, translation(account, "many", language, Utility)).await;
        edit(store, account, id, *bytes).await;
        ids.push(id);
    }
    ids
}

fn ids(page: &Page) -> Vec<TemplateId> {
    page.templates.iter().map(|it| it.id).collect()
}

/// The sizes of content on each page, in list order, read forwards. Checks that reading backwards
/// from the last template returns the others in the same order.
async fn page_sizes(store: &Shared, query: ListQuery) -> Vec<Vec<usize>> {
    let (mut sizes, mut all, mut after) = (Vec::new(), Vec::new(), None);
    loop {
        let page = store.list(ListQuery { after, ..query.clone() }).await.unwrap();
        sizes.push(page.templates.iter().map(|it| it.template.content().len()).collect());
        all.extend(ids(&page));
        if !page.has_next {
            break;
        }
        assert!(!page.templates.is_empty(), "a page before the last one is not empty");
        after = all.last().copied();
    }
    let mut backwards: Vec<TemplateId> = all.last().copied().into_iter().collect();
    while let Some(before) = backwards.first().copied() {
        let before = Some(before);
        let page = store.list(ListQuery { before, ..query.clone() }).await.unwrap();
        let bytes: usize = page.templates.iter().map(|it| it.template.content().len()).sum();
        assert!(bytes <= MAX_BYTES || page.templates.len() == 1, "{bytes} bytes");
        assert!(!page.templates.is_empty() || !page.has_previous);
        backwards.splice(0..0, ids(&page));
        if !page.has_previous {
            break;
        }
    }
    assert_eq!(backwards, all, "{query:?}");
    sizes
}

#[on_both_databases]
async fn a_page_of_large_templates_ends_before_its_content_exceeds_a_mebibyte(store: &Shared) {
    const KIB: usize = 1_024;
    let account = account(store, "a").await;
    let sizes = [256 * KIB, 300 * KIB, 2 * MAX_BYTES, 100, 512 * KIB, 512 * KIB, 100, MAX_BYTES];
    with_sizes(store, account, &sizes).await;
    update_index(store).await;
    let expected = [
        vec![MAX_BYTES],
        vec![100, 512 * KIB],
        vec![512 * KIB, 100],
        vec![2 * MAX_BYTES],
        vec![300 * KIB, 256 * KIB],
    ];
    let name = Some(NameFilter::TranslationGroup(TranslationGroup::of(account, "many")));
    for query in [
        all(account),
        ListQuery { updated_from: Some(noon(0)), ..all(account) },
        ListQuery { name: name.clone(), ..all(account) },
        ListQuery { name, ..search(account, "large") },
        search(account, "large"),
        ListQuery { updated_from: Some(noon(0)), ..search(account, "large") },
    ] {
        assert_eq!(page_sizes(store, query.clone()).await, expected, "{query:?}");
        assert_eq!(store.count_templates(query.clone()).await.unwrap(), 8, "{query:?}");
        let one_by_one = page_sizes(store, ListQuery { limit: 1, ..query }).await;
        assert_eq!(one_by_one.len(), 8);
    }
}

#[on_both_databases]
async fn templates_that_do_not_match_take_no_space_on_a_page(store: &Shared) {
    let account = account(store, "a").await;
    let ids = with_sizes(store, account, &[MAX_BYTES; 5]).await;
    let other = Edit::Replace {
        content: Some(r#"{"components":[{"type":"BODY","text":"other"}]}"#.to_owned()),
        category: None,
    };
    for id in [ids[0], ids[4]] {
        done(store.edit_template(change(account, id), other.clone()).await.unwrap());
    }
    update_index(store).await;
    let name = Some(NameFilter::TranslationGroup(TranslationGroup::of(account, "many")));
    let page = store.list(ListQuery { name, ..search(account, "other") }).await.unwrap();
    assert_eq!(page.templates.iter().map(|it| it.id).collect::<Vec<_>>(), [ids[4], ids[0]]);
    assert!(!page.has_next);
}
