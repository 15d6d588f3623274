//! Cases about accounts and their phone numbers.

use galley_store::{AddPhoneOutcome, CreateAccountOutcome, CredentialKind, NewAccount};

use super::fixture::{Shared, account, new_account, noon, secret};

pub(crate) async fn an_account_is_created_completely_or_not_at_all(store: &Shared) {
    let first = NewAccount {
        phones: vec!["111".to_owned(), "222".to_owned()],
        credentials: vec![secret(CredentialKind::Key, "k"), secret(CredentialKind::Token, "t")],
        ..new_account("first")
    };
    let CreateAccountOutcome::Created(id, credentials) = store.create_account(first).await.unwrap()
    else {
        panic!("the first account is created")
    };
    assert_eq!(store.phones(id).await.unwrap(), ["111", "222"]);
    assert_eq!(
        store.credentials(id).await.unwrap().iter().map(|it| it.id).collect::<Vec<_>>(),
        credentials
    );
    assert!(!store.account(id).await.unwrap().unwrap().takes_any_phone);

    let named = store.create_account(new_account("first")).await.unwrap();
    assert_eq!(named, CreateAccountOutcome::NameTaken);
    let phoned =
        NewAccount { phones: vec!["333".to_owned(), "111".to_owned()], ..new_account("second") };
    assert_eq!(
        store.create_account(phoned).await.unwrap(),
        CreateAccountOutcome::PhoneTaken("111".to_owned())
    );
    let keyed =
        NewAccount { credentials: vec![secret(CredentialKind::Key, "k")], ..new_account("third") };
    assert_eq!(
        store.create_account(keyed).await.unwrap(),
        CreateAccountOutcome::SecretTaken(CredentialKind::Key)
    );
    let twice = vec![secret(CredentialKind::Key, "x"), secret(CredentialKind::Key, "x")];
    let doubled = NewAccount { credentials: twice, ..new_account("fourth") };
    assert_eq!(
        store.create_account(doubled).await.unwrap(),
        CreateAccountOutcome::SecretTaken(CredentialKind::Key)
    );
    assert_eq!(store.accounts().await.unwrap().len(), 1);
    assert_eq!(store.phone_owner("333").await.unwrap(), None);
}

pub(crate) async fn a_phone_number_that_is_listed_twice_is_added_once(store: &Shared) {
    let phones = ["222", "111", "222"].map(str::to_owned).to_vec();
    let new = NewAccount { phones, ..new_account("a") };
    let created = store.create_account(new).await.unwrap();
    let CreateAccountOutcome::Created(id, _) = created else { panic!("{created:?}") };
    assert_eq!(store.phones(id).await.unwrap(), ["111", "222"]);
}

pub(crate) async fn the_first_account_is_created_once(store: &Shared) {
    let first = |name: &str| NewAccount { only_if_first: true, ..new_account(name) };
    assert!(matches!(
        store.create_account(first("a")).await.unwrap(),
        CreateAccountOutcome::Created(..)
    ));
    assert_eq!(store.create_account(first("b")).await.unwrap(), CreateAccountOutcome::NotFirst);
    assert!(matches!(
        store.create_account(new_account("b")).await.unwrap(),
        CreateAccountOutcome::Created(..)
    ));
}

pub(crate) async fn a_phone_number_has_one_owner(store: &Shared) {
    let (mine, theirs) = (account(store, "a").await, account(store, "b").await);
    assert!(store.account(mine).await.unwrap().unwrap().takes_any_phone);
    assert_eq!(store.add_phone(mine, "111", noon(0)).await.unwrap(), AddPhoneOutcome::Added);
    assert_eq!(store.add_phone(mine, "111", noon(0)).await.unwrap(), AddPhoneOutcome::AlreadyOwned);
    assert_eq!(
        store.add_phone(theirs, "111", noon(0)).await.unwrap(),
        AddPhoneOutcome::OwnedByOther
    );
    assert_eq!(store.phone_owner("111").await.unwrap(), Some(mine));
    let unknown = galley_domain::id::AccountId::new(12_345).unwrap();
    assert_eq!(store.add_phone(unknown, "222", noon(0)).await.unwrap(), AddPhoneOutcome::NoAccount);
}

pub(crate) async fn a_disabled_account_has_the_time_it_was_disabled(store: &Shared) {
    let id = account(store, "a").await;
    assert!(store.set_account_disabled(id, Some(noon(5))).await.unwrap());
    assert_eq!(store.account(id).await.unwrap().unwrap().disabled_at, Some(noon(5)));
    assert!(store.set_account_disabled(id, None).await.unwrap());
    assert_eq!(store.account(id).await.unwrap().unwrap().disabled_at, None);
    let unknown = galley_domain::id::AccountId::new(12_345).unwrap();
    assert!(!store.set_account_disabled(unknown, None).await.unwrap());
}
