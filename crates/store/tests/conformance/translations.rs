//! Cases about translations: templates that share a name and differ in language.

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
use galley_test_macros::on_both_databases;

use super::fixture::{
    ACTOR, Shared, account, change, create, create_concurrently, created, done, events, initiator,
    new, noon, template_subject, translation,
};

const LANGUAGES: [&str; 4] = ["en_US", "de_DE", "pt_BR", "fr_FR"];

/// Creates a name in four languages; returns the ids, oldest first.
async fn create_four(store: &Shared, account: AccountId, name: &str) -> Vec<TemplateId> {
    let mut ids = Vec::new();
    for language in LANGUAGES {
        ids.push(create(store, translation(account, name, language, Utility)).await);
    }
    ids
}

fn ids(templates: &[StoredTemplate]) -> Vec<TemplateId> {
    templates.iter().map(|it| it.id).collect()
}

async fn delete_translations(store: &Shared, account: AccountId, name: &str) -> DeleteOutcome {
    let by = initiator(account, Review::Manual, noon(5));
    store.delete_translations(by, name).await.unwrap()
}

async fn delete(store: &Shared, account: AccountId, ids: &[TemplateId]) -> DeleteOutcome {
    let by = initiator(account, Review::Manual, noon(5));
    store.delete_templates(by, ids.to_vec()).await.unwrap()
}

/// A template that is not approved, so that its category can change.
fn pending(account: AccountId, name: &str, language: &str, category: Category) -> NewTemplate {
    NewTemplate { review: Review::Manual, ..translation(account, name, language, category) }
}

fn category_edit(category: Category) -> Edit {
    Edit::Replace { content: None, category: Some(category) }
}

#[on_both_databases]
async fn translations_are_listed_oldest_first(store: &Shared) {
    let (mine, theirs) = (account(store, "a").await, account(store, "b").await);
    let created_ids = create_four(store, mine, "hello").await;
    create(store, translation(mine, "hello_again", "en_US", Utility)).await;
    create(store, new(mine, "alone")).await;
    let translations = store.translations(mine, "hello").await.unwrap();
    assert_eq!(ids(&translations), created_ids);
    assert_eq!(
        Some(&translations[2]),
        store.template(mine, created_ids[2]).await.unwrap().as_deref()
    );
    done(store.delete_template(change(mine, created_ids[1])).await.unwrap());
    assert_eq!(
        ids(&store.translations(mine, "hello").await.unwrap()),
        [created_ids[0], created_ids[2], created_ids[3]],
        "a deleted template leaves its group"
    );
    for (account, name) in [(mine, "hell"), (mine, "alone"), (theirs, "hello")] {
        assert_eq!(store.translations(account, name).await.unwrap(), [], "{name}");
    }
}

#[on_both_databases]
async fn an_account_has_each_language_of_a_name_once(store: &Shared) {
    let (mine, theirs) = (account(store, "a").await, account(store, "b").await);
    let id = create(store, translation(mine, "hello", "en_US", Utility)).await;
    // The conflict is reported for any category.
    for category in [Utility, Marketing] {
        let again =
            store.create_template(translation(mine, "hello", "en_US", category)).await.unwrap();
        assert_eq!(again, CreateOutcome::NameInUse(NameConflict { existing_id: Some(id) }));
    }
    create(store, translation(theirs, "hello", "en_US", Marketing)).await;
    // A unique key without an account does not conflict with a translation.
    create(store, new(theirs, "hello")).await;
}

#[on_both_databases]
async fn creating_a_translation_in_another_category_is_refused(store: &Shared) {
    let (mine, theirs) = (account(store, "a").await, account(store, "b").await);
    let first = create(store, translation(mine, "hello", "en_US", Utility)).await;
    let key = Some(Idempotency { key: [1; 16], payload: [1; 8] });
    let other = NewTemplate { idempotency: key, ..translation(mine, "hello", "de_DE", Marketing) };
    let refused = store.create_template(other.clone()).await.unwrap();
    assert_eq!(refused, CreateOutcome::CategoryDiffers(Utility));
    assert_eq!(store.idempotency_record(mine, [1; 16], noon(0)).await.unwrap(), None);
    assert_eq!(store.name_conflict(mine, &other.unique_key).await.unwrap(), None);
    assert_eq!(ids(&store.translations(mine, "hello").await.unwrap()), [first]);
    assert_eq!(events(store, mine, 0, 10).await.len(), 1);
    // Other names and other accounts have their own groups.
    create(store, translation(mine, "bye", "de_DE", Marketing)).await;
    create(store, translation(theirs, "hello", "de_DE", Marketing)).await;
    // Once the group is empty, any category is allowed; the refused request did not use up the key.
    done(store.delete_template(change(mine, first)).await.unwrap());
    let recreated = created(store.create_template(other.clone()).await.unwrap());
    // The idempotency record is checked before the category.
    let again = store.create_template(other).await.unwrap();
    assert_eq!(again, CreateOutcome::Replayed(recreated));
}

