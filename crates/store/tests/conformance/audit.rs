//! Cases about the audit feed.

use std::{collections::BTreeSet, path::Path};

use galley_domain::{account::Scopes, id::AccountId, template::Review};
use galley_store::{
    AccountLimits, AccountQuotas, Actor, AuditEntry, AuditKind, Author, ConnectionChange,
    CreateAccountOutcome, CredentialId, CredentialKind, DeleteAccountOutcome, LinkRedemption,
    MAX_DAILY_CHANGES, NewAccount, NewConsoleLink, NewCredential, RedeemLinkOutcome,
    RenameAccountOutcome, RevokeTokenOutcome, SecretHash, SetReviewOutcome, StoreError,
    StoredSecret, TemplateChange, UpstreamAction, UpstreamActionOutcome, WebhookChange,
};
use galley_test_macros::on_both_databases;
use serde_json::{Value, json};

use super::{
    credentials::{added, issued},
    fixture::{Shared, account, create, new_account, noon, secret},
    upstream::{connect, whatsapp},
    upstream_submission::{changing, submitted},
    webhooks::{endpoint, register},
};

/// The methods of the store that change accounts, credentials, phone numbers or endpoints, and the
/// entries that each appends. A new method of the store is listed here or in one of the lists below.
const AUDITED: &[(&str, &[AuditKind])] = &[
    (
        "create_account",
        &[AuditKind::AccountCreated, AuditKind::PhoneAdded, AuditKind::CredentialCreated],
    ),
    ("rename_account", &[AuditKind::AccountRenamed]),
    ("set_account_review", &[AuditKind::AccountReviewChanged]),
    ("set_account_four_eyes", &[AuditKind::AccountFourEyesChanged]),
    ("set_account_disabled", &[AuditKind::AccountDisabled, AuditKind::AccountEnabled]),
    (
        "delete_account",
        &[
            AuditKind::AccountCreated,
            AuditKind::PhoneAdded,
            AuditKind::CredentialCreated,
            AuditKind::WebhookCreated,
            AuditKind::AccountDisabled,
            AuditKind::CredentialRevoked,
            AuditKind::WebhookDeleted,
            AuditKind::PhoneRemoved,
            AuditKind::AccountDeleted,
        ],
    ),
    ("set_account_limits", &[AuditKind::AccountLimitsChanged]),
    ("set_account_quotas", &[AuditKind::AccountLimitsChanged]),
    ("add_phone", &[AuditKind::PhoneAdded]),
    ("claim_phone", &[AuditKind::PhoneAdded]),
    ("remove_phone", &[AuditKind::PhoneRemoved]),
    ("add_credential", &[AuditKind::CredentialCreated]),
    ("issue_token", &[AuditKind::CredentialCreated]),
    ("revoke_token", &[AuditKind::CredentialCreated, AuditKind::CredentialRevoked]),
    ("rotate_credential", &[AuditKind::CredentialRotated]),
    ("revoke_credential", &[AuditKind::CredentialRevoked]),
    ("create_console_link", &[AuditKind::ConsoleLinkCreated]),
    ("redeem_console_link", &[AuditKind::ConsoleLinkCreated, AuditKind::CredentialCreated]),
    ("create_webhook", &[AuditKind::WebhookCreated]),
    ("change_webhook", &[AuditKind::WebhookChanged]),
    ("rotate_webhook", &[AuditKind::WebhookSecretRotated]),
    ("delete_webhook", &[AuditKind::WebhookDeleted]),
    ("connect_upstream", &[AuditKind::AccountCreated, AuditKind::UpstreamConnected]),
    ("change_connection", &[AuditKind::UpstreamChanged]),
    ("act_upstream", &[AuditKind::TemplateUpstreamAction]),
    ("abandon_operations", &[AuditKind::TemplateUpstreamAction]),
    ("disconnect_upstream", &[AuditKind::UpstreamDisconnected]),
];

/// Methods that read only.
const READING: &str = "account accounts active_tokens audit_entries check_clock check_integrity \
    count_templates credential credential_epoch credentials deliveries events has_had_accounts \
    idempotency_record languages list media media_chunk name_conflict newest_event phone_owner phones ping \
    poll_events sample session statistics template template_with_text translations upload version versions \
    accounts_with_due_steps emulated_app emulator_clock endpoints_with_statuses faults messages review_rules \
    webhook webhooks webhooks_with_work connection connection_by_hook connections \
    connections_to connections_with_work mirror_counts mirror_of mirrored mirrored_document mirrored_template newest_operation open_operations operation operation_template operations \
    operations_of templates_to_read has_own_approvals";

