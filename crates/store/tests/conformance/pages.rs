//! Cases about lists that take several values, are read both ways and are counted.

use galley_domain::{
    id::{AccountId, TemplateId},
    rulebook::Category::{self, Authentication, Marketing, Utility},
    template::{Status, search_terms},
};
use galley_store::{AppendOutcome, ListQuery, NameFilter, Page, StoredTemplate, TranslationGroup};

use super::{
    fixture::{Shared, account, change, create, done, member, new, noon},
    lists::{all, follow, names, of, searching, thirty, walk},
};

fn ids(page: &Page) -> Vec<TemplateId> {
    page.templates.iter().map(|it| it.id).collect()
}

/// Reads a list to its end and back to its beginning: both ways give the same templates, and every
/// page says truly whether there is more on either side.
async fn read_both_ways(store: &Shared, listing: ListQuery) {
    let expected = walk(store, listing.clone()).await;
    let listing = ListQuery { both_ways: true, ..listing };
    let mut forwards: Vec<Page> = Vec::new();
    loop {
        let after = forwards.last().and_then(|page| page.templates.last()).map(|it| it.id);
        let page = store.list(ListQuery { after, ..listing.clone() }).await.unwrap();
        assert_eq!(page.newer, after.is_some(), "{listing:?}");
        forwards.push(page);
        if forwards.last().is_some_and(|page| !page.more) {
            break;
        }
    }
    assert_eq!(forwards.iter().flat_map(ids).collect::<Vec<_>>(), expected, "{listing:?}");
    let last = forwards.last().and_then(|page| page.templates.last()).map(|it| it.id);
    let (mut before, mut backwards) = (last, Vec::new());
    while let Some(cursor) = before {
        let page = store.list(ListQuery { before, ..listing.clone() }).await.unwrap();
        assert!(page.more, "the template of the cursor is behind: {listing:?}");
        let mut part = ids(&page);
        assert!(part.is_sorted_by(|one, other| one > other), "newest first: {part:?}");
        assert!(part.len() == listing.limit || !page.newer, "{part:?}");
        before = part.first().copied().filter(|_| page.newer);
        part.extend(backwards.is_empty().then_some(cursor));
        backwards.splice(0..0, part);
    }
    assert_eq!(backwards, expected, "{listing:?}");
}

pub(crate) async fn a_list_reads_the_same_both_ways(store: &Shared) {
    let (mine, theirs) = (account(store, "a").await, account(store, "b").await);
    read_both_ways(store, all(mine)).await;
    thirty(store, mine).await;
    thirty_of_a_name(store, theirs).await;
    follow(store).await;
    for limit in [1, 4, 29, 30, 31] {
        for listing in [
            all(mine),
            ListQuery { categories: vec![Marketing, Utility], ..all(mine) },
            ListQuery { languages: vec!["pt_BR".to_owned()], ..all(mine) },
            searching(mine, "t"),
            ListQuery { statuses: vec![Status::Approved], ..searching(mine, "t1") },
            ListQuery {
                name: Some(NameFilter::TranslationGroup(TranslationGroup::of(theirs, "hello"))),
                ..all(theirs)
            },
        ] {
            read_both_ways(store, ListQuery { limit, ..listing }).await;
        }
    }
}

const REGIONS: [&str; 10] = ["US", "GB", "DE", "FR", "BR", "MX", "ES", "IT", "JP", "IN"];

/// One name in thirty languages.
async fn thirty_of_a_name(store: &Shared, account: AccountId) {
    for language in ["en", "de", "fr"] {
        for region in REGIONS {
            create(store, member(account, "hello", &format!("{language}_{region}"), Utility)).await;
        }
    }
}

pub(crate) async fn a_cursor_of_a_template_that_is_gone_still_divides_the_list(store: &Shared) {
    let account = account(store, "a").await;
    let ids_now = thirty(store, account).await;
    for gone in [0, 15, 29] {
        done(store.delete_template(change(account, ids_now[gone])).await.unwrap());
    }
    let listing = ListQuery { limit: 3, both_ways: true, ..all(account) };
    let before = |place: usize| ListQuery { before: Some(ids_now[place]), ..listing.clone() };
    let page = store.list(before(15)).await.unwrap();
    assert_eq!(ids(&page), ids_now[12..15]);
    assert!(page.more && page.newer);
    let page = store.list(before(3)).await.unwrap();
    assert_eq!(ids(&page), ids_now[1..3]);
    assert!(page.more && !page.newer);
    // Nothing is on the far side of what was the newest and the oldest.
    let page = store.list(before(0)).await.unwrap();
    assert_eq!((ids(&page), page.more, page.newer), (Vec::new(), true, false));
    let after = ListQuery { after: Some(ids_now[29]), ..listing.clone() };
    let page = store.list(after).await.unwrap();
    assert_eq!((ids(&page), page.more, page.newer), (Vec::new(), false, true));
    let first = ListQuery { after: Some(ids_now[0]), ..listing.clone() };
    let page = store.list(first.clone()).await.unwrap();
    assert_eq!((ids(&page), page.newer), (ids_now[1..4].to_vec(), false));
    // Who does not ask is not told.
    let unasked = ListQuery { after: Some(ids_now[15]), both_ways: false, ..listing };
    assert!(!store.list(unasked).await.unwrap().newer);
}

