//! Cases about sessions of the console, the links that start them, and four eyes.

mod four_eyes;

#[cfg(feature = "postgres-suite")]
use std::sync::Arc;

use galley_domain::{
    account::Scopes,
    id::AccountId,
    template::{Review, Status, edit::Edit, lifecycle::Trigger},
};
use galley_store::{
    Actor, AddCredentialOutcome, Author, ChangeOutcome, CredentialId, CredentialKind,
    IssueTokenOutcome, LinkRedemption, MAX_SESSIONS_PER_TOKEN, NewConsoleLink, NewCredential,
    NewSession, NewTemplate, RedeemLinkOutcome, RetentionCursor, SecretHash, Session,
    TemplateChange,
};
use galley_test_macros::on_both_databases;
#[cfg(feature = "postgres-suite")]
use tokio::task::JoinSet;

use super::fixture::{ACTOR, Shared, account, change, create, new, noon, secret};
#[cfg(feature = "postgres-suite")]
use super::{
    fixture::{client, fresh_database, open_postgres},
    one_database::database_name,
};

const HOUR: i64 = 3_600_000;

/// When a session without use ends: after two hours, and the time that a use may not be recorded.
const IDLE: i64 = 2 * HOUR + 120_000;

pub(crate) async fn token(store: &Shared, account: AccountId, text: &str) -> CredentialId {
    let new = secret(CredentialKind::Token, text);
    match store.add_credential(account, new, Author::operator(noon(0))).await.unwrap() {
        AddCredentialOutcome::Added(id) => id,
        other => panic!("{other:?}"),
    }
}

async fn start(store: &Shared, credential: CredentialId, text: &str, at: i64) -> SecretHash {
    let hash = SecretHash::of(text);
    store.start_session(NewSession::new(hash, credential, None, noon(at))).await.unwrap();
    hash
}

async fn session(store: &Shared, hash: SecretHash, at: i64) -> Option<Session> {
    store.session(hash, noon(at)).await.unwrap()
}

#[on_both_databases]
async fn a_session_reads_back_until_it_ends(store: &Shared) {
    let mine = account(store, "mine").await;
    let credential = token(store, mine, "t").await;
    let (first, second) =
        (start(store, credential, "s1", 0).await, start(store, credential, "s2", 1).await);
    let expected = Session {
        credential,
        token: SecretHash::of("t"),
        created_at: noon(0),
        last_seen_at: noon(0),
        expires_at: noon(12 * HOUR),
    };
    assert_eq!(session(store, first, 5).await, Some(expected));
    assert_eq!(session(store, SecretHash::of("other"), 5).await, None);
    assert!(store.end_session(first).await.unwrap());
    assert!(!store.end_session(first).await.unwrap());
    assert_eq!(session(store, first, 5).await, None);
    assert!(session(store, second, 5).await.is_some(), "the other one stays");
}

#[on_both_databases]
async fn a_session_expires_when_it_is_idle_and_at_its_end(store: &Shared) {
    let mine = account(store, "mine").await;
    let credential = token(store, mine, "t").await;
    let hash = start(store, credential, "s", 0).await;
    assert!(session(store, hash, IDLE - 1).await.is_some());
    assert_eq!(session(store, hash, IDLE).await, None, "idle");
    for hour in 1..=11 {
        store.record_session_use(vec![(hash, noon(hour * HOUR))]).await.unwrap();
    }
    store.record_session_use(vec![(hash, noon(HOUR))]).await.unwrap();
    let unknown = SecretHash::of("unknown");
    store.record_session_use(vec![(unknown, noon(HOUR))]).await.unwrap();
    let used = session(store, hash, 12 * HOUR - 1).await.unwrap();
    assert_eq!(used.last_seen_at, noon(11 * HOUR), "the latest use counts");
    assert_eq!(session(store, hash, 12 * HOUR).await, None, "ended");
}

#[on_both_databases]
async fn a_token_has_a_maximum_number_of_sessions(store: &Shared) {
    let mine = account(store, "mine").await;
    let (first, other) = (token(store, mine, "t").await, token(store, mine, "u").await);
    let others = start(store, other, "other", 0).await;
    let mut sessions = Vec::new();
    for number in 0..=MAX_SESSIONS_PER_TOKEN {
        let at = i64::from(number);
        sessions.push(start(store, first, &format!("s{number}"), at).await);
    }
    assert_eq!(session(store, sessions[0], 99).await, None, "the oldest has ended");
    for hash in sessions[1..].iter().chain([&others]) {
        assert!(session(store, *hash, 99).await.is_some());
    }
}