/// Methods of emulator accounts, which are for tests only.
const EMULATOR: &str = "add_message apply_due_steps change_clock create_fault decide_fault \
    delete_faults lease_statuses record_statuses set_app_secret \
    set_callback_override set_review_rules";

/// Methods of workers that follow a provider, and of the operations that they make. Their changes are
/// events.
const UPSTREAM: &str = "begin_operation begin_sweep extend_lease finish_sweep lease_connection \
    postpone_read record_absent record_call record_conflict record_hints record_page record_probe record_read record_token_expiry release_connection \
    release_operations rest_calls set_degraded skip_operation take_call withdraw_approvals";

/// Methods whose changes are events of templates.
const TEMPLATE_CHANGES: &str = "create_template delete_template delete_templates \
    delete_translations edit_template review_template upsert_templates";

/// Methods that change nothing that a person decides: uploads, deliveries, counters, indexes, copies
/// and retention. `record_attempt` appends an entry when it disables an endpoint.
const UPKEEP: &str = "accept_clock append_upload backup begin_upload cancel_upload \
    count_stored_bytes delete_expired_events delete_expired_records index_account lease_delivery \
    observe_clock record_attempt record_credential_use \
    record_session_use end_session start_session replay update_search_index";

async fn entries(store: &Shared, account: Option<AccountId>) -> Vec<AuditEntry> {
    store.audit_entries(account, 0, 1_000).await.unwrap()
}

fn author() -> Author {
    Author::operator(noon(5))
}

fn token(text: &str) -> NewCredential {
    NewCredential { name: format!("{text} job"), ..secret(CredentialKind::Token, text) }
}

fn link(account: AccountId, text: &str) -> NewConsoleLink {
    let name = "Mira".to_owned();
    NewConsoleLink { account, hash: SecretHash::of(text), scopes: Scopes::DEFAULT, name }
}

/// Calls a method so that it changes something.
async fn call(store: &Shared, method: &str, id: AccountId) {
    match method {
        "create_account" => {
            let new = NewAccount {
                phones: vec!["111".to_owned()],
                credentials: vec![token("first")],
                ..new_account("another")
            };
            let created = store.create_account(new).await.unwrap();
            assert!(matches!(created, CreateAccountOutcome::Created(..)));
        }
        "rename_account" => {
            let renamed = store.rename_account(id, "renamed".to_owned(), author()).await.unwrap();
            assert_eq!(renamed, RenameAccountOutcome::Renamed);
        }
        "set_account_review" => {
            let set = store.set_account_review(id, Review::Manual, author()).await.unwrap();
            assert_eq!(set, SetReviewOutcome::Set);
        }
        "set_account_four_eyes" => {
            assert!(store.set_account_four_eyes(id, true, author()).await.unwrap());
        }
        "create_console_link" => {
            assert!(store.create_console_link(link(id, "unused"), author()).await.unwrap());
        }
        "redeem_console_link" => {
            assert!(store.create_console_link(link(id, "used"), author()).await.unwrap());
            let [link, token, session] = ["used", "token", "session"].map(SecretHash::of);
            let redemption = LinkRedemption { link, token, session, at: noon(6) };
            let redeemed = store.redeem_console_link(redemption).await.unwrap();
            assert!(matches!(redeemed, RedeemLinkOutcome::Redeemed(_)), "{redeemed:?}");
        }
        "set_account_disabled" => {
            assert!(store.set_account_disabled(id, true, author()).await.unwrap());
            assert!(store.set_account_disabled(id, false, author()).await.unwrap());
        }
        "delete_account" => {
            let new = NewAccount {
                phones: vec!["444".to_owned()],
                credentials: vec![token("doomed")],
                ..new_account("doomed")
            };
            let CreateAccountOutcome::Created(doomed, _) = store.create_account(new).await.unwrap()
            else {
                panic!("the account is created")
            };
            register(store, endpoint(doomed)).await;
            store.set_account_disabled(doomed, true, author()).await.unwrap();
            let deleted = store.delete_account(doomed, author()).await.unwrap();
            assert_eq!(deleted, DeleteAccountOutcome::Deleted);
        }
        "set_account_limits" => {
            let limits = Some(AccountLimits { templates: 9 });
            assert!(store.set_account_limits(id, limits, author()).await.unwrap());
        }
        "set_account_quotas" => {
            let quotas = AccountQuotas { requests_per_second: Some(3), ..AccountQuotas::default() };
            assert!(store.set_account_quotas(id, quotas, author()).await.unwrap());
        }
        "add_phone" => {
            store.add_phone(id, "222", author()).await.unwrap();
        }
        "claim_phone" => {
            store.claim_phone(id, "333", Some(9), author()).await.unwrap();
        }
        "remove_phone" => assert!(store.remove_phone(id, "222", author()).await.unwrap()),
        "add_credential" => {
            added(store.add_credential(id, token("added"), author()).await.unwrap());
        }
        "issue_token" => {
            issued(store.issue_token(id, token("issued"), author()).await.unwrap());
        }
        "revoke_token" => {
            let new = added(store.add_credential(id, token("short"), author()).await.unwrap());
            let revoked = store.revoke_token(id, new, author()).await.unwrap();
            assert_eq!(revoked, RevokeTokenOutcome::Revoked);
        }
        "rotate_credential" => {
            let old = store.credentials(id).await.unwrap()[0].id;
            store.rotate_credential(old, token("rotated"), noon(9), author()).await.unwrap();
        }
        "revoke_credential" => {
            let old = store.credentials(id).await.unwrap()[0].id;
            assert!(store.revoke_credential(old, author()).await.unwrap());
        }
        other => call_for_connection(store, other, id).await,
    }
}

