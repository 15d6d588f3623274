//! Cases about credentials.

use galley_domain::{account::Scopes, id::AccountId};
use galley_store::{
    Actor, AddCredentialOutcome, Author, CredentialId, CredentialKind, IssueTokenOutcome,
    MAX_ACTIVE_TOKENS, NewCredential, NewTemplate, RotateCredentialOutcome, SecretHash,
};
use galley_test_macros::on_both_databases;
use jiff::Timestamp;

use super::fixture::{Shared, account, create, events, new, noon, secret};

pub(crate) fn added(outcome: AddCredentialOutcome) -> CredentialId {
    match outcome {
        AddCredentialOutcome::Added(id) => id,
        other => panic!("{other:?}"),
    }
}

pub(crate) fn issued(outcome: IssueTokenOutcome) -> CredentialId {
    match outcome {
        IssueTokenOutcome::Issued(id) => id,
        other => panic!("{other:?}"),
    }
}

#[on_both_databases]
async fn a_token_that_is_no_longer_valid_issues_none(store: &Shared) {
    let (mine, theirs) = (account(store, "a").await, account(store, "b").await);
    let operator = Author::operator(noon(0));
    let boss = NewCredential { expires_at: Some(noon(9)), ..secret(CredentialKind::Token, "boss") };
    let boss = added(store.add_credential(mine, boss, operator).await.unwrap());
    let issue = async |account, expires_at, at| {
        let new = NewCredential { expires_at, ..secret(CredentialKind::Token, "new") };
        store.issue_token(account, new, Author::token(boss, noon(at))).await.unwrap()
    };
    let end = Some(noon(9));
    assert_eq!(issue(mine, None, 1).await, IssueTokenOutcome::ExceedsCaller);
    assert_eq!(issue(mine, Some(noon(10)), 1).await, IssueTokenOutcome::ExceedsCaller);
    assert_eq!(issue(theirs, end, 1).await, IssueTokenOutcome::NotFound);
    assert_eq!(issue(mine, end, 9).await, IssueTokenOutcome::CallerExpired);
    store.set_account_disabled(mine, true, operator).await.unwrap();
    assert_eq!(issue(mine, end, 1).await, IssueTokenOutcome::AccountDisabled);
    store.set_account_disabled(mine, false, operator).await.unwrap();
    assert!(store.revoke_credential(boss, operator).await.unwrap());
    assert_eq!(issue(mine, end, 1).await, IssueTokenOutcome::CallerRevoked);
    assert_eq!(store.credentials(mine).await.unwrap().len(), 1, "none was added");
}

#[on_both_databases]
async fn a_credential_is_found_by_its_secret_and_kind(store: &Shared) {
    let account = account(store, "a").await;
    let token = NewCredential {
        scopes: Scopes::parse("read").unwrap(),
        expires_at: Some(noon(9)),
        ..secret(CredentialKind::Token, "s")
    };
    let id = added(store.add_credential(account, token, Author::operator(noon(0))).await.unwrap());
    let found =
        store.credential(CredentialKind::Token, SecretHash::of("s")).await.unwrap().unwrap();
    assert_eq!((found.id, found.account, found.expires_at), (id, account, Some(noon(9))));
    assert_eq!(found.scopes, Scopes::parse("read").unwrap());
    assert_eq!(store.credential(CredentialKind::Key, SecretHash::of("s")).await.unwrap(), None);
    let duplicate = store
        .add_credential(account, secret(CredentialKind::Token, "s"), Author::operator(noon(0)))
        .await
        .unwrap();
    assert_eq!(duplicate, AddCredentialOutcome::SecretTaken);
    added(
        store
            .add_credential(account, secret(CredentialKind::Key, "s"), Author::operator(noon(0)))
            .await
            .unwrap(),
    );
}

/// The ids and expiry times of an account's credentials.
async fn expiries(store: &Shared, account: AccountId) -> Vec<(CredentialId, Option<Timestamp>)> {
    let all = store.credentials(account).await.unwrap();
    all.iter().map(|it| (it.id, it.expires_at)).collect()
}

