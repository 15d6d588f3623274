//! Cases about changes of templates that a script reviews, also in faithful accounts.

use galley_domain::{
    rulebook::Category,
    template::{
        Review, Status,
        edit::Edit,
        lifecycle::{Hold, Trigger},
    },
};
use galley_store::{
    AccountLimits, Author, ChangeOutcome, CreateOutcome, DeleteOutcome, DueWork, Limit,
    NewTemplate, TemplateChange,
};
use galley_test_macros::on_both_databases;

use super::{
    emulator::{DAY, HOUR, MINUTE, advance, emulator, rules, scripted, scripted_change, stored},
    emulator_scripts::{apply, event_lines},
    fixture::{Shared, create, created, done, initiator, noon, translation},
};

fn content(text: &str) -> Edit {
    let content = format!(r#"{{"components":[{{"type":"BODY","text":"{text}"}}]}}"#);
    Edit::Replace { content: Some(content), category: None }
}

#[on_both_databases]
async fn due_steps_of_a_template_come_before_a_change_of_it(store: &Shared) {
    let mine = emulator(store, "a", false).await;
    let ids = [
        create(store, scripted(mine, "a_reject_10m", 0)).await,
        create(store, scripted(mine, "b_reject_10m", 0)).await,
    ];
    let [first, second] = ids;
    let expecting = |revision: u64| TemplateChange {
        expected: Some(vec![revision]),
        ..scripted_change(mine, first, 11 * MINUTE)
    };
    let refused = store.edit_template(expecting(1), content("new")).await.unwrap();
    assert_eq!(refused, ChangeOutcome::RevisionMismatch(2));
    let edited = done(store.edit_template(expecting(2), content("new")).await.unwrap());
    assert_eq!((edited.state.status(), edited.revision), (Status::Pending, 3));
    assert_eq!(stored(store, mine, second).await.revision, 1, "its step is not needed yet");
    let change = scripted_change(mine, second, 11 * MINUTE);
    let approve = store.review_template(change, Trigger::Approve, None).await.unwrap();
    assert!(matches!(approve, ChangeOutcome::InvalidTransition(_)), "{approve:?}");
    assert_eq!(stored(store, mine, second).await.state.status(), Status::Rejected);
    assert_eq!(
        event_lines(store, mine).await[2..],
        [
            "template.rejected a_reject_10m 1 REJECTED",
            "template.edited a_reject_10m 2 PENDING",
            "template.rejected b_reject_10m 1 REJECTED",
        ]
    );
}

#[on_both_databases]
async fn an_edit_replaces_the_script(store: &Shared) {
    let mine = emulator(store, "a", false).await;
    let id = create(store, scripted(mine, "order_pause_1h", 0)).await;
    let change = scripted_change(mine, id, 10 * MINUTE);
    let edited = done(store.edit_template(change, content("new")).await.unwrap());
    assert_eq!((edited.state.status(), edited.revision), (Status::Approved, 4));
    assert_eq!(apply(store, mine, HOUR).await, 0, "the pause of the first version is dropped");
    assert_eq!(apply(store, mine, HOUR + 10 * MINUTE).await, 1);
    assert_eq!(stored(store, mine, id).await.state.status(), Status::Paused);
    assert_eq!(apply(store, mine, 4 * HOUR).await, 0, "so is its end");
    assert_eq!(apply(store, mine, 4 * HOUR + 10 * MINUTE).await, 1);
    assert_eq!(stored(store, mine, id).await.state.status(), Status::Approved);
}

#[on_both_databases]
async fn a_pause_ends_in_spite_of_an_edit(store: &Shared) {
    let mine = emulator(store, "a", false).await;
    let id = create(store, scripted(mine, "order_pause", 0)).await;
    assert_eq!(stored(store, mine, id).await.state.status(), Status::Paused);
    assert!(
        store.set_review_rules(mine, rules(r#"{"rules":[{"outcome":"approve"}]}"#)).await.unwrap()
    );
    let change = scripted_change(mine, id, HOUR);
    let edited = done(store.edit_template(change, content("new")).await.unwrap());
    assert_eq!(edited.state.hold, Some(Hold::Paused));
    assert_eq!(apply(store, mine, 3 * HOUR).await, 1);
    assert_eq!(stored(store, mine, id).await.state.live_version(), Some(2));
}

#[on_both_databases]
async fn a_deleted_template_has_no_steps(store: &Shared) {
    let mine = emulator(store, "a", false).await;
    let mut ids = Vec::new();
    for name in ["a_pending_1h", "b_pending_1h", "c_pending_1h"] {
        ids.push(create(store, scripted(mine, name, 0)).await);
    }
    done(store.delete_template(scripted_change(mine, ids[0], 1)).await.unwrap());
    let by = |at| initiator(mine, Review::Scripted, noon(at));
    let deleted = store.delete_translations(by(1), "b_pending_1h");
    assert_eq!(deleted.await.unwrap(), DeleteOutcome::Done(vec![ids[1]]));
    let next_at = Some(noon(HOUR));
    let due = store.accounts_with_due_steps(noon(1)).await.unwrap();
    assert_eq!(due, DueWork { now: Vec::new(), next_at });
    let last = vec![ids[2]];
    let deleted = store.delete_templates(by(HOUR), last.clone());
    assert_eq!(deleted.await.unwrap(), DeleteOutcome::Done(last));
    let lines = event_lines(store, mine).await;
    let expected =
        ["template.approved c_pending_1h 1 APPROVED", "template.deleted c_pending_1h 1 APPROVED"];
    assert_eq!(lines[5..], expected, "its step was due before");
    let due = store.accounts_with_due_steps(noon(DAY)).await.unwrap();
    assert_eq!(due, DueWork { now: Vec::new(), next_at: None });
}

#[on_both_databases]
async fn quotas_count_on_the_clock_of_the_account(store: &Shared) {
    let mine = emulator(store, "a", false).await;
    let limits = Some(AccountLimits { templates: 250 });
    store.set_account_limits(mine, limits, Author::operator(noon(0))).await.unwrap();
    let first = create(store, scripted(mine, "t0", 0)).await;
    for index in 1..100 {
        create(store, scripted(mine, &format!("t{index}"), 0)).await;
    }
    let edit = |text: &str| store.edit_template(scripted_change(mine, first, 1), content(text));
    done(edit("second").await.unwrap());
    let refused = CreateOutcome::Limited(Limit::CreationsPerHour);
    assert_eq!(store.create_template(scripted(mine, "next", 1)).await.unwrap(), refused);
    advance(store, mine, HOUR, 1).await;
    created(store.create_template(scripted(mine, "next", 1)).await.unwrap());
    assert_eq!(edit("third").await.unwrap(), ChangeOutcome::Limited(Limit::EditsPerDay));
    advance(store, mine, DAY, 1).await;
    done(edit("third").await.unwrap());
}

#[on_both_databases]
async fn a_faithful_account_edits_in_place_and_no_pending_template(store: &Shared) {
    let mine = emulator(store, "a", true).await;
    let id = create(store, scripted(mine, "order_pause", 0)).await;
    let set = rules(r#"{"rules":[{"outcome":"pending","after":"1h"}]}"#);
    assert!(store.set_review_rules(mine, set).await.unwrap());
    let edit = || store.edit_template(scripted_change(mine, id, 1), content("new"));
    let edited = done(edit().await.unwrap());
    assert_eq!(edited.state.status(), Status::Pending, "the pause has ended");
    assert_eq!(edited.state.approved_version, None);
    let ChangeOutcome::InvalidTransition(refusal) = edit().await.unwrap() else {
        panic!("a pending template was edited")
    };
    assert_eq!(refusal.status, Status::Pending);
    assert!(!refusal.possible.contains(&Trigger::Edit), "{refusal:?}");
    advance(store, mine, HOUR, 1).await;
    let edited = done(edit().await.unwrap());
    assert_eq!(edited.state.version, 3, "the approval was due before the edit");
    let standard = emulator(store, "b", false).await;
    let id = create(store, scripted(standard, "order", 0)).await;
    let set = rules(r#"{"rules":[{"outcome":"pending"}]}"#);
    assert!(store.set_review_rules(standard, set).await.unwrap());
    for version in [2, 3] {
        let change = scripted_change(standard, id, 1);
        let edited = done(store.edit_template(change, content("new")).await.unwrap());
        let state = edited.state;
        assert_eq!((state.version, state.live_version()), (version, Some(1)));
    }
}

#[on_both_databases]
async fn a_faithful_account_locks_the_name_of_an_approved_template(store: &Shared) {
    let mine = emulator(store, "a", true).await;
    let delete = |account, id, at| store.delete_template(scripted_change(account, id, at));
    let id = create(store, scripted(mine, "order", 0)).await;
    let german = NewTemplate {
        review: Review::Scripted,
        ..translation(mine, "order", "de_DE", Category::Utility)
    };
    done(delete(mine, id, HOUR).await.unwrap());
    let until = noon(HOUR + 30 * DAY);
    let refused = CreateOutcome::NameLocked { until };
    let again = || store.create_template(scripted(mine, "order", HOUR));
    assert_eq!(again().await.unwrap(), refused);
    let upserted = store.upsert_templates(vec![scripted(mine, "order", HOUR)]).await.unwrap();
    assert_eq!(upserted, galley_store::UpsertOutcome::NotCreated(refused));
    created(store.create_template(german).await.unwrap());
    advance(store, mine, 30 * DAY - 1, HOUR).await;
    assert_eq!(again().await.unwrap(), refused);
    advance(store, mine, 1, HOUR).await;
    let id = created(again().await.unwrap()).id;
    // A version that was approved before the newest one counts, too.
    let set = rules(r#"{"rules":[{"outcome":"reject"}]}"#);
    assert!(store.set_review_rules(mine, set).await.unwrap());
    let change = scripted_change(mine, id, HOUR);
    let edited = done(store.edit_template(change, content("new")).await.unwrap());
    assert_eq!(edited.state.status(), Status::Rejected);
    done(delete(mine, id, HOUR).await.unwrap());
    let until = noon(HOUR + 60 * DAY);
    assert_eq!(again().await.unwrap(), CreateOutcome::NameLocked { until });
    let rejected = create(store, scripted(mine, "other", HOUR)).await;
    done(delete(mine, rejected, HOUR).await.unwrap());
    created(store.create_template(scripted(mine, "other", HOUR)).await.unwrap());
    let standard = emulator(store, "b", false).await;
    let id = create(store, scripted(standard, "order", 0)).await;
    done(delete(standard, id, 1).await.unwrap());
    created(store.create_template(scripted(standard, "order", 1)).await.unwrap());
}