async fn call_for_connection(store: &Shared, method: &str, id: AccountId) {
    match method {
        "connect_upstream" => {
            connect(store, whatsapp(store, "connected").await).await;
        }
        "change_connection" => {
            let connected = store.connections().await.unwrap()[0].account;
            let change = ConnectionChange::Token(StoredSecret(vec![8]), None);
            assert!(store.change_connection(connected, change, author()).await.unwrap());
        }
        "act_upstream" => {
            let connected = store.connections().await.unwrap()[0].account;
            let template = create(store, submitted(connected, "a", Review::Auto)).await;
            let change = TemplateChange {
                actor: Actor::Operator,
                ..changing(connected, template, Review::Provider)
            };
            let act = store.act_upstream(change.clone(), UpstreamAction::Submit);
            assert!(matches!(act.await.unwrap(), UpstreamActionOutcome::Queued(_)));
            // What is refused is not recorded.
            store.act_upstream(change, UpstreamAction::Submit).await.unwrap();
        }
        "abandon_operations" => {
            let connected = store.connections().await.unwrap()[0].account;
            let [operation] = &store.operations(connected, None, 10).await.unwrap()[..] else {
                panic!("a template was submitted");
            };
            let abandoned = store.abandon_operations(connected, operation.template, author());
            assert_eq!(abandoned.await.unwrap(), 1);
        }
        "disconnect_upstream" => {
            let connected = store.connections().await.unwrap()[0].account;
            assert!(store.disconnect_upstream(connected, author()).await.unwrap());
        }
        other => call_for_endpoint(store, other, id).await,
    }
}

async fn call_for_endpoint(store: &Shared, method: &str, id: AccountId) {
    let endpoint_id = match method {
        "create_webhook" => {
            register(store, endpoint(id)).await;
            return;
        }
        _ => store.webhooks(id).await.unwrap()[0].id,
    };
    match method {
        "change_webhook" => {
            let change = WebhookChange { url: None, events: None, disabled: Some(true) };
            store.change_webhook(id, endpoint_id, change, author()).await.unwrap();
        }
        "rotate_webhook" => {
            let secret = StoredSecret(vec![9]);
            let rotation = store.rotate_webhook(id, endpoint_id, secret, noon(9), true, author());
            rotation.await.unwrap();
        }
        "delete_webhook" => {
            assert!(store.delete_webhook(id, endpoint_id, author()).await.unwrap());
        }
        other => panic!("the case does not call {other}"),
    }
}

#[on_both_databases]
async fn every_change_of_accounts_credentials_and_endpoints_is_recorded(store: &Shared) {
    let id = account(store, "mine").await;
    let mut recorded = BTreeSet::from([AuditKind::StoreMigrated.as_str().to_owned()]);
    for (method, kinds) in AUDITED {
        let before = entries(store, None).await.len();
        call(store, method, id).await;
        let new: Vec<AuditEntry> = entries(store, None).await.split_off(before);
        let expected: Vec<&str> = kinds.iter().map(|kind| kind.as_str()).collect();
        let found: Vec<&str> = new.iter().map(|entry| &*entry.kind).collect();
        assert_eq!(found, expected, "{method}");
        assert!(new.iter().all(|entry| entry.actor == Actor::Operator && entry.account.is_some()));
        recorded.extend(new.into_iter().map(|entry| entry.kind));
    }
    // A migration of the schema needs an older store; the tests of the schemas cover it.
    let all: BTreeSet<String> = AuditKind::ALL.iter().map(|it| it.as_str().to_owned()).collect();
    assert_eq!(recorded, all, "a kind has no entry");
}

