//! Cases about the quotas that protect the accounts from each other.

use std::sync::Arc;

use galley_domain::{
    id::{AccountId, TemplateId},
    rulebook::Category,
    template::{Review, edit::Edit, lifecycle::Trigger},
};
use galley_store::{
    AccountQuotas, AddPhoneOutcome, Author, ChangeOutcome, CreateOutcome, Limit, MAX_VERSIONS,
    NewTemplate, Quota, TemplateChange, UpsertOutcome, VERSION_OVERHEAD_BYTES,
};
use galley_test_macros::on_both_databases;

use super::{
    fixture::{
        Shared, account, change, create, create_concurrently, done, initiator, new, noon, template,
        translation,
    },
    uploads::assert_integrity,
};

#[on_both_databases]
async fn account_quotas_can_be_set_and_removed(store: &Shared) {
    let (id, other) = (account(store, "a").await, account(store, "b").await);
    assert_eq!(store.account(id).await.unwrap().unwrap().quotas, AccountQuotas::default());
    let epoch = store.credential_epoch().await.unwrap();
    let quotas = AccountQuotas {
        requests_per_second: Some(50),
        stored_bytes: Quota::Max(1 << 40),
        phone_numbers: Quota::Unlimited,
    };
    assert!(store.set_account_quotas(id, quotas, Author::operator(noon(0))).await.unwrap());
    assert_eq!(store.account(id).await.unwrap().unwrap().quotas, quotas);
    assert_eq!(store.account(other).await.unwrap().unwrap().quotas, AccountQuotas::default());
    assert!(store.credential_epoch().await.unwrap() > epoch, "caches are invalidated");
    assert!(
        store
            .set_account_quotas(id, AccountQuotas::default(), Author::operator(noon(0)))
            .await
            .unwrap()
    );
    assert_eq!(store.accounts().await.unwrap()[0].quotas, AccountQuotas::default());
    let unknown = AccountId::new(12_345).unwrap();
    assert!(!store.set_account_quotas(unknown, quotas, Author::operator(noon(0))).await.unwrap());
}

/// The quota bytes of a version with this content.
fn bytes(content: &str) -> u64 {
    content.len() as u64 + VERSION_OVERHEAD_BYTES
}

async fn used(store: &Shared, account: AccountId) -> u64 {
    store.account(account).await.unwrap().unwrap().usage.template_bytes.unwrap()
}

async fn set_stored_bytes(store: &Shared, account: AccountId, max: u64) {
    let quotas = AccountQuotas { stored_bytes: Quota::Max(max), ..AccountQuotas::default() };
    assert!(store.set_account_quotas(account, quotas, Author::operator(noon(0))).await.unwrap());
}

fn content(text: &str) -> String {
    format!(r#"{{"components":[{{"type":"BODY","text":"{text}"}}]}}"#)
}

fn edit(text: &str) -> Edit {
    Edit::Replace { content: Some(content(text)), category: None }
}

#[on_both_databases]
async fn a_version_beyond_the_stored_bytes_is_refused_and_writes_nothing(store: &Shared) {
    let (mine, theirs) = (account(store, "a").await, account(store, "b").await);
    let one = bytes(template("one").content());
    set_stored_bytes(store, mine, 2 * one).await;
    let id = create(store, new(mine, "one")).await;
    create(store, new(mine, "two")).await;
    assert_eq!(used(store, mine).await, 2 * one);
    let limit = Limit::StoredBytes { used: 2 * one, max: 2 * one };
    let refused = store.create_template(new(mine, "three")).await.unwrap();
    assert_eq!(refused, CreateOutcome::Limited(limit));
    let refused = store.edit_template(change(mine, id), edit("x")).await.unwrap();
    assert_eq!(refused, ChangeOutcome::Limited(limit));
    let refused = store.upsert_templates(vec![new(mine, "three")]).await.unwrap();
    assert_eq!(refused, UpsertOutcome::NotCreated(CreateOutcome::Limited(limit)));
    let in_use = store.create_template(new(mine, "one")).await.unwrap();
    assert!(matches!(in_use, CreateOutcome::NameInUse(_)), "{in_use:?} is reported first");
    assert_eq!(store.newest_event(mine).await.unwrap(), 2);
    create(store, new(theirs, "four")).await;
    assert_eq!(used(store, mine).await, 2 * one);

    set_stored_bytes(store, mine, 2 * one + bytes(&content("x"))).await;
    done(store.edit_template(change(mine, id), edit("x")).await.unwrap());
    done(store.review_template(change(mine, id), Trigger::Approve, None).await.unwrap());
    store
        .set_account_quotas(mine, AccountQuotas::default(), Author::operator(noon(0)))
        .await
        .unwrap();
    create(store, new(mine, "three")).await;
    assert_integrity(store).await;
}

#[on_both_databases]
async fn concurrent_creations_do_not_exceed_the_stored_bytes(store: &Shared) {
    let account = account(store, "a").await;
    let one = bytes(template("t00").content());
    set_stored_bytes(store, account, 10 * one).await;
    let templates = (0..30).map(|index| new(account, &format!("t{index:02}"))).collect();
    let outcomes = create_concurrently(store, templates).await;
    let created = outcomes.iter().filter(|it| matches!(it, CreateOutcome::Created(_))).count();
    assert_eq!(created, 10, "{outcomes:?}");
    assert_eq!(used(store, account).await, 10 * one);
    assert_integrity(store).await;
}

/// Numbers that look random and are the same in every run.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963);
        (self.0 >> 33) % end
    }
}

