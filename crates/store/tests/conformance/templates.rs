//! Cases about templates and their events.

use galley_domain::{
    rulebook::Category,
    template::{
        Review, Status,
        lifecycle::{EventType, State},
    },
};
use galley_store::{CreateOutcome, NameConflict, NewTemplate};

use super::fixture::{
    ACTOR, Shared, about, account, all_at_once, created, events, new, noon, template,
};

pub(crate) async fn a_kept_template_reads_back_equal(store: &Shared) {
    let account = account(store, "a").await;
    let receipt = created(store.create_template(new(account, "hello")).await.unwrap());
    assert_eq!((receipt.status, receipt.category), (Status::Approved, Category::Utility));
    let kept = store.template(account, receipt.id).await.unwrap().unwrap();
    assert_eq!(kept.template, template("hello"));
    assert_eq!(
        (kept.id, kept.state, kept.revision, kept.previous_category, kept.reason.clone()),
        (receipt.id, State::first(Review::Auto), 1, None, None)
    );
    assert_eq!((kept.created_at, kept.updated_at), (noon(0), noon(0)));
    assert_eq!(kept.phone.as_deref(), Some("15550001111"));
}

pub(crate) async fn a_template_is_seen_by_its_account_only(store: &Shared) {
    let (mine, theirs) = (account(store, "a").await, account(store, "b").await);
    let receipt = created(store.create_template(new(mine, "hello")).await.unwrap());
    assert!(store.template(mine, receipt.id).await.unwrap().is_some());
    assert_eq!(store.template(theirs, receipt.id).await.unwrap(), None);
    assert_eq!(events(store, theirs, 0, 10).await, []);
}

pub(crate) async fn a_taken_name_is_refused_and_told_only_to_its_owner(store: &Shared) {
    let (mine, theirs) = (account(store, "a").await, account(store, "b").await);
    let receipt = created(store.create_template(new(mine, "hello")).await.unwrap());
    let again = store.create_template(new(mine, "hello")).await.unwrap();
    assert_eq!(again, CreateOutcome::NameInUse(NameConflict { own: Some(receipt.id) }));
    let other = store.create_template(new(theirs, "hello")).await.unwrap();
    assert_eq!(other, CreateOutcome::NameInUse(NameConflict { own: None }));
    for (account, taken) in [(mine, Some(receipt.id)), (theirs, None)] {
        assert_eq!(store.taken(account, "hello").await.unwrap(), Some(NameConflict { own: taken }));
        assert_eq!(store.taken(account, "free").await.unwrap(), None);
    }
}

pub(crate) async fn a_refused_creation_leaves_nothing_behind(store: &Shared) {
    let account = account(store, "a").await;
    created(store.create_template(new(account, "hello")).await.unwrap());
    store.create_template(new(account, "hello")).await.unwrap();
    created(store.create_template(new(account, "next")).await.unwrap());
    let events = events(store, account, 0, 10).await;
    assert_eq!(
        events.iter().map(|it| (it.seq, about(it).1)).collect::<Vec<_>>(),
        [(1, "hello"), (2, "next")]
    );
}

pub(crate) async fn ids_grow_whatever_the_clock_does(store: &Shared) {
    let account = account(store, "a").await;
    let mut ids = Vec::new();
    for (index, plus) in [0, 0, 5_000, -60_000, 5_001].into_iter().enumerate() {
        let new = NewTemplate { at: noon(plus), ..new(account, &format!("t{index}")) };
        ids.push(created(store.create_template(new).await.unwrap()).id);
    }
    assert!(ids.is_sorted() && ids.windows(2).all(|pair| pair[0] != pair[1]), "{ids:?}");
}

pub(crate) async fn events_are_numbered_without_gaps_in_each_account(store: &Shared) {
    let (one, two) = (account(store, "a").await, account(store, "b").await);
    for index in 0..5 {
        created(store.create_template(new(one, &format!("one{index}"))).await.unwrap());
        created(store.create_template(new(two, &format!("two{index}"))).await.unwrap());
    }
    for account in [one, two] {
        let events = events(store, account, 0, 100).await;
        assert_eq!(events.iter().map(|it| it.seq).collect::<Vec<_>>(), [1, 2, 3, 4, 5]);
        assert!(
            events
                .iter()
                .all(|it| it.kind == EventType::Created && about(it).0 == 1 && it.actor == ACTOR)
        );
    }
    let rest = events(store, one, 3, 1).await;
    assert_eq!(rest.iter().map(|it| (it.seq, about(it).1)).collect::<Vec<_>>(), [(4, "one3")]);
}

pub(crate) async fn of_many_concurrent_creations_of_one_name_one_succeeds(store: &Shared) {
    let account = account(store, "a").await;
    let outcomes = all_at_once(store, vec![new(account, "wanted"); 64]).await;
    let winners: Vec<_> =
        outcomes.iter().filter(|it| matches!(it, CreateOutcome::Created(_))).collect();
    let [CreateOutcome::Created(winner)] = winners[..] else { panic!("{outcomes:?}") };
    let losers = outcomes
        .iter()
        .filter(|it| **it == CreateOutcome::NameInUse(NameConflict { own: Some(winner.id) }))
        .count();
    assert_eq!(losers, 63);
    assert_eq!(events(store, account, 0, 100).await.len(), 1);
}

pub(crate) async fn a_template_under_manual_review_has_no_live_version(store: &Shared) {
    let account = account(store, "a").await;
    let pending = NewTemplate { review: Review::Manual, ..new(account, "hello") };
    let receipt = created(store.create_template(pending).await.unwrap());
    let kept = store.template(account, receipt.id).await.unwrap().unwrap();
    assert_eq!((kept.state.status(), kept.state.live_version()), (Status::Pending, None));
}

pub(crate) async fn names_that_differ_in_any_byte_are_different(store: &Shared) {
    let account = account(store, "a").await;
    // Case, composed against decomposed letters, and a trailing letter.
    for name in ["name", "Name", "n\u{e4}me", "na\u{308}me", "names"] {
        created(store.create_template(new(account, name)).await.unwrap());
    }
}