fn rotated(outcome: RotateCredentialOutcome) -> CredentialId {
    match outcome {
        RotateCredentialOutcome::Rotated { id, .. } => id,
        other => panic!("{other:?}"),
    }
}

#[on_both_databases]
async fn rotating_a_credential_adds_one_and_expires_the_old_one(store: &Shared) {
    let account = account(store, "a").await;
    let old = added(
        store
            .add_credential(account, secret(CredentialKind::Key, "old"), Author::operator(noon(0)))
            .await
            .unwrap(),
    );
    let new = secret(CredentialKind::Key, "new");
    let id = rotated(
        store
            .rotate_credential(old, new.clone(), noon(500), Author::operator(noon(0)))
            .await
            .unwrap(),
    );
    assert_eq!(expiries(store, account).await, [(old, Some(noon(500))), (id, None)]);
    let taken = store.rotate_credential(id, new, noon(1), Author::operator(noon(0))).await.unwrap();
    assert_eq!(taken, RotateCredentialOutcome::SecretTaken);
    assert_eq!(expiries(store, account).await, [(old, Some(noon(500))), (id, None)]);
    // A second rotation never postpones the expiry.
    let third = secret(CredentialKind::Key, "third");
    rotated(
        store.rotate_credential(old, third, noon(900), Author::operator(noon(0))).await.unwrap(),
    );
    assert_eq!(store.credentials(account).await.unwrap()[0].expires_at, Some(noon(500)));
    // An expiry of its own replaces none.
    let limited =
        NewCredential { expires_at: Some(noon(2_000)), ..secret(CredentialKind::Key, "limited") };
    rotated(
        store.rotate_credential(id, limited, noon(600), Author::operator(noon(0))).await.unwrap(),
    );
    assert_eq!(store.credentials(account).await.unwrap()[3].expires_at, Some(noon(2_000)));
    let unknown = store
        .rotate_credential(
            CredentialId(999),
            secret(CredentialKind::Key, "x"),
            noon(1),
            Author::operator(noon(0)),
        )
        .await;
    assert_eq!(unknown.unwrap(), RotateCredentialOutcome::NotFound);
}

#[on_both_databases]
async fn a_rotated_credential_keeps_its_remaining_lifetime(store: &Shared) {
    let account = account(store, "a").await;
    let expiring =
        |text| NewCredential { expires_at: Some(noon(100)), ..secret(CredentialKind::Token, text) };
    let first = added(
        store.add_credential(account, expiring("1"), Author::operator(noon(0))).await.unwrap(),
    );
    let new = secret(CredentialKind::Token, "2");
    let outcome =
        store.rotate_credential(first, new, noon(500), Author::operator(noon(9))).await.unwrap();
    let second = rotated(outcome);
    let (expires_at, old_ends_at) = (Some(noon(100)), noon(100));
    let expected = RotateCredentialOutcome::Rotated { id: second, expires_at, old_ends_at };
    assert_eq!(outcome, expected);
    // A chosen expiry replaces the remaining lifetime.
    let new = NewCredential { expires_at: Some(noon(700)), ..secret(CredentialKind::Token, "3") };
    let outcome =
        store.rotate_credential(second, new, noon(20), Author::operator(noon(9))).await.unwrap();
    let third = rotated(outcome);
    let (expires_at, old_ends_at) = (Some(noon(700)), noon(20));
    let expected = RotateCredentialOutcome::Rotated { id: third, expires_at, old_ends_at };
    assert_eq!(outcome, expected);
    assert_eq!(
        expiries(store, account).await,
        [(first, Some(noon(100))), (second, Some(noon(20))), (third, Some(noon(700)))]
    );
}

