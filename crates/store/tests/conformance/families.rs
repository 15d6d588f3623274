//! Cases about templates that share a name and differ in language.

use std::sync::Arc;

use galley_domain::{
    document::Document,
    id::{AccountId, TemplateId},
    rulebook::{
        Category::{self, Marketing, Utility},
        V1,
    },
    template::{
        Review, Template,
        edit::Edit,
        lifecycle::{EventType, Trigger},
        message_text::MessageText,
    },
};
use galley_store::{
    ChangeOutcome, CreateOutcome, DeleteOutcome, Idempotency, NameConflict, NewTemplate,
    StoredTemplate, TranslationGroup, UpsertOutcome,
};

use super::fixture::{
    ACTOR, Shared, about, account, all_at_once, change, create, created, done, events, member, new,
    noon,
};

const LANGUAGES: [&str; 4] = ["en_US", "de_DE", "pt_BR", "fr_FR"];

/// All four languages of a name, oldest first.
async fn four(store: &Shared, account: AccountId, name: &str) -> Vec<TemplateId> {
    let mut ids = Vec::new();
    for language in LANGUAGES {
        ids.push(create(store, member(account, name, language, Utility)).await);
    }
    ids
}

fn ids(templates: &[StoredTemplate]) -> Vec<TemplateId> {
    templates.iter().map(|it| it.id).collect()
}

async fn delete_translations(store: &Shared, account: AccountId, name: &str) -> DeleteOutcome {
    store.delete_translations(account, name, Review::Manual, ACTOR, noon(5)).await.unwrap()
}

async fn delete(store: &Shared, account: AccountId, ids: &[TemplateId]) -> DeleteOutcome {
    store.delete_templates(account, ids.to_vec(), Review::Manual, ACTOR, noon(5)).await.unwrap()
}

/// One that is not approved, so that its category may change.
fn waiting(account: AccountId, name: &str, language: &str, category: Category) -> NewTemplate {
    NewTemplate { review: Review::Manual, ..member(account, name, language, category) }
}

fn to(category: Category) -> Edit {
    Edit::Replace { content: None, category: Some(category) }
}

pub(crate) async fn the_languages_of_a_name_are_found_together_oldest_first(store: &Shared) {
    let (mine, theirs) = (account(store, "a").await, account(store, "b").await);
    let made = four(store, mine, "hello").await;
    create(store, member(mine, "hello_again", "en_US", Utility)).await;
    create(store, new(mine, "alone")).await;
    let family = store.family(mine, "hello").await.unwrap();
    assert_eq!(ids(&family), made);
    assert_eq!(Some(&family[2]), store.template(mine, made[2]).await.unwrap().as_deref());
    done(store.delete_template(change(mine, made[1])).await.unwrap());
    assert_eq!(
        ids(&store.family(mine, "hello").await.unwrap()),
        [made[0], made[2], made[3]],
        "what is deleted is no member any more"
    );
    for (account, name) in [(mine, "hell"), (mine, "alone"), (theirs, "hello")] {
        assert_eq!(store.family(account, name).await.unwrap(), [], "{name}");
    }
}

pub(crate) async fn a_language_of_a_name_is_taken_once_in_each_account(store: &Shared) {
    let (mine, theirs) = (account(store, "a").await, account(store, "b").await);
    let id = create(store, member(mine, "hello", "en_US", Utility)).await;
    // Who has it already is told so, whatever the category.
    for category in [Utility, Marketing] {
        let again = store.create_template(member(mine, "hello", "en_US", category)).await.unwrap();
        assert_eq!(again, CreateOutcome::NameInUse(NameConflict { own: Some(id) }));
    }
    create(store, member(theirs, "hello", "en_US", Marketing)).await;
    // And a name that is taken across the service is another thing.
    create(store, new(theirs, "hello")).await;
}

pub(crate) async fn a_creation_in_another_category_than_its_family_is_refused(store: &Shared) {
    let (mine, theirs) = (account(store, "a").await, account(store, "b").await);
    let first = create(store, member(mine, "hello", "en_US", Utility)).await;
    let key = Some(Idempotency { key: [1; 16], payload: [1; 8] });
    let other = NewTemplate { idempotency: key, ..member(mine, "hello", "de_DE", Marketing) };
    let refused = store.create_template(other.clone()).await.unwrap();
    assert_eq!(refused, CreateOutcome::CategoryDiffers(Utility));
    assert_eq!(store.record(mine, [1; 16], noon(0)).await.unwrap(), None);
    assert_eq!(store.taken(mine, &other.claim).await.unwrap(), None);
    assert_eq!(ids(&store.family(mine, "hello").await.unwrap()), [first]);
    assert_eq!(events(store, mine, 0, 10).await.len(), 1);
    // Neither another name nor another account is of this family.
    create(store, member(mine, "bye", "de_DE", Marketing)).await;
    create(store, member(theirs, "hello", "de_DE", Marketing)).await;
    // With the last of them the category is free again; the key was not used up.
    done(store.delete_template(change(mine, first)).await.unwrap());
    let made = created(store.create_template(other.clone()).await.unwrap());
    // What a key made comes before the family.
    let again = store.create_template(other).await.unwrap();
    assert_eq!(again, CreateOutcome::Replayed(made));
}