/// The server looks for circles so late that a transaction in one would end with an error.
#[cfg(feature = "postgres-suite")]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sessions_of_one_token_never_wait_for_each_other_in_a_circle() {
    let address = fresh_database().await;
    let late = format!("ALTER DATABASE {} SET deadlock_timeout = '1h'", database_name(&address));
    client(&address).await.batch_execute(&late).await.unwrap();
    let store = open_postgres(&address).await;
    let mine = account(&store, "mine").await;
    let credential = token(&store, mine, "t").await;
    let mut browsers = JoinSet::new();
    for browser in 0..8 {
        let store = Arc::clone(&store);
        browsers.spawn(async move {
            let mut before = SecretHash::of("none");
            for at in 0..150 {
                let started = start(&store, credential, &format!("{browser} {at}"), at).await;
                let uses = [before, started].map(|hash| (hash, noon(at + 1)));
                store.record_session_use(uses.to_vec()).await.unwrap();
                before = started;
            }
        });
    }
    browsers.join_all().await;
}

#[on_both_databases]
async fn expired_sessions_and_links_are_deleted(store: &Shared) {
    let mine = account(store, "mine").await;
    let credential = token(store, mine, "t").await;
    let idle = start(store, credential, "idle", 0).await;
    let used = start(store, credential, "used", 0).await;
    store.record_session_use(vec![(used, noon(HOUR))]).await.unwrap();
    store.create_console_link(link(mine, "l"), Author::operator(noon(0))).await.unwrap();
    let sweep = RetentionCursor::default();
    store.delete_expired_records(sweep, noon(IDLE)).await.unwrap();
    // A clock that goes back does not bring them back.
    assert_eq!(session(store, idle, 1).await, None);
    assert!(session(store, used, 1).await.is_some());
    let redeemed = redeem(store, "l", 1, 1).await;
    assert_eq!(redeemed, RedeemLinkOutcome::Invalid);
}

fn link(account: AccountId, text: &str) -> NewConsoleLink {
    let scopes = Scopes::parse("read,review").unwrap();
    NewConsoleLink { account, hash: SecretHash::of(text), scopes, name: "Mira".to_owned() }
}

/// Uses a link, with a token and a session of this number.
async fn redeem(store: &Shared, link: &str, number: u32, at: i64) -> RedeemLinkOutcome {
    let token = SecretHash::of(&format!("token {number}"));
    let session = SecretHash::of(&format!("session {number}"));
    let redemption = LinkRedemption { link: SecretHash::of(link), token, session, at: noon(at) };
    store.redeem_console_link(redemption).await.unwrap()
}

#[on_both_databases]
async fn a_link_starts_one_session_with_its_scopes(store: &Shared) {
    let mine = account(store, "mine").await;
    assert!(store.create_console_link(link(mine, "l"), Author::operator(noon(0))).await.unwrap());
    let nowhere = NewConsoleLink { account: AccountId::new(999).unwrap(), ..link(mine, "m") };
    assert!(!store.create_console_link(nowhere, Author::operator(noon(0))).await.unwrap());
    assert_eq!(redeem(store, "other", 1, 1).await, RedeemLinkOutcome::Invalid);
    let RedeemLinkOutcome::Redeemed(id) = redeem(store, "l", 1, 59_999).await else {
        panic!("the link is valid")
    };
    assert_eq!(redeem(store, "l", 2, 59_999).await, RedeemLinkOutcome::Invalid, "used");
    let found = session(store, SecretHash::of("session 1"), 60_000).await.unwrap();
    assert_eq!((found.credential, found.token), (id, SecretHash::of("token 1")));
    assert_eq!(session(store, SecretHash::of("session 2"), 60_000).await, None);
    let all = store.credentials(mine).await.unwrap();
    let [token] = &all[..] else { panic!("{all:?}") };
    assert_eq!((token.id, token.kind, &*token.name), (id, CredentialKind::Token, "Mira"));
    assert_eq!(token.scopes, Scopes::parse("read,review").unwrap());
    let end = noon(12 * HOUR + 59_999);
    assert_eq!((token.expires_at, found.expires_at), (Some(end), end));
}

#[on_both_databases]
async fn one_of_many_concurrent_uses_of_a_link_succeeds(store: &Shared) {
    let mine = account(store, "mine").await;
    store.create_console_link(link(mine, "l"), Author::operator(noon(0))).await.unwrap();
    let uses: Vec<_> = (0..20)
        .map(|number| {
            let store = Shared::clone(store);
            tokio::spawn(async move { redeem(&store, "l", number, 1).await })
        })
        .collect();
    let mut redeemed = 0;
    for it in uses {
        redeemed += u32::from(it.await.unwrap() != RedeemLinkOutcome::Invalid);
    }
    assert_eq!(redeemed, 1);
    assert_eq!(store.credentials(mine).await.unwrap().len(), 1);
}

