//! Cases about four eyes: who may approve the text that other people have written.

use galley_domain::{
    rulebook::Category,
    template::{Review, edit::Edit, lifecycle::Trigger},
};
use galley_store::{
    Actor, Author, ChangeOutcome, CredentialId, CredentialKind, NewTemplate,
    RotateCredentialOutcome, TemplateChange,
};
use galley_test_macros::on_both_databases;

use super::{
    super::fixture::{Shared, account, change, create, done, new, noon, secret},
    HOUR, decide, token,
};

/// Saves a version that has this body and, unless `label` is empty, a button with this label.
async fn save(store: &Shared, change: &TemplateChange, actor: Actor, body: &str, label: &str) {
    let button = r#"{"type":"URL","text":"LABEL","url":"https://LABEL.example"}"#;
    let buttons = if label.is_empty() { String::new() } else { button.replace("LABEL", label) };
    let content = format!(
        r#"{{"components":[{{"type":"BODY","text":"{body}"}},{{"type":"BUTTONS","buttons":[{buttons}]}}]}}"#
    );
    let edit = Edit::Replace { content: Some(content), category: None };
    let change = TemplateChange { actor, expected: None, ..change.clone() };
    done(store.edit_template(change, edit).await.unwrap());
}

#[on_both_databases]
async fn unchanged_text_keeps_its_authors_under_four_eyes(store: &Shared) {
    let mine = account(store, "mine").await;
    let operator = Author::operator(noon(0));
    let [author, colleague, third] = [7, 8, 9].map(|id| Actor::Token(CredentialId(id)));
    assert!(store.set_account_four_eyes(mine, true, operator).await.unwrap());
    let fresh = async |name: &str| {
        let new = NewTemplate { review: Review::Manual, actor: third, ..new(mine, name) };
        TemplateChange { review: Review::Manual, ..change(mine, create(store, new).await) }
    };
    let refuse = async |change: &TemplateChange, actor: Actor, why: &str| {
        let outcome = decide(store, change, actor, Trigger::Approve).await;
        assert_eq!(outcome, ChangeOutcome::FourEyes, "{why}");
    };
    let allow = async |change: &TemplateChange, actor: Actor, why: &str| {
        let outcome = decide(store, change, actor, Trigger::Approve).await;
        assert!(matches!(outcome, ChangeOutcome::Done(_)), "{why}: {outcome:?}");
    };

    let saved = fresh("saved again").await;
    save(store, &saved, author, "Take the parcel of today", "Pay").await;
    save(store, &saved, colleague, "Take the parcel of today", "Pay").await;
    refuse(&saved, author, "the colleague saved the same text").await;
    save(store, &saved, colleague, "Take the parcel of today!", "Pay").await;
    refuse(&saved, author, "the colleague changed a letter").await;
    save(store, &saved, colleague, "Something else entirely", "Pay").await;
    refuse(&saved, author, "the button is unchanged").await;
    save(store, &saved, colleague, "Something else entirely", "Order").await;
    refuse(&saved, colleague, "the colleague made the version").await;
    allow(&saved, author, "the colleague has written all of it").await;

    // What is live is not made live, and the author of the part that is new does not decide.
    save(store, &saved, author, "Something else entirely", "Cancel").await;
    save(store, &saved, third, "Another text from now on", "Cancel").await;
    refuse(&saved, author, "the label is unchanged").await;
    refuse(&saved, third, "the last editor").await;
    allow(&saved, colleague, "nothing of the colleague is new").await;

    let category = fresh("category").await;
    save(store, &category, author, "Take the parcel of today", "").await;
    let edit = Edit::Replace { content: None, category: Some(Category::Marketing) };
    let by = TemplateChange { actor: colleague, expected: None, ..category.clone() };
    done(store.edit_template(by, edit).await.unwrap());
    refuse(&category, author, "the colleague changed only the category").await;
    let reject = decide(store, &category, author, Trigger::Reject).await;
    assert!(matches!(reject, ChangeOutcome::Done(_)), "a rejection makes nothing live: {reject:?}");

    let restored = fresh("restored").await;
    save(store, &restored, author, "Take the parcel of today", "").await;
    save(store, &restored, colleague, "Something else entirely", "").await;
    let by = TemplateChange { actor: colleague, expected: None, ..restored.clone() };
    done(store.edit_template(by, Edit::Restore(2)).await.unwrap());
    refuse(&restored, author, "the colleague restored the text").await;
    allow(&restored, Actor::Operator, "the operator decides").await;
}

#[on_both_databases]
async fn text_of_an_unknown_author_needs_an_operator(store: &Shared) {
    let mine = account(store, "mine").await;
    let [author, colleague, third] = [7, 8, 9].map(|id| Actor::Token(CredentialId(id)));
    assert!(store.set_account_four_eyes(mine, true, Author::operator(noon(0))).await.unwrap());
    let new = NewTemplate { review: Review::Manual, actor: author, ..new(mine, "long") };
    let change =
        TemplateChange { review: Review::Manual, ..change(mine, create(store, new).await) };
    save(store, &change, author, "Take the parcel of today", "").await;
    // The service keeps 100 versions: the author's are deleted.
    for _ in 0..=100 {
        save(store, &change, colleague, "Take the parcel of today", "").await;
    }
    assert_eq!(store.version(mine, change.id, 2).await.unwrap(), None);
    for reviewer in [author, third] {
        assert_eq!(
            decide(store, &change, reviewer, Trigger::Approve).await,
            ChangeOutcome::FourEyes
        );
    }
    save(store, &change, colleague, "Something else entirely", "").await;
    let approved = decide(store, &change, third, Trigger::Approve).await;
    assert!(matches!(approved, ChangeOutcome::Done(_)), "{approved:?}");
}

#[on_both_databases]
async fn a_rotated_token_is_the_same_person(store: &Shared) {
    let mine = account(store, "mine").await;
    let operator = Author::operator(noon(0));
    assert!(store.set_account_four_eyes(mine, true, operator).await.unwrap());
    let mut tokens = vec![token(store, mine, "first").await, token(store, mine, "other").await];
    for (old, name) in [(0, "second"), (2, "third"), (1, "another")] {
        let new = secret(CredentialKind::Token, name);
        let rotated =
            store.rotate_credential(tokens[old], new, noon(HOUR), operator).await.unwrap();
        let RotateCredentialOutcome::Rotated { id, .. } = rotated else { panic!("{rotated:?}") };
        tokens.push(id);
    }
    let [first, other, second, third, another] = tokens[..] else { panic!("{tokens:?}") };
    for (author, reviewers) in
        [(first, [second, third]), (third, [first, second]), (other, [another; 2])]
    {
        let new = NewTemplate {
            review: Review::Manual,
            actor: Actor::Token(author),
            ..new(mine, &author.to_string())
        };
        let id = create(store, new).await;
        let change = TemplateChange { review: Review::Manual, ..change(mine, id) };
        for reviewer in reviewers {
            let own = decide(store, &change, Actor::Token(reviewer), Trigger::Approve).await;
            assert_eq!(own, ChangeOutcome::FourEyes, "{author} {reviewer}");
        }
        let reviewer = Actor::Token(if author == other { second } else { another });
        let approved = decide(store, &change, reviewer, Trigger::Approve).await;
        assert!(matches!(approved, ChangeOutcome::Done(_)), "{author}: {approved:?}");
    }
}
