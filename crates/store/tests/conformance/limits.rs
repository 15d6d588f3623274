//! Cases about account limits.

use galley_domain::{
    id::{AccountId, TemplateId},
    rulebook::Category,
    template::{Review, edit::Edit, lifecycle::Trigger},
};
use galley_store::{
    AccountLimits, Author, ChangeOutcome, CreateAccountOutcome, CreateOutcome, Limit, NameConflict,
    NewAccount, NewTemplate, TemplateChange, UpsertOutcome,
};
use galley_test_macros::on_both_databases;

use super::fixture::{
    Shared, account, change, create, create_concurrently, created, done, events, new, new_account,
    noon, translation, with_key,
};

const HOUR: i64 = 3_600_000;
const DAY: i64 = 24 * HOUR;

/// Creates an account with limits.
async fn limited(store: &Shared, name: &str, templates: u32) -> AccountId {
    let account = account(store, name).await;
    assert!(
        store
            .set_account_limits(
                account,
                Some(AccountLimits { templates }),
                Author::operator(noon(0))
            )
            .await
            .unwrap()
    );
    account
}

fn at(account: AccountId, name: &str, plus: i64) -> NewTemplate {
    NewTemplate { at: noon(plus), ..new(account, name) }
}

async fn create_at(store: &Shared, account: AccountId, name: &str, plus: i64) -> CreateOutcome {
    store.create_template(at(account, name, plus)).await.unwrap()
}