#[on_both_databases]
async fn an_expired_or_revoked_credential_cannot_be_rotated(store: &Shared) {
    let account = account(store, "a").await;
    let expiring =
        NewCredential { expires_at: Some(noon(10)), ..secret(CredentialKind::Token, "e") };
    let expired =
        added(store.add_credential(account, expiring, Author::operator(noon(0))).await.unwrap());
    let expiring =
        NewCredential { expires_at: Some(noon(7)), ..secret(CredentialKind::Token, "r") };
    let revoked =
        added(store.add_credential(account, expiring, Author::operator(noon(0))).await.unwrap());
    assert!(store.revoke_credential(revoked, Author::operator(noon(5))).await.unwrap());
    let before = store.credentials(account).await.unwrap();
    for (old, expected) in [
        (expired, RotateCredentialOutcome::Expired(noon(10))),
        (revoked, RotateCredentialOutcome::Revoked(noon(5))),
    ] {
        let new = secret(CredentialKind::Token, "new");
        let outcome =
            store.rotate_credential(old, new, noon(500), Author::operator(noon(10))).await.unwrap();
        assert_eq!(outcome, expected);
    }
    assert_eq!(store.credentials(account).await.unwrap(), before, "nothing was written");
}

#[on_both_databases]
async fn a_credential_is_revoked_once(store: &Shared) {
    let account = account(store, "a").await;
    let id = added(
        store
            .add_credential(account, secret(CredentialKind::Key, "k"), Author::operator(noon(0)))
            .await
            .unwrap(),
    );
    assert!(store.revoke_credential(id, Author::operator(noon(3))).await.unwrap());
    assert!(!store.revoke_credential(id, Author::operator(noon(4))).await.unwrap());
    assert_eq!(store.credentials(account).await.unwrap()[0].revoked_at, Some(noon(3)));
}

#[on_both_databases]
async fn invalidating_changes_increase_the_credential_epoch(store: &Shared) {
    let account = account(store, "a").await;
    let key = secret(CredentialKind::Key, "k");
    let id = added(store.add_credential(account, key, Author::operator(noon(0))).await.unwrap());
    let mut last = store.credential_epoch().await.unwrap();
    let mut raised = async |what: &str| {
        let now = store.credential_epoch().await.unwrap();
        assert!(now > last, "{what}");
        last = now;
    };
    let new = secret(CredentialKind::Key, "n");
    rotated(store.rotate_credential(id, new, noon(1), Author::operator(noon(0))).await.unwrap());
    raised("rotation").await;
    store.revoke_credential(id, Author::operator(noon(2))).await.unwrap();
    raised("revocation").await;
    store.set_account_disabled(account, true, Author::operator(noon(0))).await.unwrap();
    raised("disabling").await;
    store.set_account_disabled(account, false, Author::operator(noon(0))).await.unwrap();
    raised("enabling").await;
}

#[on_both_databases]
async fn additions_do_not_change_the_credential_epoch(store: &Shared) {
    let account = account(store, "a").await;
    let before = store.credential_epoch().await.unwrap();
    store.create_template(new(account, "hello")).await.unwrap();
    store.add_phone(account, "111", Author::operator(noon(0))).await.unwrap();
    let key = secret(CredentialKind::Key, "k");
    added(store.add_credential(account, key, Author::operator(noon(0))).await.unwrap());
    assert_eq!(store.credential_epoch().await.unwrap(), before);
}

#[on_both_databases]
async fn a_credential_keeps_its_name_when_it_is_rotated(store: &Shared) {
    let account = account(store, "a").await;
    let by = Author::operator(noon(0));
    let credential = |text, name: &str| NewCredential {
        name: name.to_owned(),
        ..secret(CredentialKind::Token, text)
    };
    let id = added(store.add_credential(account, credential("1", "nightly"), by).await.unwrap());
    let id = rotated(store.rotate_credential(id, credential("2", ""), noon(9), by).await.unwrap());
    rotated(store.rotate_credential(id, credential("3", "hourly"), noon(9), by).await.unwrap());
    let names = store.credentials(account).await.unwrap().into_iter().map(|it| it.name);
    assert_eq!(names.collect::<Vec<_>>(), ["nightly", "nightly", "hourly"]);
}