/// One random write of an account, at the given second.
async fn write_at_random(
    store: &Shared,
    account: AccountId,
    numbers: &mut Numbers,
    ids: &mut Vec<TemplateId>,
    second: i64,
) {
    let at = noon(second * 1_000);
    let text = "ü".repeat(usize::try_from(numbers.below(3_000)).unwrap());
    let name = format!("t{}", numbers.below(40));
    let chosen = ids.get(usize::try_from(numbers.below(ids.len() as u64 + 1)).unwrap()).copied();
    let write = numbers.below(10);
    let Some(id) = chosen.filter(|_| write > 2) else {
        if let CreateOutcome::Created(created) =
            store.create_template(NewTemplate { at, ..new(account, &name) }).await.unwrap()
        {
            ids.push(created.id);
        }
        return;
    };
    let change = TemplateChange { review: Review::Auto, at, ..change(account, id) };
    match write {
        3..6 => drop(store.edit_template(change, edit(&text)).await.unwrap()),
        6 => {
            let restore = Edit::Restore(1 + numbers.below(4));
            drop(store.edit_template(change, restore).await.unwrap());
        }
        7 => {
            let mut templates = ["de_DE", "en_US", "fr_FR"]
                .map(|it| translation(account, &name, it, Category::Utility));
            for new in &mut templates {
                new.at = at;
            }
            drop(store.upsert_templates(templates.to_vec()).await.unwrap());
        }
        8 => drop(store.delete_template(change).await.unwrap()),
        _ => {
            let by = initiator(account, Review::Auto, at);
            drop(store.delete_templates(by, ids.clone()).await);
        }
    }
}

#[on_both_databases]
async fn stored_bytes_agree_with_the_rows_after_random_writes(store: &Shared) {
    let accounts = [account(store, "a").await, account(store, "b").await];
    set_stored_bytes(store, accounts[1], 40_000).await;
    let mut numbers = Numbers(17);
    let mut ids = [Vec::new(), Vec::new()];
    for second in 0..250 {
        let index = usize::try_from(numbers.below(2)).unwrap();
        write_at_random(store, accounts[index], &mut numbers, &mut ids[index], second).await;
        if second % 50 == 49 {
            while store.delete_expired_events(noon((second - 30) * 1_000)).await.unwrap() > 0 {}
            assert_integrity(store).await;
        }
    }
    assert!(used(store, accounts[0]).await > 10_000);
    assert!(used(store, accounts[1]).await <= 40_000);
}

#[on_both_databases]
async fn an_edit_deletes_versions_beyond_the_newest_hundred(store: &Shared) {
    let account = account(store, "a").await;
    let id = create(store, new(account, "hello")).await;
    let edited = async |text: &str| {
        done(store.edit_template(change(account, id), edit(text)).await.unwrap())
    };
    // Version 1 is live, version 3 and later ones are pending.
    for number in 2..=MAX_VERSIONS + 2 {
        edited(&format!("version {number:03}")).await;
    }
    let newest = MAX_VERSIONS + 2;
    let versions = store.versions(account, id, None, 1_000).await.unwrap().unwrap();
    let numbers: Vec<u64> = versions.iter().map(|version| version.number).collect();
    let expected: Vec<u64> = (3..=newest).rev().chain([1]).collect();
    assert_eq!(numbers, expected, "the live version stays");
    assert_eq!(store.version(account, id, 2).await.unwrap(), None);
    let gone = store.edit_template(change(account, id), Edit::Restore(2)).await.unwrap();
    assert_eq!(gone, ChangeOutcome::NoVersion);
    let kept = MAX_VERSIONS * bytes(&content("version 003"));
    assert_eq!(used(store, account).await, kept + bytes(template("hello").content()));
    assert_integrity(store).await;

    // The approval of a newer version makes the old live version one like the others.
    done(store.review_template(change(account, id), Trigger::Approve, None).await.unwrap());
    edited("version 103").await;
    assert_eq!(store.version(account, id, 1).await.unwrap(), None);
    assert_eq!(used(store, account).await, kept);
    assert_integrity(store).await;
}

#[on_both_databases]
async fn an_edit_at_the_quota_succeeds_if_it_deletes_an_older_version(store: &Shared) {
    let account = account(store, "a").await;
    let id = create(store, new(account, "hello")).await;
    let auto = TemplateChange { review: Review::Auto, ..change(account, id) };
    for _ in 0..MAX_VERSIONS {
        done(store.edit_template(auto.clone(), edit("same length")).await.unwrap());
    }
    set_stored_bytes(store, account, used(store, account).await).await;
    done(store.edit_template(auto.clone(), edit("same length")).await.unwrap());
    let refused = store.edit_template(auto, edit("a longer text")).await.unwrap();
    assert!(matches!(refused, ChangeOutcome::Limited(Limit::StoredBytes { .. })), "{refused:?}");
}

