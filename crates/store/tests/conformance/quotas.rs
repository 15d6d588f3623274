//! Cases about the quotas that protect the accounts from each other.

use galley_domain::id::AccountId;
use galley_store::{AccountQuotas, Quota};

use super::fixture::{Shared, account};

pub(crate) async fn account_quotas_can_be_set_and_removed(store: &Shared) {
    let (id, other) = (account(store, "a").await, account(store, "b").await);
    assert_eq!(store.account(id).await.unwrap().unwrap().quotas, AccountQuotas::default());
    let epoch = store.credential_epoch().await.unwrap();
    let quotas = AccountQuotas {
        requests_per_second: Some(50),
        stored_bytes: Quota::Max(1 << 40),
        phone_numbers: Quota::Unlimited,
    };
    assert!(store.set_account_quotas(id, quotas).await.unwrap());
    assert_eq!(store.account(id).await.unwrap().unwrap().quotas, quotas);
    assert_eq!(store.account(other).await.unwrap().unwrap().quotas, AccountQuotas::default());
    assert!(store.credential_epoch().await.unwrap() > epoch, "caches are invalidated");
    assert!(store.set_account_quotas(id, AccountQuotas::default()).await.unwrap());
    assert_eq!(store.accounts().await.unwrap()[0].quotas, AccountQuotas::default());
    let unknown = AccountId::new(12_345).unwrap();
    assert!(!store.set_account_quotas(unknown, quotas).await.unwrap());
}
