//! Cases about lists: filters with several values, backward pages and counts.

use galley_domain::{
    id::{AccountId, TemplateId},
    rulebook::Category::{self, Authentication, Marketing, Utility},
    template::{Review, Status, edit::Edit, lifecycle::Trigger, search_terms},
};
use galley_store::{
    AppendOutcome, LanguageSummary, ListOrder, ListQuery, NameFilter, NewTemplate, Page,
    StoredTemplate, TemplateChange, TranslationGroup,
};
use galley_test_macros::on_both_databases;

use super::{
    fixture::{Shared, account, change, create, done, new, noon, translation},
    lists::{all, names, read_all, search, template_with, thirty, update_index},
};

fn ids(page: &Page) -> Vec<TemplateId> {
    page.templates.iter().map(|it| it.id).collect()
}

/// Reads a list forwards to its end and backwards to its start. Checks that both directions return
/// the same templates and that every page reports correctly whether there are more on either side,
/// in both orders.
async fn read_both_ways(store: &Shared, query: ListQuery) {
    let mut expected = read_all(store, query.clone()).await;
    read_in_order(store, query.clone(), &expected).await;
    expected.reverse();
    let query = ListQuery { order: ListOrder::OldestFirst, ..query };
    assert_eq!(read_all(store, query.clone()).await, expected, "{query:?}");
    read_in_order(store, query, &expected).await;
}

async fn read_in_order(store: &Shared, query: ListQuery, expected: &[TemplateId]) {
    let query = ListQuery { check_previous: true, ..query };
    let mut forwards: Vec<Page> = Vec::new();
    loop {
        let after = forwards.last().and_then(|page| page.templates.last()).map(|it| it.id);
        let page = store.list(ListQuery { after, ..query.clone() }).await.unwrap();
        assert_eq!(page.has_previous, after.is_some(), "{query:?}");
        forwards.push(page);
        if forwards.last().is_some_and(|page| !page.has_next) {
            break;
        }
    }
    assert_eq!(forwards.iter().flat_map(ids).collect::<Vec<_>>(), expected, "{query:?}");
    let last = forwards.last().and_then(|page| page.templates.last()).map(|it| it.id);
    let (mut before, mut backwards) = (last, Vec::new());
    while let Some(cursor) = before {
        let page = store.list(ListQuery { before, ..query.clone() }).await.unwrap();
        assert!(page.has_next, "the cursor's template follows the page: {query:?}");
        let mut part = ids(&page);
        let is_oldest_first = query.order == ListOrder::OldestFirst;
        let is_sorted = part.is_sorted_by(|one, other| (one < other) == is_oldest_first);
        assert!(is_sorted, "{query:?}: {part:?}");
        assert!(part.len() == query.limit || !page.has_previous, "{part:?}");
        before = part.first().copied().filter(|_| page.has_previous);
        part.extend(backwards.is_empty().then_some(cursor));
        backwards.splice(0..0, part);
    }
    assert_eq!(backwards, expected, "{query:?}");
}

#[on_both_databases]
async fn a_list_reads_the_same_forwards_and_backwards(store: &Shared) {
    let (mine, theirs) = (account(store, "a").await, account(store, "b").await);
    read_both_ways(store, all(mine)).await;
    thirty(store, mine).await;
    thirty_of_a_name(store, theirs).await;
    update_index(store).await;
    for limit in [1, 4, 29, 30, 31] {
        for query in [
            all(mine),
            ListQuery { categories: vec![Marketing, Utility], ..all(mine) },
            ListQuery { languages: vec!["pt_BR".to_owned()], ..all(mine) },
            ListQuery { awaiting_review: true, ..all(mine) },
            search(mine, "t"),
            ListQuery { statuses: vec![Status::Approved], ..search(mine, "t1") },
            ListQuery {
                name: Some(NameFilter::TranslationGroup(TranslationGroup::of(theirs, "hello"))),
                ..all(theirs)
            },
        ] {
            read_both_ways(store, ListQuery { limit, ..query }).await;
        }
    }
}

const REGIONS: [&str; 10] = ["US", "GB", "DE", "FR", "BR", "MX", "ES", "IT", "JP", "IN"];

/// One name in thirty languages.
async fn thirty_of_a_name(store: &Shared, account: AccountId) {
    for language in ["en", "de", "fr"] {
        for region in REGIONS {
            create(store, translation(account, "hello", &format!("{language}_{region}"), Utility))
                .await;
        }
    }
}