pub(crate) async fn of_concurrent_creations_one_category_wins_the_family(store: &Shared) {
    let account = account(store, "a").await;
    for round in 0..20 {
        let name = format!("hello{round}");
        let news = LANGUAGES.iter().enumerate().flat_map(|(index, language)| {
            let other = LANGUAGES[(index + 2) % 4];
            [member(account, &name, language, Utility), member(account, &name, other, Marketing)]
        });
        let outcomes = all_at_once(store, news.collect()).await;
        let family = store.family(account, &name).await.unwrap();
        let won = family[0].template.category();
        assert!(family.iter().all(|it| it.template.category() == won), "{family:?}");
        let made = outcomes.iter().filter(|it| matches!(it, CreateOutcome::Created(_))).count();
        let told = |it: &&CreateOutcome| match it {
            CreateOutcome::CategoryDiffers(category) => *category == won,
            CreateOutcome::NameInUse(NameConflict { own }) => own.is_some(),
            _ => false,
        };
        let refused = outcomes.iter().filter(told).count();
        assert_eq!((made, refused, family.len()), (4, 4, 4), "{outcomes:?}");
    }
}

pub(crate) async fn the_category_of_one_language_changes_only_while_it_is_alone(store: &Shared) {
    let account = account(store, "a").await;
    let first = create(store, waiting(account, "hello", "en_US", Utility)).await;
    done(store.edit_template(change(account, first), to(Marketing)).await.unwrap());
    let second = create(store, waiting(account, "hello", "de_DE", Marketing)).await;
    let before = store.family(account, "hello").await.unwrap();
    for edit in [to(Utility), Edit::Restore(1)] {
        let refused = store.edit_template(change(account, first), edit).await.unwrap();
        assert_eq!(refused, ChangeOutcome::FamilyCategory(Marketing));
    }
    assert_eq!(store.family(account, "hello").await.unwrap(), before);
    assert_eq!(events(store, account, 0, 10).await.len(), 4);
    done(store.edit_template(change(account, first), to(Marketing)).await.unwrap());
    done(store.delete_template(change(account, first)).await.unwrap());
    let alone = done(store.edit_template(change(account, second), to(Utility)).await.unwrap());
    assert_eq!(alone.template.category(), Utility);
}

pub(crate) async fn a_category_change_against_a_new_language_leaves_one_category(store: &Shared) {
    let account = account(store, "a").await;
    for round in 0..40 {
        let name = format!("hello{round}");
        let first = create(store, waiting(account, &name, "en_US", Utility)).await;
        let (one, other) = (Arc::clone(store), Arc::clone(store));
        let new = member(account, &name, "de_DE", Utility);
        let edit =
            async move { one.edit_template(change(account, first), to(Marketing)).await.unwrap() };
        let creation = async move { other.create_template(new).await.unwrap() };
        let (edit, creation) = if round % 2 == 0 {
            let edit = tokio::spawn(edit);
            (edit, tokio::spawn(creation))
        } else {
            let creation = tokio::spawn(creation);
            (tokio::spawn(edit), creation)
        };
        match (edit.await.unwrap(), creation.await.unwrap()) {
            (ChangeOutcome::Done(_), CreateOutcome::CategoryDiffers(Marketing))
            | (ChangeOutcome::FamilyCategory(Utility), CreateOutcome::Created(_)) => {}
            other => panic!("{other:?}"),
        }
    }
}

