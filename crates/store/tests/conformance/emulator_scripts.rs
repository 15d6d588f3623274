//! Cases about review scripts: their rules, and the steps at once and later.

use galley_domain::{
    id::AccountId,
    rulebook::Category,
    template::{Status, edit::Edit, lifecycle::EventType, quality::Quality},
};
use galley_store::{
    Actor, CreateOutcome, DueSteps, DueWork, Event, Idempotency, MAX_STEPS_PER_TRANSACTION,
    NewTemplate, UpsertOutcome,
};
use galley_test_macros::on_both_databases;

use super::{
    emulator::{DAY, HOUR, MINUTE, advance, emulator, rules, scripted, scripted_change, stored},
    fixture::{Shared, account, create, created, done, events, new, noon, template_subject},
};

/// Type and status of each event of an account.
pub(crate) async fn event_lines(store: &Shared, account: AccountId) -> Vec<String> {
    let events = events(store, account, 0, 1_000).await;
    let line = |event: &Event| {
        let (version, name, status) = template_subject(event);
        format!("{} {name} {version} {}", event.kind.as_str(), status.as_str())
    };
    events.iter().map(line).collect()
}

/// Applies the steps that are due, all in one transaction, and returns how many.
pub(crate) async fn apply(store: &Shared, account: AccountId, at: i64) -> u64 {
    let DueSteps { applied, has_more } = store.apply_due_steps(account, noon(at)).await.unwrap();
    assert!(!has_more);
    applied
}

#[on_both_databases]
async fn a_template_is_approved_at_once_and_its_creation_returns_that(store: &Shared) {
    let mine = emulator(store, "a", false).await;
    let idempotency = Some(Idempotency { key: [1; 16], payload: [2; 8] });
    let new = NewTemplate { idempotency, ..scripted(mine, "order", 5) };
    let first = created(store.create_template(new.clone()).await.unwrap());
    assert_eq!((first.status, first.category), (Status::Approved, Category::Utility));
    let replayed = store.create_template(new).await.unwrap();
    assert_eq!(replayed, CreateOutcome::Replayed(first));
    let found = stored(store, mine, first.id).await;
    assert_eq!((found.state.status(), found.state.live_version()), (Status::Approved, Some(1)));
    assert_eq!((found.revision, found.updated_at), (2, noon(5)));
    let version = store.version(mine, first.id, 1).await.unwrap().unwrap();
    let decision = version.decision.unwrap();
    assert_eq!((decision.by, decision.at, decision.reason), (Actor::Service, noon(5), None));
    let events = events(store, mine, 0, 10).await;
    let kinds: Vec<_> = events.iter().map(|it| (it.kind, it.actor == Actor::Service)).collect();
    assert_eq!(kinds, [(EventType::Created, false), (EventType::Approved, true)]);
    let lines = event_lines(store, mine).await;
    assert_eq!(lines, ["template.created order 1 PENDING", "template.approved order 1 APPROVED"]);
}