#[on_both_databases]
async fn a_cursor_stays_valid_after_its_template_is_deleted(store: &Shared) {
    let account = account(store, "a").await;
    let all_ids = thirty(store, account).await;
    for gone in [0, 15, 29] {
        done(store.delete_template(change(account, all_ids[gone])).await.unwrap());
    }
    let query = ListQuery { limit: 3, check_previous: true, ..all(account) };
    let before = |index: usize| ListQuery { before: Some(all_ids[index]), ..query.clone() };
    let page = store.list(before(15)).await.unwrap();
    assert_eq!(ids(&page), all_ids[12..15]);
    assert!(page.has_next && page.has_previous);
    let page = store.list(before(3)).await.unwrap();
    assert_eq!(ids(&page), all_ids[1..3]);
    assert!(page.has_next && !page.has_previous);
    // No template lies beyond the former newest and oldest one.
    let page = store.list(before(0)).await.unwrap();
    assert_eq!((ids(&page), page.has_next, page.has_previous), (Vec::new(), true, false));
    let after = ListQuery { after: Some(all_ids[29]), ..query.clone() };
    let page = store.list(after).await.unwrap();
    assert_eq!((ids(&page), page.has_next, page.has_previous), (Vec::new(), false, true));
    let first = ListQuery { after: Some(all_ids[0]), ..query.clone() };
    let page = store.list(first.clone()).await.unwrap();
    assert_eq!((ids(&page), page.has_previous), (all_ids[1..4].to_vec(), false));
    // Without `check_previous`, `has_previous` stays false.
    let unchecked = ListQuery { after: Some(all_ids[15]), check_previous: false, ..query };
    assert!(!store.list(unchecked).await.unwrap().has_previous);
}

async fn edit(store: &Shared, change: TemplateChange) {
    let content = r#"{"components":[{"type":"BODY","text":"other word"}]}"#;
    let edit = Edit::Replace { content: Some(content.to_owned()), category: None };
    done(store.edit_template(change, edit).await.unwrap());
}

async fn transition(store: &Shared, change: TemplateChange, trigger: Trigger) {
    done(store.review_template(change, trigger, None).await.unwrap());
}

#[on_both_databases]
async fn a_list_of_templates_that_await_review_includes_paused_ones(store: &Shared) {
    let (mine, theirs) = (account(store, "a").await, account(store, "b").await);
    let pending = |account: AccountId, name: &str| NewTemplate {
        review: Review::Manual,
        ..template_with(account, name, "en_US", "UTILITY", "word")
    };
    create(store, template_with(mine, "approved", "en_US", "UTILITY", "word")).await;
    create(store, pending(mine, "first")).await;
    let paused = create(store, template_with(mine, "paused", "pt_BR", "UTILITY", "word")).await;
    edit(store, change(mine, paused)).await;
    transition(store, change(mine, paused), Trigger::Pause).await;
    let edited = create(store, template_with(mine, "edited", "en_US", "MARKETING", "word")).await;
    edit(store, change(mine, edited)).await;
    let off = create(store, pending(mine, "disabled")).await;
    transition(store, change(mine, off), Trigger::Disable).await;
    let deleted = create(store, pending(mine, "deleted")).await;
    done(store.delete_template(change(mine, deleted)).await.unwrap());
    create(store, pending(theirs, "theirs")).await;
    update_index(store).await;

    let waiting = ListQuery { awaiting_review: true, ..all(mine) };
    let oldest = ListQuery { order: ListOrder::OldestFirst, ..waiting.clone() };
    assert_eq!(names(store, oldest).await, ["first", "paused", "edited"]);
    for (query, expected) in [
        (waiting.clone(), &["edited", "paused", "first"][..]),
        (ListQuery { statuses: vec![Status::Paused], ..waiting.clone() }, &["paused"]),
        (ListQuery { categories: vec![Utility], ..waiting.clone() }, &["paused", "first"]),
        (ListQuery { languages: vec!["pt_BR".to_owned()], ..waiting.clone() }, &["paused"]),
        (ListQuery { updated_before: Some(noon(0)), ..waiting.clone() }, &[]),
        (
            ListQuery { words: vec!["wor".to_owned()], ..waiting.clone() },
            &["edited", "paused", "first"],
        ),
        (
            ListQuery {
                words: vec!["other".to_owned()],
                statuses: vec![Status::Pending],
                ..waiting.clone()
            },
            &["edited"],
        ),
    ] {
        assert_eq!(names(store, query.clone()).await, expected, "{query:?}");
        let count = store.count_templates(query.clone()).await.unwrap();
        assert_eq!(count, expected.len() as u64, "{query:?}");
    }
    transition(store, change(mine, paused), Trigger::Approve).await;
    assert_eq!(names(store, waiting).await, ["edited", "first"]);
}