#[on_both_databases]
async fn the_latest_use_of_a_credential_is_recorded(store: &Shared) {
    let account = account(store, "a").await;
    let by = Author::operator(noon(0));
    let first = secret(CredentialKind::Token, "1");
    let first = added(store.add_credential(account, first, by).await.unwrap());
    let second = secret(CredentialKind::Key, "1");
    let second = added(store.add_credential(account, second, by).await.unwrap());
    let used = async || {
        let all = store.credentials(account).await.unwrap();
        all.into_iter().map(|it| it.last_used_at).collect::<Vec<_>>()
    };
    let epoch = store.credential_epoch().await.unwrap();
    assert_eq!(used().await, [None, None]);
    let unknown = CredentialId(999);
    let records = vec![(second, noon(7)), (unknown, noon(8)), (first, noon(9))];
    store.record_credential_use(records).await.unwrap();
    assert_eq!(used().await, [Some(noon(9)), Some(noon(7))]);
    let records = vec![(first, noon(3)), (second, noon(11))];
    store.record_credential_use(records).await.unwrap();
    assert_eq!(used().await, [Some(noon(9)), Some(noon(11))], "an earlier time changes nothing");
    store.record_credential_use(Vec::new()).await.unwrap();
    assert_eq!(store.credential_epoch().await.unwrap(), epoch, "caches stay valid");
}

#[on_both_databases]
async fn an_account_issues_tokens_up_to_the_maximum(store: &Shared) {
    let (mine, theirs) = (account(store, "a").await, account(store, "b").await);
    let hour = 3_600_000;
    let by = Author::operator(noon(hour));
    let issue_at = async |account, text: &str, at| {
        let new = secret(CredentialKind::Token, text);
        store.issue_token(account, new, Author::operator(noon(at))).await.unwrap()
    };
    let issue = async |account, text: &str| issue_at(account, text, hour).await;
    let expired =
        NewCredential { expires_at: Some(noon(hour)), ..secret(CredentialKind::Token, "expired") };
    let long_ago = Author::operator(noon(0));
    added(store.add_credential(mine, expired, long_ago).await.unwrap());
    added(store.add_credential(mine, secret(CredentialKind::Key, "key"), by).await.unwrap());
    let mut last = None;
    for number in 0..MAX_ACTIVE_TOKENS {
        last = Some(issued(issue(mine, &number.to_string()).await));
    }
    assert_eq!(issue(mine, "beyond").await, IssueTokenOutcome::TooMany);
    issued(issue(theirs, "another account").await);
    assert!(store.revoke_credential(last.unwrap(), by).await.unwrap());
    let refused = issue_at(mine, "at once", 2 * hour - 1).await;
    assert_eq!(refused, IssueTokenOutcome::TooMany, "it was created within an hour");
    issued(issue_at(mine, "in its place", 2 * hour).await);
    let beyond = secret(CredentialKind::Token, "of the operator");
    added(store.add_credential(mine, beyond, by).await.unwrap());
}

#[on_both_databases]
async fn events_and_versions_show_the_present_name_of_a_token(store: &Shared) {
    let account = account(store, "a").await;
    let by = Author::operator(noon(0));
    let importer =
        NewCredential { name: "importer".to_owned(), ..secret(CredentialKind::Token, "1") };
    let token = added(store.add_credential(account, importer, by).await.unwrap());
    let unnamed = secret(CredentialKind::Token, "2");
    let unnamed = added(store.add_credential(account, unnamed, by).await.unwrap());
    let kind = format!("token {unnamed}");
    for (name, actor) in [("first", token), ("second", unnamed)] {
        let new = NewTemplate { actor: Actor::Token(actor), ..new(account, name) };
        let id = create(store, new).await;
        let versions = store.versions(account, id, None, 10).await.unwrap().unwrap();
        let expected = if actor == token { "importer" } else { &*kind };
        assert_eq!(versions[0].created_by_name, expected);
        assert_eq!(versions[0].decided_by_name, "");
    }
    let names: Vec<String> =
        events(store, account, 0, 100).await.into_iter().map(|event| event.actor_name).collect();
    assert_eq!(names, ["importer", &*kind]);
}