#[on_both_databases]
async fn concurrent_creations_leave_a_group_with_one_category(store: &Shared) {
    let account = account(store, "a").await;
    for round in 0..20 {
        let name = format!("hello{round}");
        let templates = LANGUAGES.iter().enumerate().flat_map(|(index, language)| {
            let other = LANGUAGES[(index + 2) % 4];
            [
                translation(account, &name, language, Utility),
                translation(account, &name, other, Marketing),
            ]
        });
        let outcomes = create_concurrently(store, templates.collect()).await;
        let translations = store.translations(account, &name).await.unwrap();
        let won = translations[0].template.category();
        assert!(translations.iter().all(|it| it.template.category() == won), "{translations:?}");
        let created_count =
            outcomes.iter().filter(|it| matches!(it, CreateOutcome::Created(_))).count();
        let is_refusal = |it: &&CreateOutcome| match it {
            CreateOutcome::CategoryDiffers(category) => *category == won,
            CreateOutcome::NameInUse(NameConflict { existing_id }) => existing_id.is_some(),
            _ => false,
        };
        let refused = outcomes.iter().filter(is_refusal).count();
        assert_eq!((created_count, refused, translations.len()), (4, 4, 4), "{outcomes:?}");
    }
}

#[on_both_databases]
async fn the_category_changes_only_if_the_group_has_one_template(store: &Shared) {
    let account = account(store, "a").await;
    let first = create(store, pending(account, "hello", "en_US", Utility)).await;
    done(store.edit_template(change(account, first), category_edit(Marketing)).await.unwrap());
    let second = create(store, pending(account, "hello", "de_DE", Marketing)).await;
    let before = store.translations(account, "hello").await.unwrap();
    for edit in [category_edit(Utility), Edit::Restore(1)] {
        let refused = store.edit_template(change(account, first), edit).await.unwrap();
        assert_eq!(refused, ChangeOutcome::GroupCategory(Marketing));
    }
    assert_eq!(store.translations(account, "hello").await.unwrap(), before);
    assert_eq!(events(store, account, 0, 10).await.len(), 4);
    done(store.edit_template(change(account, first), category_edit(Marketing)).await.unwrap());
    done(store.delete_template(change(account, first)).await.unwrap());
    let alone =
        done(store.edit_template(change(account, second), category_edit(Utility)).await.unwrap());
    assert_eq!(alone.template.category(), Utility);
}

#[on_both_databases]
async fn a_concurrent_category_change_and_creation_leave_one_category(store: &Shared) {
    let account = account(store, "a").await;
    for round in 0..40 {
        let name = format!("hello{round}");
        let first = create(store, pending(account, &name, "en_US", Utility)).await;
        let (one, other) = (Arc::clone(store), Arc::clone(store));
        let new = translation(account, &name, "de_DE", Utility);
        let edit = async move {
            one.edit_template(change(account, first), category_edit(Marketing)).await.unwrap()
        };
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
            | (ChangeOutcome::GroupCategory(Utility), CreateOutcome::Created(_)) => {}
            other => panic!("{other:?}"),
        }
    }
}