#[on_both_databases]
async fn the_languages_of_several_names_say_which_match_a_list(store: &Shared) {
    let (mine, theirs) = (account(store, "a").await, account(store, "b").await);
    for (name, language) in [("x", "en_US"), ("y", "en_US"), ("x", "de_DE"), ("z", "en_US")] {
        create(store, translation(mine, name, language, Utility)).await;
    }
    create(store, translation(theirs, "x", "fr_FR", Utility)).await;
    let words = |words: &[&str]| words.iter().map(|&word| word.to_owned()).collect::<Vec<_>>();
    for (query, matching) in [
        (all(mine), &["x de_DE", "y en_US", "x en_US"][..]),
        (ListQuery { languages: words(&["en_US"]), ..all(mine) }, &["y en_US", "x en_US"]),
        (ListQuery { words: words(&["x"]), ..all(mine) }, &["x de_DE", "x en_US"]),
        (ListQuery { awaiting_review: true, ..all(mine) }, &[]),
    ] {
        let names = words(&["x", "y", "unknown"]);
        let found = store.languages(query.clone(), names).await.unwrap();
        let shown = |it: &LanguageSummary| format!("{} {}", it.name, it.language);
        let all: Vec<String> = found.iter().map(shown).collect();
        assert_eq!(all, ["x de_DE", "y en_US", "x en_US"], "{query:?}");
        let matches: Vec<String> = found.iter().filter(|it| it.is_match).map(shown).collect();
        assert_eq!(matches, matching, "{query:?}");
        assert!(found.iter().all(|it| it.state.version == 1 && it.category == Utility));
    }
    assert_eq!(store.languages(all(mine), Vec::new()).await.unwrap(), []);
}

#[on_both_databases]
async fn a_search_compares_the_languages_of_many_names(store: &Shared) {
    let account = account(store, "a").await;
    let names: Vec<String> = (0..25).map(|number| format!("name{number}")).collect();
    let mut ids = Vec::new();
    for name in &names {
        ids.push(create(store, translation(account, name, "en_US", Utility)).await);
    }
    let query = ListQuery { words: vec!["name7".to_owned()], ..all(account) };
    let found = store.languages(query, names).await.unwrap();
    ids.reverse();
    assert_eq!(found.iter().map(|it| it.id).collect::<Vec<_>>(), ids, "newest first");
    let matching: Vec<&str> = found.iter().filter(|it| it.is_match).map(|it| &*it.name).collect();
    assert_eq!(matching, ["name7"]);
}

#[on_both_databases]
async fn a_filter_with_several_values_matches_any_of_them(store: &Shared) {
    let account = account(store, "a").await;
    thirty(store, account).await;
    create(store, template_with(account, "t30", "de_DE", "UTILITY", "b")).await;
    update_index(store).await;
    let all_templates = store.list(all(account)).await.unwrap().templates;
    let statuses = [&[][..], &[Status::Pending], &[Status::Approved, Status::Rejected]];
    let categories: [&[Category]; 3] = [&[], &[Utility, Marketing], &[Authentication]];
    let languages: [&[&str]; 3] = [&[], &["pt_BR", "de_DE"], &["en_US", "pt_BR", "en_US"]];
    for status in statuses {
        for category in categories {
            for language in languages {
                let takes = |it: &&StoredTemplate| {
                    (status.is_empty() || status.contains(&it.state.status()))
                        && (category.is_empty() || category.contains(&it.template.category()))
                        && (language.is_empty() || language.contains(&it.template.language()))
                };
                let expected: Vec<_> = all_templates.iter().filter(takes).map(|it| it.id).collect();
                let query = ListQuery {
                    statuses: status.to_vec(),
                    categories: category.to_vec(),
                    languages: language.iter().map(|&it| it.to_owned()).collect(),
                    limit: 4,
                    ..all(account)
                };
                let searched = ListQuery { words: search_terms::terms("t"), ..query.clone() };
                for query in [query, searched] {
                    assert_eq!(read_all(store, query.clone()).await, expected, "{query:?}");
                    let count = store.count_templates(query.clone()).await.unwrap();
                    assert_eq!(count, expected.len() as u64, "{query:?}");
                }
            }
        }
    }
}

