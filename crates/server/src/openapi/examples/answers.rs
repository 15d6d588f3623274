//! Examples of what is answered, written by the code that answers.

use galley_domain::{
    document::Document,
    render,
    rulebook::{Category, Rulebook, V1, WHATSAPP},
    template::{
        Review, Status, Template,
        lifecycle::{State, Trigger},
    },
};
use galley_store::{Actor, CredentialId, Decision, StoredTemplate, Version};
use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::{
    super::shared::{ID, PHONE},
    whatsapp,
};
use crate::api::view::{self, Paging};

pub(super) const CREATED: &str = "2026-11-15T09:30:00.123Z";
pub(super) const CHANGED: &str = "2026-11-16T17:05:42.007Z";

pub(in crate::openapi) fn created() -> Value {
    json!({"id": ID, "status": "APPROVED", "category": "MARKETING"})
}

pub(in crate::openapi) fn shown() -> Value {
    written(&view::template(&kept()))
}

/// After an edit of components and category.
pub(in crate::openapi) fn edited() -> Value {
    let mut document = super::template("bodyAndButtons");
    document["category"] = json!("MARKETING");
    document["components"] = super::of_edits()["components"]["value"]["components"].take();
    let before = kept();
    let now = StoredTemplate {
        template: read(&document),
        previous_category: Some(before.template.category()),
        ..after(before, Trigger::Edit)
    };
    written(&view::template(&now))
}

pub(in crate::openapi) fn paused() -> Value {
    written(&view::template(&after(kept(), Trigger::Pause)))
}

pub(in crate::openapi) fn page_of_templates() -> Value {
    let paging = Paging { after: Some(ID.to_owned()), next: Some(format!("?limit=1&after={ID}")) };
    written(&view::templates(&[kept()], &paging))
}

/// Two versions; a reviewer took the second.
pub(in crate::openapi) fn page_of_versions() -> Value {
    let first = Version {
        number: 1,
        status: Status::Approved,
        category: Category::Utility,
        previous_category: None,
        content: String::new(),
        created_at: moment(CREATED),
        created_by: Actor::Token(CredentialId(2)),
        decision: None,
    };
    let decision =
        Decision { at: moment(CHANGED), by: Actor::Token(CredentialId(5)), reason: None };
    let second = Version {
        number: 2,
        category: Category::Marketing,
        previous_category: Some(Category::Utility),
        decision: Some(decision),
        ..first.clone()
    };
    let paging = Paging { after: Some("1".to_owned()), next: None };
    written(&view::versions(&[second, first], &paging))
}

/// What the faulty document meets with.
pub(in crate::openapi) fn verdict() -> Value {
    let faulty = super::of_trials()["faulty"]["value"].to_string();
    let document = Document::parse(faulty.as_bytes()).expect("JSON was written");
    let checked = Template::check(&document, &V1);
    let violations = checked.template.expect_err("the document is faulty");
    json!({"valid": false, "violations": violations.listed(), "warnings": checked.warnings.listed()})
}

/// What becomes of the values of each example.
pub(in crate::openapi) fn rendered() -> Value {
    let mut rendered = Map::new();
    for (rulebook, templates, examples) in [
        (&V1, super::of_templates(), super::of_v1_values()),
        (&WHATSAPP, whatsapp::of_templates(), whatsapp::of_values()),
    ] {
        for (name, example) in examples.as_object().into_iter().flatten() {
            let template = read_by(rulebook, &templates[name]["value"]);
            let values = example["value"].to_string();
            let values = Document::parse(values.as_bytes()).expect("JSON was written");
            let message = render::render(&template, rulebook, &values);
            let message = message.expect("the values fit the template");
            let answer = json!({"summary": example["summary"], "value": message});
            rendered.insert(name.clone(), answer);
        }
    }
    rendered.into()
}

/// A template as it is kept right after its creation.
fn kept() -> StoredTemplate {
    StoredTemplate {
        id: ID.parse().expect("an id"),
        phone: Some(PHONE.to_owned()),
        template: read(&super::template("bodyAndButtons")),
        state: State::initial(Review::Auto),
        previous_category: None,
        reason: None,
        revision: 1,
        created_at: moment(CREATED),
        updated_at: moment(CREATED),
    }
}

fn after(before: StoredTemplate, trigger: Trigger) -> StoredTemplate {
    let (state, _) = before.state.apply(trigger, Review::Auto).expect("the table has this move");
    StoredTemplate { state, updated_at: moment(CHANGED), ..before }
}

pub(super) fn read(document: &Value) -> Template {
    read_by(&V1, document)
}

fn read_by(rulebook: &Rulebook, document: &Value) -> Template {
    let text = document.to_string();
    let document = Document::parse(text.as_bytes()).expect("JSON was written");
    Template::read(&document, rulebook).expect("the example meets every rule")
}

pub(super) fn moment(text: &str) -> Timestamp {
    text.parse().expect("a moment")
}

pub(super) fn written(text: &str) -> Value {
    serde_json::from_str(text).expect("answers are JSON")
}