#[test]
fn every_method_that_changes_something_is_listed_with_its_entries() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let subjects = std::fs::read_dir(&source).unwrap().map(|entry| entry.unwrap().path());
    // These methods are not those of the `Store`.
    let others =
        ["engine", "fair_slots.rs", "migrate", "migrate.rs", "postgres", "postgres.rs", "sqlite"];
    let methods: BTreeSet<String> = subjects
        .filter(|path| others.iter().all(|other| !path.ends_with(other)))
        .flat_map(|path| methods_in(&path))
        .collect();
    let others = [READING, EMULATOR, UPSTREAM, TEMPLATE_CHANGES, UPKEEP].map(str::split_whitespace);
    let listed = AUDITED.iter().map(|(method, _)| *method).chain(others.into_iter().flatten());
    let listed: BTreeSet<String> = listed.map(str::to_owned).collect();
    assert_eq!(
        methods, listed,
        "list each method with its audit entries, or with those that append none"
    );
}

/// The names of the methods in a file, or in all files of a folder, that read or write the store.
fn methods_in(path: &Path) -> BTreeSet<String> {
    if path.is_dir() {
        let entries = std::fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path());
        return entries.flat_map(|path| methods_in(&path)).collect();
    }
    let source = std::fs::read_to_string(path).unwrap();
    let is_method = |rest: &&str| rest.split(" {").next().unwrap().contains("-> StoreFuture<");
    let methods = source.split("\n    pub fn ").skip(1).filter(is_method);
    let asynchronous = source.split("\n    pub async fn ").skip(1);
    let name = |rest: &str| rest.split(['(', '<']).next().unwrap().to_owned();
    methods.chain(asynchronous).map(name).collect()
}

#[on_both_databases]
async fn an_entry_names_its_actor_and_contains_no_secret(store: &Shared) {
    let mine = account(store, "mine").await;
    let boss = added(store.add_credential(mine, token("boss"), author()).await.unwrap());
    let by = Author::token(boss, noon(6));
    let issued = issued(store.issue_token(mine, token("nightly"), by).await.unwrap());
    let entry = entries(store, Some(mine)).await.pop().unwrap();
    assert_eq!((entry.actor, &*entry.actor_name), (Actor::Token(boss), "boss job"));
    assert_eq!((entry.at, entry.account), (noon(6), Some(mine)));
    assert_eq!((&*entry.kind, entry.subject), ("credential.created", issued.to_string()));
    let expected = json!({
        "type": "token", "name": "nightly job", "scopes": "read,write,review,webhooks",
        "expires_at": null,
    });
    assert_eq!(Value::Object(entry.details), expected);
}

#[on_both_databases]
async fn an_account_reads_only_its_own_entries_page_by_page(store: &Shared) {
    let (mine, theirs) = (account(store, "mine").await, account(store, "theirs").await);
    for number in 0..3 {
        store.add_phone(mine, &format!("1{number}"), author()).await.unwrap();
        store.add_phone(theirs, &format!("2{number}"), author()).await.unwrap();
    }
    let mut subjects = Vec::new();
    let mut after = 0;
    loop {
        let page = store.audit_entries(Some(mine), after, 2).await.unwrap();
        let Some(last) = page.last() else { break };
        after = last.seq;
        subjects.extend(page.into_iter().map(|entry| entry.subject));
    }
    assert_eq!(subjects, [&*mine.to_string(), "10", "11", "12"]);
    let all = entries(store, None).await;
    assert_eq!(all.len(), 8);
    assert!(all.is_sorted_by(|first, second| first.seq < second.seq));
    assert!(store.audit_entries(None, u64::MAX, 10).await.unwrap().is_empty());
}

