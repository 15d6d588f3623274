//! Cases about emulator accounts and their clocks, and helpers for the other cases about them.

use galley_domain::{
    document::Document,
    emulator::{
        EmulatorKind,
        clock::{Clock, ClockChange, ClockRefusal},
        faults::{Call, Fault},
        rules::ReviewRules,
    },
    id::{AccountId, TemplateId},
    rulebook::Category,
    template::Review,
};
use galley_store::{
    Author, ChangeClockOutcome, CreateAccountOutcome, CreateFaultOutcome, DeleteAccountOutcome,
    DueSteps, DueWork, EmulatedApp, NewAccount, NewMessage, NewTemplate, NewUpload,
    SetReviewOutcome, StoredSecret, StoredTemplate, TemplateChange,
};
use galley_test_macros::on_both_databases;
use jiff::{SignedDuration, Timestamp};

use super::{
    deliveries::lease,
    fixture::{Shared, account, change, create, done, new_account, noon, translation},
    uploads::{append, begin, upload},
    webhooks::{endpoint, register},
};

pub(crate) const SECOND: i64 = 1_000;
pub(crate) const MINUTE: i64 = 60 * SECOND;
pub(crate) const HOUR: i64 = 60 * MINUTE;
pub(crate) const DAY: i64 = 24 * HOUR;

/// Creates an emulator account at noon.
pub(crate) async fn emulator(store: &Shared, name: &str, faithful: bool) -> AccountId {
    let emulator = Some(EmulatorKind { faithful });
    match store.create_account(NewAccount { emulator, ..new_account(name) }).await.unwrap() {
        CreateAccountOutcome::Created(id, _) => id,
        other => panic!("{other:?}"),
    }
}

/// A template that a script reviews, created so long after noon.
pub(crate) fn scripted(account: AccountId, name: &str, at: i64) -> NewTemplate {
    let new = translation(account, name, "en_US", Category::Utility);
    NewTemplate { review: Review::Scripted, at: noon(at), ..new }
}

/// A change of such a template, so long after noon.
pub(crate) fn scripted_change(account: AccountId, id: TemplateId, at: i64) -> TemplateChange {
    TemplateChange { review: Review::Scripted, at: noon(at), ..change(account, id) }
}

pub(crate) async fn stored(store: &Shared, account: AccountId, id: TemplateId) -> StoredTemplate {
    (*store.template(account, id).await.unwrap().unwrap()).clone()
}

/// Moves the clock forward and lets it stand.
pub(crate) async fn advance(store: &Shared, account: AccountId, by: i64, at: i64) -> Clock {
    let change = ClockChange::Advance(SignedDuration::from_millis(by));
    match store.change_clock(account, change, noon(at)).await.unwrap() {
        ChangeClockOutcome::Changed(clock) => clock,
        other => panic!("{other:?}"),
    }
}

pub(crate) fn rules(document: &str) -> ReviewRules {
    ReviewRules::read(&Document::parse(document.as_bytes()).unwrap()).unwrap()
}

pub(crate) fn fault(document: &str) -> Fault {
    Fault::read(&Document::parse(document.as_bytes()).unwrap()).unwrap()
}

/// A message that is sent so long after noon.
pub(crate) fn message(account: AccountId, at: i64) -> NewMessage {
    NewMessage {
        account,
        phone: "15550001111".to_owned(),
        to: "4915112345678".to_owned(),
        template: TemplateId::new(7).unwrap(),
        version: 2,
        category: Category::Marketing,
        texts: r#"{"body":"Grüße\u0000 😀"}"#.to_owned(),
        failure: None,
        callback_data: Some("order-4711".to_owned()),
        at: noon(at),
    }
}

const TRUNCATE: &str = r#"{"call":"send","kind":"truncate","times":1}"#;

#[on_both_databases]
async fn an_emulator_account_keeps_its_kind_and_its_review(store: &Shared) {
    let by = Author::operator(noon(1));
    for faithful in [false, true] {
        let id = emulator(store, &format!("{faithful}"), faithful).await;
        let found = store.account(id).await.unwrap().unwrap();
        assert_eq!(found.emulator, Some(EmulatorKind { faithful }));
        assert_eq!(found.review, Review::Scripted, "whatever its creation says");
        for review in [Review::Auto, Review::Scripted] {
            let refused = store.set_account_review(id, review, by).await.unwrap();
            assert_eq!(refused, SetReviewOutcome::Emulator);
        }
        assert_eq!(store.account(id).await.unwrap(), Some(found));
    }
    let normal = account(store, "normal").await;
    let refused = store.set_account_review(normal, Review::Scripted, by).await.unwrap();
    assert_eq!(refused, SetReviewOutcome::NotAnEmulator);
    let found = store.account(normal).await.unwrap().unwrap();
    assert_eq!((found.emulator, found.review), (None, Review::Auto));
}