#[on_both_databases]
async fn the_rules_of_an_account_decide_before_the_suffix(store: &Shared) {
    let (mine, other) = (emulator(store, "a", false).await, emulator(store, "b", false).await);
    let set = rules(r#"{"rules":[{"name":"a*","outcome":"reject","reason":"scam"}]}"#);
    assert!(store.set_review_rules(mine, set.clone()).await.unwrap());
    assert_eq!(store.review_rules(mine).await.unwrap(), set);
    let rejected = created(store.create_template(scripted(mine, "a_pending", 0)).await.unwrap());
    assert_eq!(rejected.status, Status::Rejected);
    assert_eq!(stored(store, mine, rejected.id).await.reason.as_deref(), Some("SCAM"));
    let pending = created(store.create_template(scripted(mine, "b_pending", 0)).await.unwrap());
    assert_eq!(pending.status, Status::Pending);
    let theirs = created(store.create_template(scripted(other, "a_pending", 0)).await.unwrap());
    assert_eq!(theirs.status, Status::Pending);
    assert!(store.set_review_rules(mine, rules(r#"{"rules":[]}"#)).await.unwrap());
    let pending = created(store.create_template(scripted(mine, "a2_pending", 0)).await.unwrap());
    assert_eq!(pending.status, Status::Pending);
}

#[on_both_databases]
async fn a_step_is_applied_when_the_clock_reaches_its_time(store: &Shared) {
    let (runs, stands) = (emulator(store, "a", false).await, emulator(store, "b", false).await);
    let mut ids = Vec::new();
    for account in [runs, stands] {
        ids.push((account, create(store, scripted(account, "order_approve_10m", 0)).await));
    }
    advance(store, stands, MINUTE, 0).await;
    let due = |at: i64| store.accounts_with_due_steps(noon(at));
    let next = |minutes: i64| Some(noon(minutes * MINUTE));
    let later = DueWork { now: Vec::new(), next_at: next(10) };
    assert_eq!(due(MINUTE).await.unwrap(), later, "a clock that stands has no next time");
    assert_eq!(apply(store, runs, 10 * MINUTE - 1).await, 0);
    assert_eq!(apply(store, stands, 20 * MINUTE).await, 0);
    advance(store, stands, 9 * MINUTE, MINUTE).await;
    let now = DueWork { now: vec![stands], next_at: next(10) };
    assert_eq!(due(MINUTE).await.unwrap(), now);
    let both = DueWork { now: vec![runs, stands], next_at: None };
    assert_eq!(due(10 * MINUTE).await.unwrap(), both);
    for (account, id) in ids {
        assert_eq!(stored(store, account, id).await.state.status(), Status::Pending);
        assert_eq!(apply(store, account, 10 * MINUTE).await, 1);
        let found = stored(store, account, id).await;
        assert_eq!(found.state.status(), Status::Approved);
        assert_eq!(found.updated_at, noon(10 * MINUTE), "the time of a change is real");
        assert_eq!(apply(store, account, 10 * MINUTE).await, 0, "a step is applied once");
    }
    assert_eq!(due(DAY).await.unwrap(), DueWork { now: Vec::new(), next_at: None });
}

#[on_both_databases]
async fn steps_are_applied_in_the_order_of_their_times_some_at_a_time(store: &Shared) {
    let mine = emulator(store, "a", false).await;
    let count = MAX_STEPS_PER_TRANSACTION + 5;
    for index in (1..=count).rev() {
        create(store, scripted(mine, &format!("t_approve_{index}s"), 0)).await;
    }
    advance(store, mine, HOUR, 0).await;
    let first = store.apply_due_steps(mine, noon(1)).await.unwrap();
    let all = MAX_STEPS_PER_TRANSACTION as u64;
    assert_eq!(first, DueSteps { applied: all, has_more: true });
    let rest = store.apply_due_steps(mine, noon(1)).await.unwrap();
    assert_eq!(rest, DueSteps { applied: 5, has_more: false });
    let events = events(store, mine, count as u64, 1_000).await;
    let names: Vec<&str> = events.iter().map(|event| template_subject(event).1).collect();
    let expected: Vec<String> = (1..=count).map(|index| format!("t_approve_{index}s")).collect();
    assert_eq!(names, expected);
}

#[on_both_databases]
async fn a_category_is_announced_and_changes_a_day_later(store: &Shared) {
    let mine = emulator(store, "a", false).await;
    let id = create(store, scripted(mine, "order_to_authentication", 0)).await;
    let found = stored(store, mine, id).await;
    assert_eq!(found.template.category(), Category::Utility);
    assert_eq!(found.announced_category, Some(Category::Authentication));
    let text = || {
        let text = galley_domain::template::message_text::MessageText::from_content(
            Category::Utility,
            found.template.content(),
        );
        let text = text.unwrap();
        async move { store.template_with_text(mine, &text, None).await.unwrap() }
    };
    assert_eq!(text().await, Some(id));
    advance(store, mine, DAY, 0).await;
    assert_eq!(apply(store, mine, 5).await, 1);
    let changed = stored(store, mine, id).await;
    assert_eq!(changed.template.category(), Category::Authentication);
    assert_eq!(changed.previous_category, Some(Category::Utility));
    assert_eq!(changed.announced_category, Some(Category::Authentication));
    assert_eq!((changed.state, changed.revision), (found.state, found.revision + 1));
    assert_eq!(text().await, None, "codes are not compared with other texts");
    let version = store.version(mine, id, 1).await.unwrap().unwrap();
    assert_eq!(version.previous_category, Some(Category::Utility));
    let edit = Edit::Replace { content: None, category: None };
    let edited = done(store.edit_template(scripted_change(mine, id, 6), edit).await.unwrap());
    assert_eq!(edited.announced_category, None, "it was for the version before");
    assert_integrity(store).await;
}

async fn assert_integrity(store: &Shared) {
    let findings = store.check_integrity().await.unwrap();
    assert!(findings.iter().all(|finding| finding.ok), "{findings:?}");
}

#[on_both_databases]
async fn a_quality_is_stored_and_outlasts_an_edit(store: &Shared) {
    let mine = emulator(store, "a", false).await;
    let id = create(store, scripted(mine, "order_quality_red", 0)).await;
    assert_eq!(stored(store, mine, id).await.quality, Quality::Red);
    assert!(
        store.set_review_rules(mine, rules(r#"{"rules":[{"outcome":"pending"}]}"#)).await.unwrap()
    );
    let edit = Edit::Replace { content: None, category: None };
    let edited = done(store.edit_template(scripted_change(mine, id, 1), edit).await.unwrap());
    assert_eq!((edited.quality, edited.state.status()), (Quality::Red, Status::Pending));
    let listed = store.translations(mine, "order_quality_red").await.unwrap();
    assert_eq!(listed, [edited]);
    let normal = account(store, "normal").await;
    let normal_id = create(store, new(normal, "hello")).await;
    let found = stored(store, normal, normal_id).await;
    assert_eq!((found.quality, found.announced_category), (Quality::Unknown, None));
}

#[on_both_databases]
async fn an_upsert_runs_the_script_of_each_template(store: &Shared) {
    let mine = emulator(store, "a", false).await;
    let first = scripted(mine, "a_pause_1h", 0);
    let upsert = |at: i64, rejected: &str| {
        let again = scripted(mine, "a_pause_1h", at);
        let edited = scripted(mine, rejected, at);
        let again = NewTemplate { template: edited.template, ..again };
        store.upsert_templates(vec![again, scripted(mine, rejected, at)])
    };
    let outcome = store.upsert_templates(vec![first]).await.unwrap();
    assert!(matches!(&outcome, UpsertOutcome::Done(done) if done[0].status == Status::Approved));
    let UpsertOutcome::Done(done) = upsert(2 * HOUR, "b_reject").await.unwrap() else {
        panic!("nothing is refused")
    };
    let statuses: Vec<Status> = done.iter().map(|it| it.status).collect();
    assert_eq!(statuses, [Status::Paused, Status::Rejected], "the pause was due before the edit");
}