#[on_both_databases]
async fn a_reader_misses_no_entry_of_concurrent_changes(store: &Shared) {
    let mine = account(store, "mine").await;
    let writers: Vec<_> = (0..20)
        .map(|number| {
            let store = Shared::clone(store);
            tokio::spawn(async move {
                let phone = number.to_string();
                store.claim_phone(mine, &phone, Some(100), author()).await.unwrap()
            })
        })
        .collect();
    let (mut after, mut seen) = (0, 0);
    loop {
        let is_last = writers.iter().all(tokio::task::JoinHandle::is_finished);
        let page = store.audit_entries(Some(mine), after, 100).await.unwrap();
        seen += page.len();
        after = page.last().map_or(after, |entry| entry.seq);
        if is_last {
            break;
        }
        tokio::task::yield_now().await;
    }
    for writer in writers {
        writer.await.unwrap();
    }
    assert_eq!(seen, 21, "the entry of the account and those of its phone numbers");
}

#[on_both_databases]
async fn tokens_change_an_account_a_limited_number_of_times_a_day(store: &Shared) {
    let mine = account(store, "mine").await;
    let boss = added(store.add_credential(mine, token("boss"), author()).await.unwrap());
    let webhook = register(store, endpoint(mine)).await.id;
    let change = async |disabled, by| {
        let change = WebhookChange { url: None, events: None, disabled: Some(disabled) };
        store.change_webhook(mine, webhook, change, by).await
    };
    let first = Author::token(boss, noon(10));
    for number in 0..MAX_DAILY_CHANGES {
        change(number % 2 == 0, first).await.unwrap();
    }
    let day = 24 * 3_600_000;
    let refused = change(true, Author::token(boss, noon(day))).await;
    let Err(StoreError::TooManyChanges { retry_after }) = refused else { panic!("{refused:?}") };
    assert_eq!(retry_after.as_millis(), 10);
    let by = Author::token(boss, noon(11));
    let issued = store.issue_token(mine, token("beyond"), by).await;
    assert!(matches!(issued, Err(StoreError::TooManyChanges { .. })), "{issued:?}");
    change(true, Author::operator(noon(11))).await.unwrap();
    change(false, Author::token(boss, noon(day + 10))).await.unwrap();
    assert!(store.delete_webhook(mine, webhook, by).await.unwrap(), "a deletion is possible");
    let revoked = store.revoke_token(mine, boss, by).await.unwrap();
    assert_eq!(revoked, RevokeTokenOutcome::Revoked, "a revocation is possible");
}

#[on_both_databases]
async fn a_change_without_effect_is_not_recorded(store: &Shared) {
    let mine = account(store, "mine").await;
    let webhook = register(store, endpoint(mine)).await;
    let before = entries(store, None).await.len();
    let change = WebhookChange {
        url: Some(webhook.url.clone()),
        events: Some(webhook.events.clone()),
        disabled: Some(false),
    };
    store.change_webhook(mine, webhook.id, change, author()).await.unwrap();
    store.rename_account(mine, "mine".to_owned(), author()).await.unwrap();
    let found = store.account(mine).await.unwrap().unwrap();
    let set = store.set_account_review(mine, found.review, author()).await.unwrap();
    assert_eq!(set, SetReviewOutcome::Set);
    assert!(store.set_account_disabled(mine, false, author()).await.unwrap());
    assert!(store.set_account_limits(mine, found.limits, author()).await.unwrap());
    assert!(store.set_account_quotas(mine, found.quotas, author()).await.unwrap());
    assert_eq!(entries(store, None).await.len(), before);
}

#[on_both_databases]
async fn a_refused_change_is_not_recorded(store: &Shared) {
    let (mine, theirs) = (account(store, "mine").await, account(store, "theirs").await);
    store.add_phone(theirs, "1", author()).await.unwrap();
    let before = entries(store, None).await.len();
    store.add_phone(mine, "1", author()).await.unwrap();
    assert!(!store.remove_phone(mine, "1", author()).await.unwrap());
    assert!(!store.revoke_credential(CredentialId(999), author()).await.unwrap());
    let taken = store.rename_account(mine, "theirs".to_owned(), author()).await.unwrap();
    assert_eq!(taken, RenameAccountOutcome::NameTaken);
    let unknown = AccountId::new(1).unwrap();
    let absent = store.rename_account(unknown, "new".to_owned(), author()).await.unwrap();
    assert_eq!(absent, RenameAccountOutcome::NotFound);
    let set = store.set_account_review(unknown, Review::Manual, author()).await.unwrap();
    assert_eq!(set, SetReviewOutcome::NotFound);
    assert!(!store.set_account_disabled(unknown, true, author()).await.unwrap());
    assert_eq!(entries(store, None).await.len(), before);
}