/// Edits under automatic review, so that an APPROVED template stays approved.
async fn edit_at(store: &Shared, account: AccountId, id: TemplateId, plus: i64) -> ChangeOutcome {
    let change = TemplateChange { review: Review::Auto, at: noon(plus), ..change(account, id) };
    let content = format!(r#"{{"components":[{{"type":"BODY","text":"text {plus}"}}]}}"#);
    let edit = Edit::Replace { content: Some(content), category: None };
    store.edit_template(change, edit).await.unwrap()
}

#[on_both_databases]
async fn account_limits_can_be_set_and_removed(store: &Shared) {
    let id = account(store, "a").await;
    assert_eq!(store.account(id).await.unwrap().unwrap().limits, None);
    let epoch = store.credential_epoch().await.unwrap();
    let limits = Some(AccountLimits::VERIFIED);
    assert!(store.set_account_limits(id, limits, Author::operator(noon(0))).await.unwrap());
    assert_eq!(store.account(id).await.unwrap().unwrap().limits, limits);
    assert!(store.credential_epoch().await.unwrap() > epoch, "caches are invalidated");
    assert!(store.set_account_limits(id, None, Author::operator(noon(0))).await.unwrap());
    assert_eq!(store.accounts().await.unwrap()[0].limits, None);
    let unknown = AccountId::new(12_345).unwrap();
    assert!(!store.set_account_limits(unknown, limits, Author::operator(noon(0))).await.unwrap());
    assert_eq!(AccountLimits::default().templates, 250);
}

#[on_both_databases]
async fn an_account_can_begin_with_limits(store: &Shared) {
    let limits = Some(AccountLimits { templates: 1 });
    let new_account = NewAccount { limits, ..new_account("a") };
    let created_account = store.create_account(new_account).await.unwrap();
    let CreateAccountOutcome::Created(id, _) = created_account else {
        panic!("{created_account:?}")
    };
    assert_eq!(store.account(id).await.unwrap().unwrap().limits, limits);
    created(create_at(store, id, "first", 0).await);
    let refused = CreateOutcome::Limited(Limit::Templates);
    assert_eq!(create_at(store, id, "second", 0).await, refused);
}

#[on_both_databases]
async fn an_account_creates_at_most_a_hundred_templates_an_hour(store: &Shared) {
    let (mine, theirs) = (limited(store, "a", 250).await, limited(store, "b", 250).await);
    for index in 0..100 {
        created(create_at(store, mine, &format!("t{index}"), index).await);
    }
    let refused = CreateOutcome::Limited(Limit::CreationsPerHour);
    assert_eq!(create_at(store, mine, "next", HOUR - 1).await, refused);
    assert_eq!(store.name_conflict(mine, "next").await.unwrap(), None);
    assert_eq!(events(store, mine, 0, 1_000).await.len(), 100);
    created(create_at(store, theirs, "theirs", HOUR - 1).await);
    // Deleted templates still count towards the hourly limit.
    let id = store.name_conflict(mine, "t50").await.unwrap().unwrap().existing_id.unwrap();
    done(store.delete_template(change(mine, id)).await.unwrap());
    assert_eq!(create_at(store, mine, "next", HOUR - 1).await, refused);
    // A name conflict is reported before the limit.
    let taken = create_at(store, mine, "theirs", HOUR - 1).await;
    assert_eq!(taken, CreateOutcome::NameInUse(NameConflict { existing_id: None }));
    // Each creation stops counting after an hour.
    created(create_at(store, mine, "next", HOUR).await);
    assert_eq!(create_at(store, mine, "another", HOUR).await, refused);
    created(create_at(store, mine, "another", HOUR + 1).await);
}

#[on_both_databases]
async fn an_upsert_does_not_exceed_the_limit_of_creates_an_hour(store: &Shared) {
    let account = limited(store, "a", 250).await;
    let templates = (0..=100).map(|number| new(account, &format!("t{number}"))).collect();
    let refused = UpsertOutcome::NotCreated(CreateOutcome::Limited(Limit::CreationsPerHour));
    assert_eq!(store.upsert_templates(templates).await.unwrap(), refused);
    assert_eq!(events(store, account, 0, 10).await.len(), 0, "none is created");
}

#[on_both_databases]
async fn concurrent_creations_do_not_exceed_the_limit(store: &Shared) {
    let account = limited(store, "a", 250).await;
    let templates = (0..130).map(|index| new(account, &format!("t{index}"))).collect();
    let outcomes = create_concurrently(store, templates).await;
    let refused = CreateOutcome::Limited(Limit::CreationsPerHour);
    assert_eq!(outcomes.iter().filter(|it| **it == refused).count(), 30);
    assert_eq!(outcomes.iter().filter(|it| matches!(it, CreateOutcome::Created(_))).count(), 100);
    assert_eq!(events(store, account, 0, 1_000).await.len(), 100);
}

#[on_both_databases]
async fn an_account_has_at_most_as_many_templates_as_its_limit(store: &Shared) {
    let (mine, theirs) = (account(store, "a").await, account(store, "b").await);
    // Templates created before the limit was set count; each language counts as one.
    let first = create(store, translation(mine, "hello", "en_US", Category::Utility)).await;
    create(store, translation(mine, "hello", "de_DE", Category::Utility)).await;
    for index in 0..5 {
        create(store, new(theirs, &format!("theirs{index}"))).await;
    }
    store
        .set_account_limits(mine, Some(AccountLimits { templates: 3 }), Author::operator(noon(0)))
        .await
        .unwrap();
    create(store, new(mine, "third")).await;
    let refused = CreateOutcome::Limited(Limit::Templates);
    let french = translation(mine, "hello", "fr_FR", Category::Utility);
    assert_eq!(store.create_template(french.clone()).await.unwrap(), refused);
    let differs = translation(mine, "hello", "fr_FR", Category::Marketing);
    let differs = store.create_template(differs).await.unwrap();
    assert_eq!(
        differs,
        CreateOutcome::CategoryDiffers(Category::Utility),
        "the category is checked before the limit"
    );
    assert_eq!(events(store, mine, 0, 10).await.len(), 3);
    done(store.delete_template(change(mine, first)).await.unwrap());
    create(store, french).await;
    assert_eq!(create_at(store, mine, "next", 0).await, refused);
    store.set_account_limits(mine, None, Author::operator(noon(0))).await.unwrap();
    create(store, new(mine, "next")).await;
}

#[on_both_databases]
async fn an_idempotent_replay_succeeds_at_the_limit(store: &Shared) {
    let account = limited(store, "a", 1).await;
    let created_template =
        created(store.create_template(with_key(account, "hello", 1, 1)).await.unwrap());
    let again = store.create_template(with_key(account, "hello", 1, 1)).await.unwrap();
    assert_eq!(again, CreateOutcome::Replayed(created_template));
    let refused = store.create_template(with_key(account, "next", 2, 2)).await.unwrap();
    assert_eq!(refused, CreateOutcome::Limited(Limit::Templates));
    assert_eq!(store.idempotency_record(account, [2; 16], noon(0)).await.unwrap(), None);
}

#[on_both_databases]
async fn an_approved_template_is_edited_at_most_once_a_day_and_ten_times_a_month(store: &Shared) {
    let account = limited(store, "a", 250).await;
    let id = create(store, new(account, "hello")).await;
    let other = create(store, new(account, "other")).await;
    let day = ChangeOutcome::Limited(Limit::EditsPerDay);
    for number in 0..9 {
        done(edit_at(store, account, id, number * DAY).await);
        let before = store.template(account, id).await.unwrap();
        assert_eq!(edit_at(store, account, id, (number + 1) * DAY - 1).await, day, "{number}");
        assert_eq!(store.template(account, id).await.unwrap(), before);
    }
    done(edit_at(store, account, id, 9 * DAY).await);
    let month = ChangeOutcome::Limited(Limit::EditsPerMonth);
    assert_eq!(edit_at(store, account, id, 10 * DAY).await, month);
    assert_eq!(edit_at(store, account, id, 30 * DAY - 1).await, month);
    done(edit_at(store, account, other, 10 * DAY).await);
    done(edit_at(store, account, id, 30 * DAY).await);
    assert_eq!(
        edit_at(store, account, id, 30 * DAY + 1).await,
        month,
        "the second edit is 29 days old"
    );
    done(edit_at(store, account, id, 31 * DAY).await);
}

#[on_both_databases]
async fn only_edits_of_approved_templates_of_limited_accounts_count(store: &Shared) {
    let (mine, free) = (limited(store, "a", 250).await, account(store, "b").await);
    // Edits of a pending, paused or rejected template do not count.
    let pending = NewTemplate { review: Review::Manual, ..new(mine, "hello") };
    let id = create(store, pending).await;
    let manual = async |plus: i64| {
        let change = TemplateChange { at: noon(plus), ..change(mine, id) };
        store.edit_template(change, Edit::Restore(1)).await.unwrap()
    };
    let transition = async |trigger| {
        done(store.review_template(change(mine, id), trigger, None).await.unwrap());
    };
    done(manual(0).await);
    done(manual(1).await);
    transition(Trigger::Reject).await;
    done(manual(2).await);
    transition(Trigger::Approve).await;
    transition(Trigger::Pause).await;
    done(manual(3).await);
    transition(Trigger::Approve).await;
    transition(Trigger::Resume).await;
    // The first edit counts. After it the template is pending, so the second does not.
    done(manual(4).await);
    done(manual(5).await);
    transition(Trigger::Approve).await;
    assert_eq!(manual(6).await, ChangeOutcome::Limited(Limit::EditsPerDay));
    // Edits made while the account had no limits do not count.
    let id = create(store, new(free, "free")).await;
    for plus in 0..12 {
        done(edit_at(store, free, id, plus).await);
    }
    store
        .set_account_limits(free, Some(AccountLimits::default()), Author::operator(noon(0)))
        .await
        .unwrap();
    done(edit_at(store, free, id, 12).await);
    assert_eq!(edit_at(store, free, id, 13).await, ChangeOutcome::Limited(Limit::EditsPerDay));
}

#[on_both_databases]
async fn a_limit_that_is_set_again_changes_nothing(store: &Shared) {
    // It is stored as the largest number that fits.
    let account = limited(store, "a", u32::MAX).await;
    let (epoch, by) = (store.credential_epoch().await.unwrap(), Author::operator(noon(1)));
    let limits = Some(AccountLimits { templates: u32::MAX });
    assert!(store.set_account_limits(account, limits, by).await.unwrap());
    assert_eq!(store.credential_epoch().await.unwrap(), epoch);
}
