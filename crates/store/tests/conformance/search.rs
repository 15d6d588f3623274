//! Cases about what a search finds right after a write, and about accents.

use galley_domain::{
    id::AccountId,
    template::{edit::Edit, lifecycle::Trigger},
};
use galley_store::{IndexStep, ListQuery, NameFilter, NewTemplate, Unindexed};

use super::{
    fixture::{Shared, account, change, create, done, new, noon},
    lists::{all, names, search, template_with, update_index},
};
use galley_test_macros::on_both_databases;

/// Indexes what the account has committed, as a search does that waits for it. Returns the number
/// of steps.
async fn catch_up(store: &Shared, account: AccountId) -> usize {
    let newest = store.newest_event(account).await.unwrap();
    for steps in 1.. {
        match store.index_account(account, newest).await.unwrap() {
            IndexStep::CaughtUp => return steps,
            IndexStep::Advanced => {}
            IndexStep::Blocked => panic!("nothing else indexes the account"),
        }
    }
    unreachable!()
}

async fn unindexed(store: &Shared, query: ListQuery) -> Option<Unindexed> {
    store.list(query).await.unwrap().unindexed
}

#[on_both_databases]
async fn a_search_reports_what_is_not_indexed_and_finds_it_after_a_step(store: &Shared) {
    let mine = account(store, "a").await;
    assert_eq!(unindexed(store, search(mine, "any")).await, None, "there are no writes");
    let written =
        NewTemplate { at: noon(5), ..template_with(mine, "one", "en_US", "UTILITY", "before") };
    let id = create(store, written).await;
    let behind = Some(Unindexed { newest: 1, indexed: 0, since: noon(5) });
    assert_eq!(unindexed(store, search(mine, "before")).await, behind);
    catch_up(store, mine).await;
    assert_eq!(names(store, search(mine, "before")).await, ["one"]);
    assert_eq!(unindexed(store, search(mine, "before")).await, None);

    let content = Some(r#"{"components":[{"type":"BODY","text":"afterwards"}]}"#.to_owned());
    let edit = Edit::Replace { content, category: None };
    done(store.edit_template(change(mine, id), edit).await.unwrap());
    done(store.review_template(change(mine, id), Trigger::Pause, None).await.unwrap());
    assert!(unindexed(store, search(mine, "after")).await.is_some_and(|it| it.newest > 1));
    catch_up(store, mine).await;
    assert_eq!(names(store, search(mine, "after")).await, ["one"]);
    assert_eq!(names(store, search(mine, "before")).await, [""; 0]);

    done(store.delete_template(change(mine, id)).await.unwrap());
    assert_eq!(names(store, search(mine, "after")).await, [""; 0]);
    catch_up(store, mine).await;
    assert_eq!(unindexed(store, search(mine, "after")).await, None);
}

#[on_both_databases]
async fn only_a_search_that_uses_the_index_reports_what_is_not_indexed(store: &Shared) {
    let (mine, theirs) = (account(store, "a").await, account(store, "b").await);
    create(store, new(mine, "mine")).await;
    update_index(store).await;
    create(store, new(theirs, "theirs")).await;
    assert_eq!(unindexed(store, search(mine, "mine")).await, None, "another account's writes");
    assert!(unindexed(store, search(theirs, "theirs")).await.is_some());
    assert_eq!(unindexed(store, all(theirs)).await, None);
    let name = Some(NameFilter::UniqueKey("theirs".to_owned()));
    let named = ListQuery { name, ..search(theirs, "theirs") };
    assert_eq!(unindexed(store, named.clone()).await, None);
    assert_eq!(names(store, named).await, ["theirs"]);
}

#[on_both_databases]
async fn an_account_is_indexed_ahead_of_the_backlog_of_others(store: &Shared) {
    let (mine, theirs) = (account(store, "a").await, account(store, "b").await);
    // The first run scans all templates of all accounts.
    update_index(store).await;
    for index in 0..300 {
        create(store, new(theirs, &format!("t{index}"))).await;
    }
    create(store, new(mine, "mine")).await;
    assert_eq!(catch_up(store, mine).await, 1);
    assert_eq!(names(store, search(mine, "mine")).await, ["mine"]);
    assert!(unindexed(store, search(theirs, "t")).await.is_some(), "their turn comes later");
    assert_eq!(catch_up(store, theirs).await, 2, "a step indexes 256 events");
    assert_eq!(names(store, search(theirs, "t")).await.len(), 100);
    let done = store.update_search_index().await.unwrap();
    assert_eq!((done.processed, done.has_more), (0, false));
}

#[on_both_databases]
async fn a_search_does_not_wait_for_later_writes(store: &Shared) {
    let account = account(store, "a").await;
    create(store, new(account, "first")).await;
    catch_up(store, account).await;
    create(store, new(account, "second")).await;
    assert_eq!(store.index_account(account, 1).await.unwrap(), IndexStep::CaughtUp);
}

#[on_both_databases]
async fn a_search_ignores_accents(store: &Shared) {
    let account = account(store, "a").await;
    for (name, body) in [
        ("Pâques", "un œuf"),
        ("paques_2", "Grüße"),
        // Decomposed: the accent is a character of its own.
        ("decomposed", "joyeuses Pa\u{302}ques"),
    ] {
        create(store, template_with(account, name, "fr_FR", "UTILITY", body)).await;
    }
    update_index(store).await;
    for (q, expected) in [
        ("paques", &["decomposed", "paques_2", "Pâques"][..]),
        ("PÂQUES", &["decomposed", "paques_2", "Pâques"]),
        ("pa\u{302}q", &["decomposed", "paques_2", "Pâques"]),
        ("gruse", &[]),
        ("grusse", &["paques_2"]),
        ("oeuf", &["Pâques"]),
    ] {
        assert_eq!(names(store, search(account, q)).await, expected, "{q}");
        for name in ["Pâques", "decomposed"] {
            let unique_key = Some(NameFilter::UniqueKey(name.to_owned()));
            let named = ListQuery { name: unique_key, ..search(account, q) };
            let is_expected = expected.contains(&name);
            assert_eq!(names(store, named).await.len(), usize::from(is_expected), "{q} {name}");
        }
    }
}
