//! Cases about lists and search.

use galley_domain::{
    document::Document,
    id::{AccountId, TemplateId},
    rulebook::{Category, V1},
    template::{Review, Status, Template, edit::Edit, lifecycle::Trigger, search_terms},
};
use galley_store::{ListQuery, NameFilter, NewTemplate, TemplateChange};
use galley_test_macros::on_both_databases;

use super::fixture::{Shared, account, change, create, done, new, noon};

pub(crate) fn all(account: AccountId) -> ListQuery {
    ListQuery::new(account, 100)
}

pub(crate) async fn names(store: &Shared, query: ListQuery) -> Vec<String> {
    let page = store.list(query).await.unwrap();
    page.templates.iter().map(|it| it.template.name().to_owned()).collect()
}

/// The ids of all pages, read forwards.
pub(crate) async fn read_all(store: &Shared, query: ListQuery) -> Vec<TemplateId> {
    let (mut ids, mut after) = (Vec::new(), query.after);
    loop {
        let page = store.list(ListQuery { after, ..query.clone() }).await.unwrap();
        assert!(page.templates.len() <= query.limit);
        ids.extend(page.templates.iter().map(|it| it.id));
        if !page.has_next {
            return ids;
        }
        assert_eq!(page.templates.len(), query.limit, "only the last page may be short");
        after = ids.last().copied();
    }
}

/// A template with this language, category and body.
pub(crate) fn template_with(
    account: AccountId,
    name: &str,
    language: &str,
    category: &str,
    body: &str,
) -> NewTemplate {
    let document = format!(
        r#"{{"name":"{name}","language":"{language}","category":"{category}",
        "allow_category_change":true,"components":[{{"type":"BODY","text":"{body}"}}]}}"#
    );
    let template = Template::read(&Document::parse(document.as_bytes()).unwrap(), &V1).unwrap();
    NewTemplate { template, ..new(account, name) }
}

/// Thirty templates in two languages, three categories and two statuses.
pub(crate) async fn thirty(store: &Shared, account: AccountId) -> Vec<TemplateId> {
    let mut ids = Vec::new();
    for index in 0..30 {
        let language = ["en_US", "pt_BR"][index % 2];
        let category = ["MARKETING", "UTILITY", "AUTHENTICATION"][index % 3];
        let review = if index % 5 == 0 { Review::Manual } else { Review::Auto };
        let new = template_with(account, &format!("t{index}"), language, category, "b");
        ids.push(create(store, NewTemplate { review, ..new }).await);
    }
    ids.reverse();
    ids
}

#[on_both_databases]
async fn a_list_contains_each_template_once_newest_first(store: &Shared) {
    let (mine, theirs) = (account(store, "a").await, account(store, "b").await);
    assert_eq!(store.list(all(mine)).await.unwrap().templates, []);
    let ids = thirty(store, mine).await;
    create(store, new(theirs, "theirs")).await;
    for limit in [1, 7, 29, 30, 31] {
        assert_eq!(
            read_all(store, ListQuery { limit, ..all(mine) }).await,
            ids,
            "pages of {limit}"
        );
    }
    let page = store.list(ListQuery { limit: 1, ..all(mine) }).await.unwrap();
    assert_eq!(Some(&page.templates[0]), store.template(mine, ids[0]).await.unwrap().as_deref());
}

#[on_both_databases]
async fn filters_work_alone_and_combined(store: &Shared) {
    let account = account(store, "a").await;
    thirty(store, account).await;
    let all_templates = store.list(all(account)).await.unwrap().templates;
    let statuses = [None, Some(Status::Pending), Some(Status::Approved), Some(Status::Paused)];
    let categories = [None, Some(Category::Utility), Some(Category::Authentication)];
    let languages = [None, Some("pt_BR"), Some("de_DE")];
    for status in statuses {
        for category in categories {
            for language in languages {
                let expected: Vec<TemplateId> = all_templates
                    .iter()
                    .filter(|it| status.is_none_or(|status| it.state.status() == status))
                    .filter(|it| category.is_none_or(|wanted| it.template.category() == wanted))
                    .filter(|it| language.is_none_or(|wanted| it.template.language() == wanted))
                    .map(|it| it.id)
                    .collect();
                let query = ListQuery {
                    statuses: status.into_iter().collect(),
                    categories: category.into_iter().collect(),
                    languages: language.into_iter().map(str::to_owned).collect(),
                    limit: 4,
                    ..all(account)
                };
                assert_eq!(read_all(store, query.clone()).await, expected, "{query:?}");
            }
        }
    }
}