#[on_both_databases]
async fn a_clock_runs_stands_and_never_moves_back(store: &Shared) {
    let (mine, other) = (emulator(store, "a", false).await, emulator(store, "b", false).await);
    let clock = || async { store.emulator_clock(mine).await.unwrap().unwrap() };
    assert_eq!(clock().await.now(noon(5)), noon(5), "a new clock shows real time");
    let changed = advance(store, mine, HOUR, 10).await;
    assert_eq!(changed, Clock { at: noon(HOUR + 10), since: None });
    assert_eq!(clock().await, changed);
    let set = |at: i64| store.change_clock(mine, ClockChange::Set(noon(at)), noon(20));
    let refused = ChangeClockOutcome::Refused(ClockRefusal::Backwards { now: noon(HOUR + 10) });
    assert_eq!(set(HOUR).await.unwrap(), refused);
    let refused = set(11 * 366 * DAY).await.unwrap();
    let is_too_far = |it: &ChangeClockOutcome| {
        matches!(it, ChangeClockOutcome::Refused(ClockRefusal::TooFarAhead(_)))
    };
    assert!(is_too_far(&refused), "{refused:?}");
    assert_eq!(clock().await, changed);
    let follow = store.change_clock(mine, ClockChange::Follow, noon(30)).await.unwrap();
    let running = Clock { at: noon(HOUR + 10), since: Some(noon(30)) };
    assert_eq!(follow, ChangeClockOutcome::Changed(running));
    assert_eq!(clock().await.now(noon(40)), noon(HOUR + 20));
    assert_eq!(store.emulator_clock(other).await.unwrap(), Some(Clock::new(noon(0))));
}