pub(crate) async fn several_values_of_a_filter_take_what_agrees_with_one(store: &Shared) {
    let account = account(store, "a").await;
    thirty(store, account).await;
    create(store, of(account, "t30", "de_DE", "UTILITY", "b")).await;
    follow(store).await;
    let everything = store.list(all(account)).await.unwrap().templates;
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
                let expected: Vec<_> = everything.iter().filter(takes).map(|it| it.id).collect();
                let listing = ListQuery {
                    statuses: status.to_vec(),
                    categories: category.to_vec(),
                    languages: language.iter().map(|&it| it.to_owned()).collect(),
                    limit: 4,
                    ..all(account)
                };
                let searched = ListQuery { words: search_terms::words("t"), ..listing.clone() };
                for listing in [listing, searched] {
                    assert_eq!(walk(store, listing.clone()).await, expected, "{listing:?}");
                    let count = store.count_templates(listing.clone()).await.unwrap();
                    assert_eq!(count, expected.len() as u64, "{listing:?}");
                }
            }
        }
    }
}

pub(crate) async fn the_languages_of_a_name_are_listed_in_their_account_only(store: &Shared) {
    let (mine, theirs) = (account(store, "a").await, account(store, "b").await);
    let mut made = Vec::new();
    for language in ["en_US", "de_DE", "pt_BR"] {
        made.push(create(store, member(mine, "hello", language, Utility)).await);
        create(store, member(mine, "hello_again", language, Utility)).await;
        create(store, member(theirs, "hello", language, Utility)).await;
    }
    let named = ListQuery {
        name: Some(NameFilter::TranslationGroup(TranslationGroup::of(mine, "hello"))),
        ..all(mine)
    };
    assert_eq!(walk(store, named.clone()).await, [made[2], made[1], made[0]]);
    let german = ListQuery { languages: vec!["de_DE".to_owned()], ..named.clone() };
    assert_eq!(walk(store, german.clone()).await, [made[1]]);
    let found = ListQuery { words: search_terms::words("hel de"), ..named.clone() };
    assert_eq!(walk(store, found.clone()).await, [made[1]]);
    for (listing, count) in [(named.clone(), 3), (german, 1), (found, 1)] {
        assert_eq!(store.count_templates(listing).await.unwrap(), count);
    }
    // Another account does not get there with the name of this one.
    let foreign = ListQuery { account: theirs, ..named };
    assert_eq!(walk(store, foreign.clone()).await, []);
    assert_eq!(store.count_templates(foreign).await.unwrap(), 0);
}

pub(crate) async fn a_list_is_counted_whole_wherever_its_page_begins(store: &Shared) {
    let (mine, theirs) = (account(store, "a").await, account(store, "b").await);
    let made = thirty(store, mine).await;
    create(store, new(theirs, "theirs")).await;
    follow(store).await;
    let count = async |listing| store.count_templates(listing).await.unwrap();
    assert_eq!((count(all(mine)).await, count(all(theirs)).await), (30, 1));
    for listing in [all(mine), searching(mine, "t")] {
        let middle = ListQuery { after: Some(made[10]), limit: 1, ..listing.clone() };
        let back = ListQuery { before: Some(made[10]), ..listing };
        assert_eq!((count(middle).await, count(back).await), (30, 30));
    }
    // What was deleted is not counted, though the words have not followed yet.
    done(store.delete_template(change(mine, made[7])).await.unwrap());
    assert_eq!(count(all(mine)).await, 29);
    assert_eq!(count(searching(mine, "t")).await, 29);
    assert_eq!(count(searching(mine, "theirs")).await, 0);
    let claim = ListQuery { name: Some(NameFilter::Claim("t3".to_owned())), ..all(mine) };
    assert_eq!(count(claim.clone()).await, 1);
    assert_eq!(count(ListQuery { account: theirs, ..claim }).await, 0);
}

pub(crate) async fn what_nobody_can_have_is_not_found_and_breaks_nothing(store: &Shared) {
    let account = account(store, "a").await;
    let ids = thirty(store, account).await;
    follow(store).await;
    for (languages, found) in
        [(&["\0"][..], 0), (&["pt_BR\0"], 0), (&["\0", "pt_BR"], 15), (&[""], 0)]
    {
        let languages: Vec<String> = languages.iter().map(|it| (*it).to_owned()).collect();
        let listing = ListQuery { languages, ..all(account) };
        assert_eq!(walk(store, listing.clone()).await.len(), found, "{listing:?}");
        assert_eq!(store.count_templates(listing.clone()).await.unwrap(), found as u64);
        let listing = ListQuery { words: vec!["t".to_owned()], ..listing };
        assert_eq!(walk(store, listing.clone()).await.len(), found, "{listing:?}");
        assert_eq!(store.count_templates(listing).await.unwrap(), found as u64);
    }
    for text in ["\0", "15550001111\0", "\0t1"] {
        let named = NameFilter::Claim(text.to_owned());
        assert!(names(store, ListQuery { name: Some(named), ..all(account) }).await.is_empty());
        assert_eq!(store.taken(account, text).await.unwrap(), None);
        assert!(store.family(account, text).await.unwrap().is_empty());
        assert_eq!(store.phone_owner(text).await.unwrap(), None);
        assert_eq!(store.upload(account, text, noon(0)).await.unwrap(), None);
        let appended = store.append_upload(account, text, 0, b"x", 9_999, noon(0)).await.unwrap();
        assert_eq!(appended, AppendOutcome::NoUpload);
        assert!(!store.cancel_upload(account, text, noon(0)).await.unwrap());
        assert_eq!(store.sample(account, text, noon(0)).await.unwrap(), None);
        assert_eq!(store.media(text).await.unwrap(), None);
        assert!(store.media_chunk(text, 0).await.unwrap().is_empty());
    }
    assert_eq!(walk(store, all(account)).await, ids);
}