#[on_both_databases]
async fn a_unique_key_matches_only_in_its_account(store: &Shared) {
    let (mine, theirs) = (account(store, "a").await, account(store, "b").await);
    let id = create(store, new(mine, "hello")).await;
    let named = |account, name: &str| ListQuery {
        name: Some(NameFilter::UniqueKey(name.to_owned())),
        ..all(account)
    };
    assert_eq!(names(store, named(mine, "hello")).await, ["hello"]);
    assert_eq!(names(store, named(mine, "hell")).await, [""; 0]);
    assert_eq!(names(store, named(theirs, "hello")).await, [""; 0]);
    let later = ListQuery { after: Some(id), ..named(mine, "hello") };
    assert_eq!(names(store, later).await, [""; 0]);
    let pending = ListQuery { statuses: vec![Status::Pending], ..named(mine, "hello") };
    assert_eq!(names(store, pending).await, [""; 0]);
}

#[on_both_databases]
async fn a_list_reflects_every_change_immediately(store: &Shared) {
    let account = account(store, "a").await;
    let id = create(store, new(account, "hello")).await;
    let paused = ListQuery { statuses: vec![Status::Paused], ..all(account) };
    let approved = ListQuery { statuses: vec![Status::Approved], ..all(account) };
    assert_eq!(names(store, approved.clone()).await, ["hello"]);
    done(store.review_template(change(account, id), Trigger::Pause, None).await.unwrap());
    assert_eq!(names(store, paused.clone()).await, ["hello"]);
    assert_eq!(names(store, approved).await, [""; 0]);
    let edit = Edit::Replace { content: None, category: Some(Category::Marketing) };
    done(store.edit_template(change(account, id), edit).await.unwrap());
    let marketing = ListQuery { categories: vec![Category::Marketing], ..paused };
    assert_eq!(names(store, marketing.clone()).await, ["hello"]);
    done(store.delete_template(change(account, id)).await.unwrap());
    assert_eq!(names(store, marketing).await, [""; 0]);
    assert_eq!(names(store, all(account)).await, [""; 0]);
}

#[on_both_databases]
async fn pages_stay_consistent_during_creations_and_deletions(store: &Shared) {
    let account = account(store, "a").await;
    let ids = thirty(store, account).await;
    let first = store.list(ListQuery { limit: 10, ..all(account) }).await.unwrap();
    let after = first.templates.last().map(|it| it.id);
    // Deletes a template of the page, its last one and one of a later page; then creates one.
    for gone in [ids[2], ids[9], ids[15]] {
        done(store.delete_template(change(account, gone)).await.unwrap());
    }
    create(store, new(account, "new")).await;
    let rest = read_all(store, ListQuery { limit: 10, after, ..all(account) }).await;
    let expected: Vec<TemplateId> = ids[10..].iter().copied().filter(|id| *id != ids[15]).collect();
    assert_eq!(rest, expected);
}

#[on_both_databases]
async fn a_list_is_filtered_by_phone_number_and_last_change(store: &Shared) {
    let (mine, theirs) = (account(store, "a").await, account(store, "b").await);
    let phones = [Some("111"), Some("222"), None];
    for index in 0..12 {
        let (name, at) = (format!("t{index}"), noon(1_000 * i64::try_from(index).unwrap()));
        let phone = phones[index % 3].map(str::to_owned);
        create(store, NewTemplate { phone: phone.clone(), at, ..new(mine, &name) }).await;
        create(store, NewTemplate { phone, at, ..new(theirs, &format!("{name}_theirs")) }).await;
    }
    // A change moves the oldest one to the end.
    let oldest = store.list(all(mine)).await.unwrap().templates.last().unwrap().id;
    let change = TemplateChange { at: noon(60_000), ..change(mine, oldest) };
    done(store.review_template(change, Trigger::Pause, None).await.unwrap());
    update_index(store).await;
    let everything = store.list(all(mine)).await.unwrap().templates;
    let microsecond = jiff::SignedDuration::from_micros(1);
    let from = |at| (Some(at), None);
    let before = |at| (None, Some(at));
    for (updated_from, updated_before) in [
        (None, None),
        from(noon(5_000)),
        from(noon(5_000) + microsecond),
        before(noon(5_000)),
        before(noon(5_000) + microsecond),
        (Some(noon(3_000)), Some(noon(9_000))),
        from(noon(11_001)),
        from(noon(60_001)),
        (Some(noon(9_000)), Some(noon(3_000))),
    ] {
        for phones in [&[][..], &["111"], &["222", "111"], &["333"], &["11"]] {
            let expected: Vec<TemplateId> = everything
                .iter()
                .filter(|it| updated_from.is_none_or(|from| from <= it.updated_at))
                .filter(|it| updated_before.is_none_or(|before| it.updated_at < before))
                .filter(|it| {
                    phones.is_empty() || it.phone.as_ref().is_some_and(|it| phones.contains(&&**it))
                })
                .map(|it| it.id)
                .collect();
            let query = ListQuery {
                phones: phones.iter().map(|it| (*it).to_owned()).collect(),
                updated_from,
                updated_before,
                limit: 2,
                ..all(mine)
            };
            let searched = ListQuery { words: search_terms::terms("t"), ..query.clone() };
            let approved = ListQuery { statuses: vec![Status::Approved], ..query.clone() };
            for query in [query, searched] {
                assert_eq!(read_all(store, query.clone()).await, expected, "{query:?}");
                let count = store.count_templates(query.clone()).await.unwrap();
                assert_eq!(count, expected.len() as u64, "{query:?}");
            }
            let expected: Vec<_> = expected.into_iter().filter(|id| *id != oldest).collect();
            assert_eq!(read_all(store, approved.clone()).await, expected, "{approved:?}");
        }
    }
    let name = Some(NameFilter::UniqueKey("t1".to_owned()));
    let named =
        |phone: &str| ListQuery { name: name.clone(), phones: vec![phone.to_owned()], ..all(mine) };
    assert_eq!(names(store, named("222")).await, ["t1"]);
    assert_eq!(names(store, named("111")).await, [""; 0]);
}

