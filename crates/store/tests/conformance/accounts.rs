//! Cases about accounts and their phone numbers.

use galley_domain::{id::AccountId, template::Review};
use galley_store::{
    AccountQuotas, AddCredentialOutcome, AddPhoneOutcome, Author, CreateAccountOutcome,
    CredentialKind, DeleteAccountOutcome, NewAccount, RenameAccountOutcome, SetReviewOutcome,
};
use galley_test_macros::on_both_databases;

use super::{
    fixture::{Shared, account, create, initiator, new, new_account, noon, secret},
    webhooks::{endpoint, register},
};

#[on_both_databases]
async fn an_account_is_created_completely_or_not_at_all(store: &Shared) {
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

    let kinds = [CredentialKind::Key, CredentialKind::Token];
    let credentials = kinds.map(|kind| secret(kind, "both kinds")).to_vec();
    let keyed_twice = NewAccount { credentials, ..new_account("fifth") };
    let created = store.create_account(keyed_twice).await.unwrap();
    assert!(matches!(created, CreateAccountOutcome::Created(..)), "{created:?}");
}

#[on_both_databases]
async fn an_account_is_refused_by_the_first_conflict(store: &Shared) {
    let token = secret(CredentialKind::Token, "t");
    let existing = NewAccount {
        phones: vec!["111".to_owned()],
        credentials: vec![token.clone()],
        ..new_account("existing")
    };
    let created = store.create_account(existing.clone()).await.unwrap();
    assert!(matches!(created, CreateAccountOutcome::Created(..)), "{created:?}");
    let first = NewAccount { only_if_first: true, ..existing.clone() };
    let chosen = NewAccount { id: AccountId::new(7), ..existing.clone() };
    let phoned = NewAccount { name: "other".to_owned(), ..existing.clone() };
    let credentials = vec![secret(CredentialKind::Key, "k"), token];
    let keyed = NewAccount { phones: vec!["222".to_owned()], credentials, ..phoned.clone() };
    let taken_token = CreateAccountOutcome::SecretTaken(CredentialKind::Token);
    for (new, refusal) in [
        (first, CreateAccountOutcome::NotFirst),
        (chosen, CreateAccountOutcome::NotFirst),
        (existing, CreateAccountOutcome::NameTaken),
        (phoned, CreateAccountOutcome::PhoneTaken("111".to_owned())),
        (keyed, taken_token),
    ] {
        assert_eq!(store.create_account(new).await.unwrap(), refusal);
    }
}

#[on_both_databases]
async fn a_phone_number_that_is_listed_twice_is_added_once(store: &Shared) {
    let phones = ["222", "111", "222"].map(str::to_owned).to_vec();
    let new = NewAccount { phones, ..new_account("a") };
    let created = store.create_account(new).await.unwrap();
    let CreateAccountOutcome::Created(id, _) = created else { panic!("{created:?}") };
    assert_eq!(store.phones(id).await.unwrap(), ["111", "222"]);
}