#[on_both_databases]
async fn the_category_cannot_change_while_a_version_is_live(store: &Shared) {
    let account = account(store, "a").await;
    let id = create(store, pending(account, "hello", "en_US", Utility)).await;
    let transition = async |trigger| {
        done(store.review_template(change(account, id), trigger, None).await.unwrap())
    };
    transition(Trigger::Approve).await;
    let before = store.template(account, id).await.unwrap();
    let refused = store.edit_template(change(account, id), category_edit(Marketing)).await.unwrap();
    assert_eq!(refused, ChangeOutcome::LiveCategory(Utility));
    assert_eq!(store.template(account, id).await.unwrap(), before);
    // The same applies while an edit is pending, but not while the template is paused.
    let edit = Edit::Replace { content: Some(r#"{"components":[]}"#.to_owned()), category: None };
    done(store.edit_template(change(account, id), edit).await.unwrap());
    let refused = store.edit_template(change(account, id), category_edit(Marketing)).await.unwrap();
    assert_eq!(refused, ChangeOutcome::LiveCategory(Utility));
    transition(Trigger::Pause).await;
    done(store.edit_template(change(account, id), category_edit(Marketing)).await.unwrap());
    // Without a translation group, only `allow_category_change` decides.
    let alone = create(store, new(account, "alone")).await;
    done(store.edit_template(change(account, alone), category_edit(Marketing)).await.unwrap());
}

#[on_both_databases]
async fn templates_with_the_same_text_are_found_within_an_account(store: &Shared) {
    let (mine, theirs) = (account(store, "a").await, account(store, "b").await);
    // Different names, same text.
    let named = |account, name| NewTemplate {
        translation_group: Some(TranslationGroup::of(account, name)),
        ..new(account, name)
    };
    let first = create(store, named(mine, "hello")).await;
    let second = create(store, named(mine, "bye")).await;
    create(store, named(theirs, "welcome")).await;
    let stored = store.template(mine, first).await.unwrap().unwrap();
    let text = MessageText::from_template(&stored.template).unwrap();
    let found =
        async |account, except| store.template_with_text(account, &text, except).await.unwrap();
    assert_eq!(found(mine, None).await, Some(first));
    assert_eq!(found(mine, Some(first)).await, Some(second));
    // An edit of the text removes a match; restoring the text brings it back.
    let content = r#"{"components":[{"type":"BODY","text":"Something else"}]}"#.to_owned();
    let edit = Edit::Replace { content: Some(content), category: None };
    done(store.edit_template(change(mine, second), edit).await.unwrap());
    assert_eq!(found(mine, Some(first)).await, None);
    done(store.edit_template(change(mine, second), Edit::Restore(1)).await.unwrap());
    assert_eq!(found(mine, Some(first)).await, Some(second));
    // Deleted templates and templates without a group are not compared.
    done(store.delete_template(change(mine, second)).await.unwrap());
    create(store, new(mine, "alone")).await;
    assert_eq!(found(mine, Some(first)).await, None);
}

/// The same template with another text.
fn with_text(text: &str, new: NewTemplate) -> NewTemplate {
    let document = format!(
        r#"{{"name":"hello","language":"{}","category":"UTILITY","allow_category_change":true,
        "components":[{{"type":"BODY","text":"{text}"}}]}}"#,
        new.template.language()
    );
    let template = Template::read(&Document::parse(document.as_bytes()).unwrap(), &V1).unwrap();
    NewTemplate { template, ..new }
}

fn upserted(outcome: UpsertOutcome) -> Vec<TemplateId> {
    match outcome {
        UpsertOutcome::Done(created) => created.iter().map(|it| it.id).collect(),
        other => panic!("{other:?}"),
    }
}

#[on_both_databases]
async fn an_upsert_applies_to_all_templates_or_none(store: &Shared) {
    let account = account(store, "a").await;
    let language = |language| translation(account, "hello", language, Utility);
    let german = create(store, language("de_DE")).await;
    let templates =
        || ["en_US", "de_DE", "fr_FR"].map(|it| with_text("Something new", language(it))).to_vec();
    let created_ids = upserted(store.upsert_templates(templates()).await.unwrap());
    assert_eq!(created_ids[1], german);
    let numbers: Vec<u64> = events(store, account, 0, 10).await.iter().map(|it| it.seq).collect();
    assert_eq!(numbers, [1, 2, 3, 4]);
    // Templates that need no change stay as they are.
    assert_eq!(upserted(store.upsert_templates(templates()).await.unwrap()), created_ids);
    assert_eq!(events(store, account, 0, 10).await.len(), 4);
    let before = store.translations(account, "hello").await.unwrap();
    // The last one cannot be edited, so the others are not changed either.
    done(
        store
            .review_template(change(account, created_ids[2]), Trigger::Disable, None)
            .await
            .unwrap(),
    );
    let again = ["es_ES", "en_US", "fr_FR"].map(|it| with_text("And again", language(it))).to_vec();
    let refused = store.upsert_templates(again).await.unwrap();
    assert!(
        matches!(&refused, UpsertOutcome::NotEdited(id, ChangeOutcome::InvalidTransition(_)) if *id == created_ids[2])
    );
    let after = store.translations(account, "hello").await.unwrap();
    assert_eq!(after[..2], before[..2]);
    assert_eq!(after.len(), 3);
    // The refused upsert leaves no gap in the event numbers.
    create(store, language("es_ES")).await;
    let numbers: Vec<u64> = events(store, account, 0, 10).await.iter().map(|it| it.seq).collect();
    assert_eq!(numbers, [1, 2, 3, 4, 5, 6]);
    let other = NewTemplate {
        unique_key: "x".to_owned(),
        ..translation(account, "hello", "it_IT", Marketing)
    };
    let refused = store.upsert_templates(vec![other]).await.unwrap();
    assert_eq!(refused, UpsertOutcome::NotCreated(CreateOutcome::CategoryDiffers(Utility)));
}