pub(crate) async fn the_category_of_a_language_stays_while_a_version_is_live(store: &Shared) {
    let account = account(store, "a").await;
    let id = create(store, waiting(account, "hello", "en_US", Utility)).await;
    let move_it = async |trigger| {
        done(store.review_template(change(account, id), trigger, None).await.unwrap())
    };
    move_it(Trigger::Approve).await;
    let before = store.template(account, id).await.unwrap();
    let refused = store.edit_template(change(account, id), to(Marketing)).await.unwrap();
    assert_eq!(refused, ChangeOutcome::LiveCategory(Utility));
    assert_eq!(store.template(account, id).await.unwrap(), before);
    // Also while an edit of it waits, but not while it is paused.
    let edit = Edit::Replace { content: Some(r#"{"components":[]}"#.to_owned()), category: None };
    done(store.edit_template(change(account, id), edit).await.unwrap());
    let refused = store.edit_template(change(account, id), to(Marketing)).await.unwrap();
    assert_eq!(refused, ChangeOutcome::LiveCategory(Utility));
    move_it(Trigger::Pause).await;
    done(store.edit_template(change(account, id), to(Marketing)).await.unwrap());
    // Where a name has one language, the flag alone decides.
    let alone = create(store, new(account, "alone")).await;
    done(store.edit_template(change(account, alone), to(Marketing)).await.unwrap());
}

pub(crate) async fn templates_of_an_account_that_say_the_same_find_one_another(store: &Shared) {
    let (mine, theirs) = (account(store, "a").await, account(store, "b").await);
    // Whatever they are called, they say the same.
    let named = |account, name| NewTemplate {
        family: Some(TranslationGroup::of(account, name)),
        ..new(account, name)
    };
    let first = create(store, named(mine, "hello")).await;
    let second = create(store, named(mine, "bye")).await;
    create(store, named(theirs, "welcome")).await;
    let stored = store.template(mine, first).await.unwrap().unwrap();
    let wording = MessageText::of(&stored.template).unwrap();
    let found =
        async |account, except| store.template_with_text(account, &wording, except).await.unwrap();
    assert_eq!(found(mine, None).await, Some(first));
    assert_eq!(found(mine, Some(first)).await, Some(second));
    // Other words take a template out, and bring it back.
    let content = r#"{"components":[{"type":"BODY","text":"Something else"}]}"#.to_owned();
    let edit = Edit::Replace { content: Some(content), category: None };
    done(store.edit_template(change(mine, second), edit).await.unwrap());
    assert_eq!(found(mine, Some(first)).await, None);
    done(store.edit_template(change(mine, second), Edit::Restore(1)).await.unwrap());
    assert_eq!(found(mine, Some(first)).await, Some(second));
    // What is deleted is compared with nothing any more, nor are names that stand alone.
    done(store.delete_template(change(mine, second)).await.unwrap());
    create(store, new(mine, "alone")).await;
    assert_eq!(found(mine, Some(first)).await, None);
}

/// A language that says something else than it did.
fn saying(text: &str, new: NewTemplate) -> NewTemplate {
    let document = format!(
        r#"{{"name":"hello","language":"{}","category":"UTILITY","allow_category_change":true,
        "components":[{{"type":"BODY","text":"{text}"}}]}}"#,
        new.template.language()
    );
    let template = Template::read(&Document::parse(document.as_bytes()).unwrap(), &V1).unwrap();
    NewTemplate { template, ..new }
}

fn upserted(upsertion: UpsertOutcome) -> Vec<TemplateId> {
    match upsertion {
        UpsertOutcome::Done(receipts) => receipts.iter().map(|it| it.id).collect(),
        other => panic!("{other:?}"),
    }
}

pub(crate) async fn several_languages_are_made_or_edited_all_or_none(store: &Shared) {
    let account = account(store, "a").await;
    let language = |language| member(account, "hello", language, Utility);
    let german = create(store, language("de_DE")).await;
    let wanted =
        || ["en_US", "de_DE", "fr_FR"].map(|it| saying("Something new", language(it))).to_vec();
    let made = upserted(store.upsert_templates(wanted()).await.unwrap());
    assert_eq!(made[1], german);
    let numbers: Vec<u64> = events(store, account, 0, 10).await.iter().map(|it| it.seq).collect();
    assert_eq!(numbers, [1, 2, 3, 4]);
    // What is so already stays as it is.
    assert_eq!(upserted(store.upsert_templates(wanted()).await.unwrap()), made);
    assert_eq!(events(store, account, 0, 10).await.len(), 4);
    let before = store.family(account, "hello").await.unwrap();
    // The last of them cannot be edited: nothing happens to the others either.
    done(store.review_template(change(account, made[2]), Trigger::Disable, None).await.unwrap());
    let again = ["es_ES", "en_US", "fr_FR"].map(|it| saying("And again", language(it))).to_vec();
    let refused = store.upsert_templates(again).await.unwrap();
    assert!(
        matches!(&refused, UpsertOutcome::NotEdited(id, ChangeOutcome::InvalidTransition(_)) if *id == made[2])
    );
    let after = store.family(account, "hello").await.unwrap();
    assert_eq!(after[..2], before[..2]);
    assert_eq!(after.len(), 3);
    // Numbers go on without a gap.
    create(store, language("es_ES")).await;
    let numbers: Vec<u64> = events(store, account, 0, 10).await.iter().map(|it| it.seq).collect();
    assert_eq!(numbers, [1, 2, 3, 4, 5, 6]);
    let other =
        NewTemplate { claim: "x".to_owned(), ..member(account, "hello", "it_IT", Marketing) };
    let refused = store.upsert_templates(vec![other]).await.unwrap();
    assert_eq!(refused, UpsertOutcome::NotCreated(CreateOutcome::CategoryDiffers(Utility)));
}