#[on_both_databases]
async fn the_first_account_is_created_once(store: &Shared) {
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

#[on_both_databases]
async fn the_first_account_can_have_a_chosen_id(store: &Shared) {
    let [first, second] = [102_290_129_340_398, 7].map(|id| AccountId::new(id).unwrap());
    let create = |name, id| store.create_account(NewAccount { id: Some(id), ..new_account(name) });
    let created = create("first", first).await.unwrap();
    assert_eq!(created, CreateAccountOutcome::Created(first, Vec::new()));
    assert_eq!(store.account(first).await.unwrap().unwrap().name, "first");
    assert_eq!(create("second", second).await.unwrap(), CreateAccountOutcome::NotFirst);
    let next = account(store, "next").await;
    assert!(next > first, "{next:?}");
}

#[on_both_databases]
async fn a_phone_number_has_one_owner(store: &Shared) {
    let (mine, theirs) = (account(store, "a").await, account(store, "b").await);
    assert!(store.account(mine).await.unwrap().unwrap().takes_any_phone);
    assert_eq!(
        store.add_phone(mine, "111", Author::operator(noon(0))).await.unwrap(),
        AddPhoneOutcome::Added
    );
    assert_eq!(
        store.add_phone(mine, "111", Author::operator(noon(0))).await.unwrap(),
        AddPhoneOutcome::AlreadyOwned
    );
    assert_eq!(
        store.add_phone(theirs, "111", Author::operator(noon(0))).await.unwrap(),
        AddPhoneOutcome::OwnedByOther
    );
    assert_eq!(store.phone_owner("111").await.unwrap(), Some(mine));
    let unknown = galley_domain::id::AccountId::new(12_345).unwrap();
    assert_eq!(
        store.add_phone(unknown, "222", Author::operator(noon(0))).await.unwrap(),
        AddPhoneOutcome::NoAccount
    );
}

#[on_both_databases]
async fn a_disabled_account_has_the_time_it_was_disabled(store: &Shared) {
    let id = account(store, "a").await;
    assert!(store.set_account_disabled(id, true, Author::operator(noon(5))).await.unwrap());
    assert_eq!(store.account(id).await.unwrap().unwrap().disabled_at, Some(noon(5)));
    assert!(store.set_account_disabled(id, false, Author::operator(noon(0))).await.unwrap());
    assert_eq!(store.account(id).await.unwrap().unwrap().disabled_at, None);
    let unknown = galley_domain::id::AccountId::new(12_345).unwrap();
    assert!(!store.set_account_disabled(unknown, false, Author::operator(noon(0))).await.unwrap());
}

#[on_both_databases]
async fn a_renamed_account_frees_its_name(store: &Shared) {
    let id = account(store, "before").await;
    let rename = async |name: &str| {
        store.rename_account(id, name.to_owned(), Author::operator(noon(1))).await.unwrap()
    };
    let epoch = store.credential_epoch().await.unwrap();
    assert_eq!(rename("after").await, RenameAccountOutcome::Renamed);
    assert_eq!(store.account(id).await.unwrap().unwrap().name, "after");
    assert!(store.credential_epoch().await.unwrap() > epoch, "cached accounts are outdated");
    assert_eq!(rename("after").await, RenameAccountOutcome::Renamed, "its own name");
    account(store, "before").await;
    assert_eq!(rename("before").await, RenameAccountOutcome::NameTaken);
}

#[on_both_databases]
async fn an_account_changes_how_its_templates_are_reviewed(store: &Shared) {
    let id = account(store, "mine").await;
    let epoch = store.credential_epoch().await.unwrap();
    for review in [Review::Manual, Review::Auto] {
        let by = Author::operator(noon(1));
        let set = store.set_account_review(id, review, by).await.unwrap();
        assert_eq!(set, SetReviewOutcome::Set);
        assert_eq!(store.account(id).await.unwrap().unwrap().review, review);
    }
    assert!(store.credential_epoch().await.unwrap() > epoch, "cached accounts are outdated");
}

#[on_both_databases]
async fn a_deleted_account_frees_its_name_phone_numbers_and_template_names(store: &Shared) {
    let by = Author::operator(noon(1));
    let first = NewAccount {
        phones: vec!["111".to_owned()],
        credentials: vec![secret(CredentialKind::Token, "t")],
        ..new_account("mine")
    };
    let CreateAccountOutcome::Created(id, _) = store.create_account(first).await.unwrap() else {
        panic!("the account is created")
    };
    let webhook = register(store, endpoint(id)).await;
    let template = create(store, new(id, "greeting")).await;
    let delete = async || store.delete_account(id, by).await.unwrap();
    assert_eq!(delete().await, DeleteAccountOutcome::NotDisabled);
    assert!(store.set_account_disabled(id, true, by).await.unwrap());
    assert_eq!(delete().await, DeleteAccountOutcome::HasTemplates);
    store.delete_templates(initiator(id, Review::Auto, noon(1)), vec![template]).await.unwrap();
    let epoch = store.credential_epoch().await.unwrap();
    assert_eq!(delete().await, DeleteAccountOutcome::Deleted);
    assert_eq!(delete().await, DeleteAccountOutcome::NotFound);
    assert!(store.credential_epoch().await.unwrap() > epoch, "cached accounts are outdated");
    assert_eq!(store.account(id).await.unwrap(), None);
    assert!(store.accounts().await.unwrap().is_empty());
    assert_eq!(store.webhook(id, webhook.id).await.unwrap(), None);
    assert!(store.credentials(id).await.unwrap().iter().all(|it| it.revoked_at.is_some()));
    let phone = store.add_phone(id, "222", by).await.unwrap();
    assert_eq!(phone, AddPhoneOutcome::NoAccount);
    let credential = secret(CredentialKind::Token, "u");
    let added = store.add_credential(id, credential, by).await.unwrap();
    assert_eq!(added, AddCredentialOutcome::NotFound);

    let entries = store.audit_entries(None, 0, 1_000).await.unwrap().len();
    let renamed = store.rename_account(id, "again".to_owned(), by).await.unwrap();
    assert_eq!(renamed, RenameAccountOutcome::NotFound);
    let set = store.set_account_review(id, Review::Manual, by).await.unwrap();
    assert_eq!(set, SetReviewOutcome::NotFound);
    assert!(!store.set_account_disabled(id, false, by).await.unwrap());
    assert!(!store.set_account_limits(id, None, by).await.unwrap());
    assert!(!store.set_account_quotas(id, AccountQuotas::default(), by).await.unwrap());
    assert_eq!(store.audit_entries(None, 0, 1_000).await.unwrap().len(), entries);
    // A client may have been authenticated before the deletion.
    assert!(store.create_template(new(id, "late")).await.is_err());
    assert!(store.create_webhook(endpoint(id)).await.is_err());
    assert!(store.has_had_accounts().await.unwrap(), "the store is not new");

    let second = NewAccount { phones: vec!["111".to_owned()], ..new_account("mine") };
    let CreateAccountOutcome::Created(second, _) = store.create_account(second).await.unwrap()
    else {
        panic!("name and phone number are free")
    };
    create(store, new(second, "greeting")).await;
}