#[on_both_databases]
async fn concurrent_upserts_of_a_new_name_all_succeed(store: &Shared) {
    let account = account(store, "a").await;
    let templates = || LANGUAGES.map(|it| translation(account, "hello", it, Utility)).to_vec();
    let tasks: Vec<_> = (0..8)
        .map(|_| {
            let (store, templates) = (Arc::clone(store), templates());
            tokio::spawn(async move { store.upsert_templates(templates).await.unwrap() })
        })
        .collect();
    for task in tasks {
        upserted(task.await.unwrap());
    }
    assert_eq!(store.translations(account, "hello").await.unwrap().len(), 4);
    assert_eq!(events(store, account, 0, 10).await.len(), 4, "each template was created once");
}

#[on_both_databases]
async fn deleting_translations_deletes_all_with_an_event_each(store: &Shared) {
    let (mine, theirs) = (account(store, "a").await, account(store, "b").await);
    let created_ids = create_four(store, mine, "hello").await;
    let other = create(store, translation(mine, "bye", "en_US", Utility)).await;
    create_four(store, theirs, "hello").await;
    assert_eq!(delete_translations(store, mine, "unknown").await, DeleteOutcome::Done(Vec::new()));
    assert_eq!(
        delete_translations(store, mine, "hello").await,
        DeleteOutcome::Done(created_ids.clone())
    );
    assert_eq!(store.translations(mine, "hello").await.unwrap(), []);
    assert_eq!(
        store.translations(theirs, "hello").await.unwrap().len(),
        4,
        "other accounts are not affected"
    );
    assert!(store.template(mine, other).await.unwrap().is_some());
    let deletions = events(store, mine, 5, 10).await;
    assert!(deletions.iter().all(|it| it.kind == EventType::Deleted && it.actor == ACTOR));
    assert!(deletions.iter().all(|it| template_subject(it).1 == "hello" && it.at == noon(5)));
    assert_eq!(deletions.iter().map(|it| it.seq).collect::<Vec<_>>(), [6, 7, 8, 9]);
    assert_eq!(delete_translations(store, mine, "hello").await, DeleteOutcome::Done(Vec::new()));
    // The name is free again, with any category.
    create(store, translation(mine, "hello", "en_US", Marketing)).await;
}

#[on_both_databases]
async fn a_bulk_deletion_deletes_all_templates_or_none(store: &Shared) {
    let (mine, theirs) = (account(store, "a").await, account(store, "b").await);
    let created_ids = create_four(store, mine, "hello").await;
    let foreign = create(store, translation(theirs, "hello", "en_US", Utility)).await;
    let gone = create(store, new(mine, "gone")).await;
    done(store.delete_template(change(mine, gone)).await.unwrap());
    let before = events(store, mine, 0, 100).await.len();
    for unknown in [foreign, gone, TemplateId::new(12_345).unwrap()] {
        let requested = [created_ids[0], unknown, created_ids[1]];
        assert_eq!(delete(store, mine, &requested).await, DeleteOutcome::NoTemplate(unknown));
    }
    assert_eq!(ids(&store.translations(mine, "hello").await.unwrap()), created_ids);
    assert_eq!(events(store, mine, 0, 100).await.len(), before);
    // Duplicate ids count once; templates without a group are allowed.
    let alone = create(store, new(mine, "alone")).await;
    let requested = [created_ids[2], alone, created_ids[0], created_ids[2]];
    let deleted = DeleteOutcome::Done(vec![created_ids[2], alone, created_ids[0]]);
    assert_eq!(delete(store, mine, &requested).await, deleted);
    assert_eq!(
        ids(&store.translations(mine, "hello").await.unwrap()),
        [created_ids[1], created_ids[3]]
    );
    assert_eq!(store.name_conflict(mine, "alone").await.unwrap(), None);
    assert_eq!(events(store, mine, 0, 100).await.len(), before + 4);
    assert!(store.template(theirs, foreign).await.unwrap().is_some());
}

#[on_both_databases]
async fn deleting_translations_includes_disabled_ones(store: &Shared) {
    let account = account(store, "a").await;
    let created_ids = create_four(store, account, "hello").await;
    let disable = store.review_template(change(account, created_ids[1]), Trigger::Disable, None);
    let disabled = done(disable.await.unwrap());
    assert!(disabled.state.apply(Trigger::Delete, Review::Manual).is_ok());
    assert_eq!(
        delete_translations(store, account, "hello").await,
        DeleteOutcome::Done(created_ids)
    );
}