#[on_both_databases]
async fn an_expired_link_or_one_of_a_disabled_account_starts_none(store: &Shared) {
    let mine = account(store, "mine").await;
    let operator = Author::operator(noon(0));
    store.create_console_link(link(mine, "l"), operator).await.unwrap();
    assert_eq!(redeem(store, "l", 1, 60_000).await, RedeemLinkOutcome::Invalid, "expired");
    store.set_account_disabled(mine, true, operator).await.unwrap();
    assert_eq!(redeem(store, "l", 1, 1).await, RedeemLinkOutcome::AccountDisabled);
    store.delete_account(mine, operator).await.unwrap();
    assert_eq!(redeem(store, "l", 1, 1).await, RedeemLinkOutcome::Invalid, "deleted");
    assert_eq!(store.credentials(mine).await.unwrap(), []);
}

async fn decide(
    store: &Shared,
    change: &TemplateChange,
    actor: Actor,
    trigger: Trigger,
) -> ChangeOutcome {
    let change = TemplateChange { actor, expected: None, ..change.clone() };
    store.review_template(change, trigger, None).await.unwrap()
}

#[on_both_databases]
async fn a_version_is_not_decided_on_by_its_author_under_four_eyes(store: &Shared) {
    let mine = account(store, "mine").await;
    let operator = Author::operator(noon(0));
    let (author, other) = (ACTOR, Actor::Token(CredentialId(8)));
    assert!(store.set_account_four_eyes(mine, true, operator).await.unwrap());
    assert!(store.account(mine).await.unwrap().unwrap().four_eyes);
    let id = create(store, NewTemplate { review: Review::Manual, ..new(mine, "n") }).await;
    let change = TemplateChange { review: Review::Manual, ..change(mine, id) };
    for trigger in [Trigger::Approve, Trigger::Reject] {
        assert_eq!(decide(store, &change, author, trigger).await, ChangeOutcome::FourEyes);
    }
    let pending = store.template(mine, id).await.unwrap().unwrap();
    assert_eq!((pending.state.status(), pending.revision), (Status::Pending, 1), "unchanged");
    let approved = decide(store, &change, other, Trigger::Approve).await;
    assert!(matches!(approved, ChangeOutcome::Done(_)), "{approved:?}");

    // Who edits a version is its author; the author of an older one may decide on it.
    let edit = TemplateChange { actor: other, expected: None, ..change.clone() };
    let edited = store.edit_template(edit, Edit::Restore(1)).await.unwrap();
    assert!(matches!(edited, ChangeOutcome::Done(_)), "{edited:?}");
    assert_eq!(decide(store, &change, other, Trigger::Approve).await, ChangeOutcome::FourEyes);
    let approved = decide(store, &change, author, Trigger::Approve).await;
    assert!(matches!(approved, ChangeOutcome::Done(_)), "{approved:?}");

    // A hold is no decision on a version, and without four eyes the author may decide.
    let paused = decide(store, &change, author, Trigger::Pause).await;
    assert!(matches!(paused, ChangeOutcome::Done(_)), "{paused:?}");
    assert!(store.set_account_four_eyes(mine, false, operator).await.unwrap());
    let another = create(store, NewTemplate { review: Review::Manual, ..new(mine, "m") }).await;
    let change = TemplateChange { id: another, ..change };
    let approved = decide(store, &change, author, Trigger::Approve).await;
    assert!(matches!(approved, ChangeOutcome::Done(_)), "{approved:?}");
}

#[on_both_databases]
async fn under_four_eyes_tokens_issue_no_tokens(store: &Shared) {
    let mine = account(store, "mine").await;
    let operator = Author::operator(noon(0));
    let boss = token(store, mine, "boss").await;
    store.set_account_four_eyes(mine, true, operator).await.unwrap();
    let new = |text: &str| NewCredential { ..secret(CredentialKind::Token, text) };
    let by_token = store.issue_token(mine, new("a"), Author::token(boss, noon(1))).await.unwrap();
    assert_eq!(by_token, IssueTokenOutcome::FourEyes);
    let by_operator = store.issue_token(mine, new("a"), operator).await.unwrap();
    assert!(matches!(by_operator, IssueTokenOutcome::Issued(_)), "{by_operator:?}");
}