/// Updates the search index completely.
pub(crate) async fn update_index(store: &Shared) {
    while store.update_search_index().await.unwrap().has_more {}
}

pub(crate) fn search(account: AccountId, q: &str) -> ListQuery {
    ListQuery { words: search_terms::terms(q), ..all(account) }
}

#[on_both_databases]
async fn search_terms_match_word_prefixes_in_name_and_texts(store: &Shared) {
    let (mine, theirs) = (account(store, "a").await, account(store, "b").await);
    create(
        store,
        template_with(mine, "order_shipped", "en_US", "UTILITY", "Your parcel is on its way"),
    )
    .await;
    create(store, template_with(mine, "Ordering", "de_DE", "UTILITY", "Grüße aus der Straße"))
        .await;
    create(store, template_with(theirs, "order_theirs", "en_US", "UTILITY", "parcel")).await;
    update_index(store).await;
    for (q, expected) in [
        ("order", &["Ordering", "order_shipped"][..]),
        ("ORDER", &["Ordering", "order_shipped"]),
        ("ordering", &["Ordering"]),
        ("ship parc", &["order_shipped"]),
        ("parcel grüße", &[]),
        ("STRASSE", &["Ordering"]),
        ("g", &["Ordering"]),
        ("theirs", &[]),
        ("utility", &[]),
        ("arcel", &[]),
    ] {
        assert_eq!(names(store, search(mine, q)).await, expected, "{q}");
    }
    assert_eq!(names(store, search(theirs, "order")).await, ["order_theirs"]);
}

#[on_both_databases]
async fn a_search_supports_filters_and_pages(store: &Shared) {
    let account = account(store, "a").await;
    for index in 0..120 {
        let language = ["en_US", "pt_BR"][index % 2];
        // More distinct words than one prefix query expands, and a word that all templates share.
        let name = format!("promo{index}");
        create(store, template_with(account, &name, language, "UTILITY", "everything")).await;
    }
    update_index(store).await;
    let all_templates = read_all(store, all(account)).await;
    for q in ["promo", "every", "e p", "everything"] {
        let query = ListQuery { limit: 50, ..search(account, q) };
        assert_eq!(read_all(store, query).await, all_templates, "{q}");
    }
    let brazilian = ListQuery { languages: vec!["pt_BR".to_owned()], ..all(account) };
    let expected = read_all(store, brazilian.clone()).await;
    assert_eq!(expected.len(), 60);
    let query = ListQuery { words: search_terms::terms("promo"), limit: 7, ..brazilian };
    assert_eq!(read_all(store, query).await, expected);
}

#[on_both_databases]
async fn a_search_reflects_edits_transitions_and_deletions(store: &Shared) {
    let account = account(store, "a").await;
    let id = create(store, template_with(account, "one", "en_US", "UTILITY", "before")).await;
    let other = create(store, template_with(account, "two", "en_US", "UTILITY", "before")).await;
    update_index(store).await;
    let content = Some(r#"{"components":[{"type":"BODY","text":"afterwards"}]}"#.to_owned());
    let edit = Edit::Replace { content, category: None };
    done(store.edit_template(change(account, id), edit).await.unwrap());
    done(store.review_template(change(account, id), Trigger::Reject, None).await.unwrap());
    done(store.delete_template(change(account, other)).await.unwrap());
    assert_eq!(
        names(store, search(account, "two")).await,
        [""; 0],
        "a deleted template disappears immediately"
    );
    update_index(store).await;
    assert_eq!(names(store, search(account, "before")).await, [""; 0]);
    let rejected = ListQuery { statuses: vec![Status::Rejected], ..search(account, "after") };
    assert_eq!(names(store, rejected).await, ["one"]);
    let done = store.update_search_index().await.unwrap();
    assert_eq!((done.processed, done.has_more), (0, false));
}