#[on_both_databases]
async fn a_translation_group_is_listed_only_in_its_account(store: &Shared) {
    let (mine, theirs) = (account(store, "a").await, account(store, "b").await);
    let mut created_ids = Vec::new();
    for language in ["en_US", "de_DE", "pt_BR"] {
        created_ids.push(create(store, translation(mine, "hello", language, Utility)).await);
        create(store, translation(mine, "hello_again", language, Utility)).await;
        create(store, translation(theirs, "hello", language, Utility)).await;
    }
    let named = ListQuery {
        name: Some(NameFilter::TranslationGroup(TranslationGroup::of(mine, "hello"))),
        ..all(mine)
    };
    assert_eq!(
        read_all(store, named.clone()).await,
        [created_ids[2], created_ids[1], created_ids[0]]
    );
    let german = ListQuery { languages: vec!["de_DE".to_owned()], ..named.clone() };
    assert_eq!(read_all(store, german.clone()).await, [created_ids[1]]);
    let matching = ListQuery { words: search_terms::terms("hel de"), ..named.clone() };
    assert_eq!(read_all(store, matching.clone()).await, [created_ids[1]]);
    for (query, count) in [(named.clone(), 3), (german, 1), (matching, 1)] {
        assert_eq!(store.count_templates(query).await.unwrap(), count);
    }
    // The group of one account matches nothing in another account.
    let foreign = ListQuery { account: theirs, ..named };
    assert_eq!(read_all(store, foreign.clone()).await, []);
    assert_eq!(store.count_templates(foreign).await.unwrap(), 0);
}

#[on_both_databases]
async fn a_count_does_not_depend_on_the_cursor(store: &Shared) {
    let (mine, theirs) = (account(store, "a").await, account(store, "b").await);
    let created_ids = thirty(store, mine).await;
    create(store, new(theirs, "theirs")).await;
    update_index(store).await;
    let count = async |query| store.count_templates(query).await.unwrap();
    assert_eq!((count(all(mine)).await, count(all(theirs)).await), (30, 1));
    for query in [all(mine), search(mine, "t")] {
        let middle = ListQuery { after: Some(created_ids[10]), limit: 1, ..query.clone() };
        let back = ListQuery { before: Some(created_ids[10]), ..query };
        assert_eq!((count(middle).await, count(back).await), (30, 30));
    }
    // Deleted templates are not counted, even before the search index is updated.
    done(store.delete_template(change(mine, created_ids[7])).await.unwrap());
    assert_eq!(count(all(mine)).await, 29);
    assert_eq!(count(search(mine, "t")).await, 29);
    assert_eq!(count(search(mine, "theirs")).await, 0);
    let by_key = ListQuery { name: Some(NameFilter::UniqueKey("t3".to_owned())), ..all(mine) };
    assert_eq!(count(by_key.clone()).await, 1);
    assert_eq!(count(ListQuery { account: theirs, ..by_key }).await, 0);
}

#[on_both_databases]
async fn impossible_values_match_nothing_and_cause_no_error(store: &Shared) {
    let account = account(store, "a").await;
    let ids = thirty(store, account).await;
    update_index(store).await;
    for (languages, matching) in
        [(&["\0"][..], 0), (&["pt_BR\0"], 0), (&["\0", "pt_BR"], 15), (&[""], 0)]
    {
        let languages: Vec<String> = languages.iter().map(|it| (*it).to_owned()).collect();
        let query = ListQuery { languages, ..all(account) };
        assert_eq!(read_all(store, query.clone()).await.len(), matching, "{query:?}");
        assert_eq!(store.count_templates(query.clone()).await.unwrap(), matching as u64);
        let query = ListQuery { words: vec!["t".to_owned()], ..query };
        assert_eq!(read_all(store, query.clone()).await.len(), matching, "{query:?}");
        assert_eq!(store.count_templates(query).await.unwrap(), matching as u64);
    }
    for text in ["\0", "15550001111\0", "\0t1"] {
        let named = NameFilter::UniqueKey(text.to_owned());
        assert!(names(store, ListQuery { name: Some(named), ..all(account) }).await.is_empty());
        assert_eq!(store.name_conflict(account, text).await.unwrap(), None);
        assert!(store.translations(account, text).await.unwrap().is_empty());
        assert_eq!(store.phone_owner(text).await.unwrap(), None);
        assert_eq!(store.upload(account, text, noon(0)).await.unwrap(), None);
        let appended = store.append_upload(account, text, 0, b"x", 9_999, noon(0)).await.unwrap();
        assert_eq!(appended, AppendOutcome::NoUpload);
        assert!(!store.cancel_upload(account, text, noon(0)).await.unwrap());
        assert_eq!(store.sample(account, text, noon(0)).await.unwrap(), None);
        assert_eq!(store.media(text).await.unwrap(), None);
        assert!(store.media_chunk(text, 0).await.unwrap().is_empty());
    }
    assert_eq!(read_all(store, all(account)).await, ids);
}