pub(crate) async fn of_concurrent_upserts_of_a_new_name_all_succeed(store: &Shared) {
    let account = account(store, "a").await;
    let wanted = || LANGUAGES.map(|it| member(account, "hello", it, Utility)).to_vec();
    let tasks: Vec<_> = (0..8)
        .map(|_| {
            let (store, news) = (Arc::clone(store), wanted());
            tokio::spawn(async move { store.upsert_templates(news).await.unwrap() })
        })
        .collect();
    for task in tasks {
        upserted(task.await.unwrap());
    }
    assert_eq!(store.family(account, "hello").await.unwrap().len(), 4);
    assert_eq!(events(store, account, 0, 10).await.len(), 4, "each was made once");
}

pub(crate) async fn a_family_is_deleted_whole_with_an_event_for_each(store: &Shared) {
    let (mine, theirs) = (account(store, "a").await, account(store, "b").await);
    let made = four(store, mine, "hello").await;
    let other = create(store, member(mine, "bye", "en_US", Utility)).await;
    four(store, theirs, "hello").await;
    assert_eq!(delete_translations(store, mine, "unknown").await, DeleteOutcome::Done(Vec::new()));
    assert_eq!(delete_translations(store, mine, "hello").await, DeleteOutcome::Done(made.clone()));
    assert_eq!(store.family(mine, "hello").await.unwrap(), []);
    assert_eq!(store.family(theirs, "hello").await.unwrap().len(), 4, "what is theirs stays");
    assert!(store.template(mine, other).await.unwrap().is_some());
    let told = events(store, mine, 5, 10).await;
    assert!(told.iter().all(|it| it.kind == EventType::Deleted && it.actor == ACTOR));
    assert!(told.iter().all(|it| about(it).1 == "hello" && it.at == noon(5)));
    assert_eq!(told.iter().map(|it| it.seq).collect::<Vec<_>>(), [6, 7, 8, 9]);
    assert_eq!(delete_translations(store, mine, "hello").await, DeleteOutcome::Done(Vec::new()));
    // The names are free, and so is the category.
    create(store, member(mine, "hello", "en_US", Marketing)).await;
}

pub(crate) async fn several_templates_are_deleted_all_or_none(store: &Shared) {
    let (mine, theirs) = (account(store, "a").await, account(store, "b").await);
    let made = four(store, mine, "hello").await;
    let foreign = create(store, member(theirs, "hello", "en_US", Utility)).await;
    let gone = create(store, new(mine, "gone")).await;
    done(store.delete_template(change(mine, gone)).await.unwrap());
    let before = events(store, mine, 0, 100).await.len();
    for unknown in [foreign, gone, TemplateId::new(12_345).unwrap()] {
        let asked = [made[0], unknown, made[1]];
        assert_eq!(delete(store, mine, &asked).await, DeleteOutcome::NoTemplate(unknown));
    }
    assert_eq!(ids(&store.family(mine, "hello").await.unwrap()), made);
    assert_eq!(events(store, mine, 0, 100).await.len(), before);
    // One that is named twice goes once; a template of any kind may be among them.
    let alone = create(store, new(mine, "alone")).await;
    let asked = [made[2], alone, made[0], made[2]];
    let deleted = DeleteOutcome::Done(vec![made[2], alone, made[0]]);
    assert_eq!(delete(store, mine, &asked).await, deleted);
    assert_eq!(ids(&store.family(mine, "hello").await.unwrap()), [made[1], made[3]]);
    assert_eq!(store.taken(mine, "alone").await.unwrap(), None);
    assert_eq!(events(store, mine, 0, 100).await.len(), before + 4);
    assert!(store.template(theirs, foreign).await.unwrap().is_some());
}

pub(crate) async fn a_disabled_language_goes_with_its_family_as_it_would_alone(store: &Shared) {
    let account = account(store, "a").await;
    let made = four(store, account, "hello").await;
    let disable = store.review_template(change(account, made[1]), Trigger::Disable, None);
    let disabled = done(disable.await.unwrap());
    assert!(disabled.state.after(Trigger::Delete, Review::Manual).is_ok());
    assert_eq!(delete_translations(store, account, "hello").await, DeleteOutcome::Done(made));
}
