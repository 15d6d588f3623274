//! Cases about credentials.

use galley_domain::{account::Scopes, id::AccountId};
use galley_store::{
    AddCredentialOutcome, CredentialId, CredentialKind, NewCredential, RotateCredentialOutcome,
    SecretHash,
};
use jiff::Timestamp;

use super::fixture::{Shared, account, new, noon, secret};

fn added(outcome: AddCredentialOutcome) -> CredentialId {
    match outcome {
        AddCredentialOutcome::Added(id) => id,
        other => panic!("{other:?}"),
    }
}

pub(crate) async fn a_credential_is_found_by_its_secret_and_kind(store: &Shared) {
    let account = account(store, "a").await;
    let token = NewCredential {
        scopes: Scopes::parse("read").unwrap(),
        expires_at: Some(noon(9)),
        ..secret(CredentialKind::Token, "s")
    };
    let id = added(store.add_credential(account, token, noon(0)).await.unwrap());
    let found =
        store.credential(CredentialKind::Token, SecretHash::of("s")).await.unwrap().unwrap();
    assert_eq!((found.id, found.account, found.expires_at), (id, account, Some(noon(9))));
    assert_eq!(found.scopes, Scopes::parse("read").unwrap());
    assert_eq!(store.credential(CredentialKind::Key, SecretHash::of("s")).await.unwrap(), None);
    let duplicate =
        store.add_credential(account, secret(CredentialKind::Token, "s"), noon(0)).await.unwrap();
    assert_eq!(duplicate, AddCredentialOutcome::SecretTaken);
    added(store.add_credential(account, secret(CredentialKind::Key, "s"), noon(0)).await.unwrap());
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

pub(crate) async fn rotating_a_credential_adds_one_and_expires_the_old_one(store: &Shared) {
    let account = account(store, "a").await;
    let old = added(
        store.add_credential(account, secret(CredentialKind::Key, "old"), noon(0)).await.unwrap(),
    );
    let new = secret(CredentialKind::Key, "new");
    let id = rotated(store.rotate_credential(old, new, noon(500), noon(0)).await.unwrap());
    assert_eq!(expiries(store, account).await, [(old, Some(noon(500))), (id, None)]);
    let taken = store.rotate_credential(id, new, noon(1), noon(0)).await.unwrap();
    assert_eq!(taken, RotateCredentialOutcome::SecretTaken);
    assert_eq!(expiries(store, account).await, [(old, Some(noon(500))), (id, None)]);
    // A second rotation never postpones the expiry.
    let third = secret(CredentialKind::Key, "third");
    rotated(store.rotate_credential(old, third, noon(900), noon(0)).await.unwrap());
    assert_eq!(store.credentials(account).await.unwrap()[0].expires_at, Some(noon(500)));
    let unknown = store
        .rotate_credential(CredentialId(999), secret(CredentialKind::Key, "x"), noon(1), noon(0))
        .await;
    assert_eq!(unknown.unwrap(), RotateCredentialOutcome::NotFound);
}

pub(crate) async fn a_rotated_credential_keeps_its_remaining_lifetime(store: &Shared) {
    let account = account(store, "a").await;
    let expiring =
        |text| NewCredential { expires_at: Some(noon(100)), ..secret(CredentialKind::Token, text) };
    let first = added(store.add_credential(account, expiring("1"), noon(0)).await.unwrap());
    let new = secret(CredentialKind::Token, "2");
    let outcome = store.rotate_credential(first, new, noon(500), noon(9)).await.unwrap();
    let second = rotated(outcome);
    let (expires_at, old_ends_at) = (Some(noon(100)), noon(100));
    let expected = RotateCredentialOutcome::Rotated { id: second, expires_at, old_ends_at };
    assert_eq!(outcome, expected);
    // A chosen expiry replaces the remaining lifetime.
    let new = NewCredential { expires_at: Some(noon(700)), ..secret(CredentialKind::Token, "3") };
    let outcome = store.rotate_credential(second, new, noon(20), noon(9)).await.unwrap();
    let third = rotated(outcome);
    let (expires_at, old_ends_at) = (Some(noon(700)), noon(20));
    let expected = RotateCredentialOutcome::Rotated { id: third, expires_at, old_ends_at };
    assert_eq!(outcome, expected);
    assert_eq!(
        expiries(store, account).await,
        [(first, Some(noon(100))), (second, Some(noon(20))), (third, Some(noon(700)))]
    );
}

pub(crate) async fn an_expired_or_revoked_credential_cannot_be_rotated(store: &Shared) {
    let account = account(store, "a").await;
    let expiring =
        NewCredential { expires_at: Some(noon(10)), ..secret(CredentialKind::Token, "e") };
    let expired = added(store.add_credential(account, expiring, noon(0)).await.unwrap());
    let revoked = added(
        store.add_credential(account, secret(CredentialKind::Token, "r"), noon(0)).await.unwrap(),
    );
    assert!(store.revoke_credential(revoked, noon(5)).await.unwrap());
    let before = store.credentials(account).await.unwrap();
    for (old, expected) in [
        (expired, RotateCredentialOutcome::Expired(noon(10))),
        (revoked, RotateCredentialOutcome::Revoked(noon(5))),
    ] {
        let new = secret(CredentialKind::Token, "new");
        let outcome = store.rotate_credential(old, new, noon(500), noon(10)).await.unwrap();
        assert_eq!(outcome, expected);
    }
    assert_eq!(store.credentials(account).await.unwrap(), before, "nothing was written");
}

pub(crate) async fn a_credential_is_revoked_once(store: &Shared) {
    let account = account(store, "a").await;
    let id = added(
        store.add_credential(account, secret(CredentialKind::Key, "k"), noon(0)).await.unwrap(),
    );
    assert!(store.revoke_credential(id, noon(3)).await.unwrap());
    assert!(!store.revoke_credential(id, noon(4)).await.unwrap());
    assert_eq!(store.credentials(account).await.unwrap()[0].revoked_at, Some(noon(3)));
}

pub(crate) async fn invalidating_changes_increase_the_credential_epoch(store: &Shared) {
    let account = account(store, "a").await;
    let key = secret(CredentialKind::Key, "k");
    let id = added(store.add_credential(account, key, noon(0)).await.unwrap());
    let mut last = store.credential_epoch().await.unwrap();
    let mut raised = async |what: &str| {
        let now = store.credential_epoch().await.unwrap();
        assert!(now > last, "{what}");
        last = now;
    };
    let new = secret(CredentialKind::Key, "n");
    rotated(store.rotate_credential(id, new, noon(1), noon(0)).await.unwrap());
    raised("rotation").await;
    store.revoke_credential(id, noon(2)).await.unwrap();
    raised("revocation").await;
    store.set_account_disabled(account, Some(noon(0))).await.unwrap();
    raised("disabling").await;
    store.set_account_disabled(account, None).await.unwrap();
    raised("enabling").await;
}

pub(crate) async fn additions_do_not_change_the_credential_epoch(store: &Shared) {
    let account = account(store, "a").await;
    let before = store.credential_epoch().await.unwrap();
    store.create_template(new(account, "hello")).await.unwrap();
    store.add_phone(account, "111", noon(0)).await.unwrap();
    let key = secret(CredentialKind::Key, "k");
    added(store.add_credential(account, key, noon(0)).await.unwrap());
    assert_eq!(store.credential_epoch().await.unwrap(), before);
}