#[on_both_databases]
async fn a_deleted_template_frees_its_bytes_when_its_events_expire(store: &Shared) {
    let account = account(store, "a").await;
    let one = bytes(template("hello").content());
    let (id, other) =
        (create(store, new(account, "hello")).await, create(store, new(account, "other")).await);
    done(store.edit_template(change(account, id), edit("second")).await.unwrap());
    done(store.delete_template(change(account, id)).await.unwrap());
    assert_eq!(used(store, account).await, 2 * one + bytes(&content("second")));
    assert_eq!(store.delete_expired_events(noon(2_000)).await.unwrap(), 4);
    assert_eq!(used(store, account).await, one);
    assert!(store.template(account, other).await.unwrap().is_some());
    assert_integrity(store).await;
}

#[on_both_databases]
async fn a_large_deleted_template_is_purged_in_parts(store: &Shared) {
    const MIB: u64 = 1 << 20;
    let account = account(store, "a").await;
    let other = create(store, new(account, "other")).await;
    let id = create(store, new(account, "large")).await;
    for _ in 0..24 {
        done(store.edit_template(change(account, id), edit(&"x".repeat(1 << 20))).await.unwrap());
    }
    done(store.delete_template(change(account, id)).await.unwrap());
    let mut before = used(store, account).await;
    assert!(before > 24 * MIB);
    let mut steps = 0;
    while store.delete_expired_events(noon(2_000)).await.unwrap() > 0 {
        let after = used(store, account).await;
        assert!(before - after <= 8 * MIB, "step {steps} frees {} bytes", before - after);
        assert_integrity(store).await;
        (before, steps) = (after, steps + 1);
    }
    assert!(steps > 3, "{steps} steps");
    assert_eq!(before, bytes(template("other").content()));
    assert!(store.template(account, other).await.unwrap().is_some());
}

#[on_both_databases]
async fn an_account_claims_phone_numbers_up_to_its_maximum(store: &Shared) {
    let (mine, theirs) = (account(store, "a").await, account(store, "b").await);
    let claim = async |account, phone: &str| {
        store.claim_phone(account, phone, Some(2), Author::operator(noon(0))).await.unwrap()
    };
    assert_eq!(claim(mine, "1").await, AddPhoneOutcome::Added);
    assert_eq!(claim(mine, "2").await, AddPhoneOutcome::Added);
    assert_eq!(claim(mine, "3").await, AddPhoneOutcome::TooMany);
    assert_eq!(store.phone_owner("3").await.unwrap(), None);
    assert_eq!(claim(mine, "1").await, AddPhoneOutcome::AlreadyOwned);
    assert_eq!(claim(theirs, "1").await, AddPhoneOutcome::OwnedByOther);
    let unknown = AccountId::new(12_345).unwrap();
    assert_eq!(claim(unknown, "4").await, AddPhoneOutcome::NoAccount);
    let added = store.add_phone(mine, "3", Author::operator(noon(0))).await.unwrap();
    assert_eq!(added, AddPhoneOutcome::Added, "the operator adds more");
    let unlimited = store.claim_phone(mine, "4", None, Author::operator(noon(0))).await.unwrap();
    assert_eq!(unlimited, AddPhoneOutcome::Added);
}

#[on_both_databases]
async fn concurrent_claims_do_not_exceed_the_maximum(store: &Shared) {
    let account = account(store, "a").await;
    let claim = |phone: u32| {
        let store = Arc::clone(store);
        let claim = async move {
            store
                .claim_phone(account, &phone.to_string(), Some(5), Author::operator(noon(0)))
                .await
                .unwrap()
        };
        tokio::spawn(claim)
    };
    for task in (0..12).map(claim).collect::<Vec<_>>() {
        task.await.unwrap();
    }
    assert_eq!(store.phones(account).await.unwrap().len(), 5);
}

#[on_both_databases]
async fn a_removed_phone_number_is_free_and_its_templates_stay(store: &Shared) {
    let (mine, theirs) = (account(store, "a").await, account(store, "b").await);
    store.add_phone(mine, "15550001111", Author::operator(noon(0))).await.unwrap();
    let id = create(store, new(mine, "hello")).await;
    assert!(!store.remove_phone(theirs, "15550001111", Author::operator(noon(0))).await.unwrap());
    let epoch = store.credential_epoch().await.unwrap();
    assert!(store.remove_phone(mine, "15550001111", Author::operator(noon(0))).await.unwrap());
    assert!(store.credential_epoch().await.unwrap() > epoch, "caches are invalidated");
    assert!(!store.remove_phone(mine, "15550001111", Author::operator(noon(0))).await.unwrap());
    assert_eq!(store.phone_owner("15550001111").await.unwrap(), None);
    assert!(store.template(mine, id).await.unwrap().is_some());
    let claimed =
        store.claim_phone(theirs, "15550001111", Some(1), Author::operator(noon(0))).await.unwrap();
    assert_eq!(claimed, AddPhoneOutcome::Added);
}