#[on_both_databases]
async fn an_account_that_is_not_an_emulator_has_nothing_of_it(store: &Shared) {
    let id = account(store, "a").await;
    assert_eq!(store.emulator_clock(id).await.unwrap(), None);
    let changed = store.change_clock(id, ClockChange::Follow, noon(0)).await.unwrap();
    assert_eq!(changed, ChangeClockOutcome::NotAnEmulator);
    assert!(
        !store.set_review_rules(id, rules(r#"{"rules":[{"outcome":"reject"}]}"#)).await.unwrap()
    );
    assert_eq!(store.review_rules(id).await.unwrap(), ReviewRules::default());
    assert!(!store.set_app_secret(id, StoredSecret(vec![7])).await.unwrap());
    assert!(!store.set_callback_override(id, Some("https://x/".to_owned())).await.unwrap());
    assert_eq!(store.emulated_app(id).await.unwrap(), EmulatedApp::default());
    let created = store.create_fault(id, fault(TRUNCATE), noon(0));
    assert_eq!(created.await.unwrap(), CreateFaultOutcome::NotAnEmulator);
    assert_eq!(store.decide_fault(id, Call::Send, Some("a")).await.unwrap(), None);
    assert_eq!(store.add_message(message(id, 0)).await.unwrap(), None);
    assert_eq!(store.messages(id, None, 1_000, noon(0)).await.unwrap(), []);
    assert_eq!(store.apply_due_steps(id, noon(0)).await.unwrap(), DueSteps::default());
}

#[on_both_databases]
async fn the_secret_and_the_override_of_an_app_change_independently(store: &Shared) {
    let ids = [emulator(store, "a", true).await, emulator(store, "b", true).await];
    let [mine, other] = ids;
    let url = "https://shop.example/hook".to_owned();
    assert!(store.set_callback_override(mine, Some(url.clone())).await.unwrap());
    for secret in [StoredSecret(vec![7]), StoredSecret(vec![8])] {
        assert!(store.set_app_secret(mine, secret.clone()).await.unwrap());
        let app = EmulatedApp { secret: Some(secret), callback_override: Some(url.clone()) };
        assert_eq!(store.emulated_app(mine).await.unwrap(), app);
    }
    assert!(store.set_callback_override(mine, None).await.unwrap());
    let app = EmulatedApp { secret: Some(StoredSecret(vec![8])), callback_override: None };
    assert_eq!(store.emulated_app(mine).await.unwrap(), app);
    assert_eq!(store.emulated_app(other).await.unwrap(), EmulatedApp::default());
}

#[on_both_databases]
async fn deleting_an_emulator_account_deletes_what_only_it_has(store: &Shared) {
    let ids = [emulator(store, "a", true).await, emulator(store, "b", true).await];
    let [mine, other] = ids;
    let set = rules(r#"{"rules":[{"outcome":"pending","after":"1h"}]}"#);
    for id in ids {
        assert!(store.set_review_rules(id, set.clone()).await.unwrap());
        assert!(store.set_app_secret(id, StoredSecret(vec![7])).await.unwrap());
        let created = store.create_fault(id, fault(TRUNCATE), noon(0));
        assert!(matches!(created.await.unwrap(), CreateFaultOutcome::Created(_)));
        assert!(store.add_message(message(id, 0)).await.unwrap().is_some());
        let template = create(store, scripted(id, "hello", 0)).await;
        if id == mine {
            done(store.delete_template(scripted_change(id, template, 1)).await.unwrap());
        }
    }
    let by = Author::operator(noon(2));
    store.set_account_disabled(mine, true, by).await.unwrap();
    assert_eq!(store.delete_account(mine, by).await.unwrap(), DeleteAccountOutcome::Deleted);
    assert_eq!(store.emulator_clock(mine).await.unwrap(), None);
    assert_eq!(store.review_rules(mine).await.unwrap(), ReviewRules::default());
    assert_eq!(store.emulated_app(mine).await.unwrap(), EmulatedApp::default());
    assert_eq!(store.faults(mine).await.unwrap(), []);
    assert_eq!(store.add_message(message(mine, 3)).await.unwrap(), None);
    assert_eq!(store.messages(mine, None, 1_000, noon(3)).await.unwrap(), []);
    assert_eq!(store.review_rules(other).await.unwrap(), set);
    assert_eq!(store.faults(other).await.unwrap().len(), 1);
    assert_eq!(store.messages(other, None, 1_000, noon(3)).await.unwrap().len(), 1);
    let due = store.accounts_with_due_steps(noon(2 * HOUR)).await.unwrap();
    assert_eq!(due, DueWork { now: vec![other], next_at: None });
}

#[on_both_databases]
async fn an_upload_keeps_its_time_on_the_clock_of_the_account(store: &Shared) {
    let mine = emulator(store, "a", false).await;
    let (file, at) = (*b"\x89PNG\r\n\x1a\n", noon(DAY));
    let emulated_at: Option<Timestamp> = Some(at);
    begin(store, NewUpload { emulated_at, ..upload(mine, "u1", file.len()) }).await;
    begin(store, upload(mine, "u2", file.len())).await;
    for (id, emulated_at) in [("u1", emulated_at), ("u2", None)] {
        append(store, mine, id, 0, &file).await;
        let found = store.upload(mine, id, noon(1)).await.unwrap().unwrap();
        assert_eq!((found.emulated_at, found.created_at), (emulated_at, noon(0)));
        let sample = store.sample(mine, &format!("4::{id}"), noon(1)).await.unwrap().unwrap();
        assert_eq!(sample.emulated_at, emulated_at);
    }
}

#[on_both_databases]
async fn a_leased_delivery_says_whether_its_account_is_an_emulator(store: &Shared) {
    let accounts = [
        (account(store, "a").await, false),
        (emulator(store, "b", false).await, true),
        (emulator(store, "c", true).await, true),
    ];
    for (account, is_emulator) in accounts {
        let id = register(store, endpoint(account)).await.id;
        create(store, translation(account, "one", "en_US", Category::Utility)).await;
        let due = lease(store, id, HOUR).await.unwrap();
        assert_eq!((due.webhook.account, due.is_emulator), (account, is_emulator));
    }
}

#[on_both_databases]
async fn a_file_of_a_faithful_account_names_the_account(store: &Shared) {
    let file = *b"\x89PNG\r\n\x1a\n";
    let accounts = [
        (account(store, "normal").await, false),
        (emulator(store, "standard", false).await, false),
        (emulator(store, "faithful", true).await, true),
    ];
    for (index, (id, is_faithful)) in accounts.into_iter().enumerate() {
        let name = format!("u{index}");
        begin(store, upload(id, &name, file.len())).await;
        append(store, id, &name, 0, &file).await;
        let media = store.media(&format!("4::{name}")).await.unwrap().unwrap();
        assert_eq!(media.faithful, is_faithful.then_some(id));
    }
}
