//! Examples of refusals, written by the code that refuses.

use galley_domain::{
    document::Document,
    render,
    rulebook::V1,
    template::{
        Review, Template,
        lifecycle::{State, Trigger},
        review::Decision,
    },
    webhook::Registration,
};
use serde_json::{Map, Value, json};

use super::{
    super::shared::ID,
    answers::{CHANGED, moment, read},
};
use crate::api::problem::{Problem, ProblemKind};

/// One problem of each kind.
pub(in crate::openapi) fn of_problems() -> Value {
    let examples = ProblemKind::ALL.iter().map(|kind| {
        let document = problem(*kind).document("order-4711");
        let value: Value = serde_json::from_str(&document).unwrap_or_default();
        (kind.slug().to_owned(), json!({"summary": kind.title(), "value": value}))
    });
    Value::Object(examples.collect::<Map<_, _>>())
}

fn problem(kind: ProblemKind) -> Problem {
    match kind {
        ProblemKind::NameTaken => Problem::name_taken(ID.parse().ok()),
        ProblemKind::InvalidTemplate => invalid_template(),
        ProblemKind::InvalidDecision => invalid_decision(),
        ProblemKind::InvalidValues => invalid_values(),
        ProblemKind::MoveNotPossible => invalid_transition(),
        ProblemKind::RevisionOutdated => Problem::revision_outdated(2),
        ProblemKind::InvalidWebhook => invalid_webhook(),
        ProblemKind::EventsForgotten => Problem::events_expired(4_711),
        ProblemKind::RotationOpen => Problem::rotation_open(moment(CHANGED)),
        _ => Problem::of(kind),
    }
}

/// What a template with two faults is answered.
fn invalid_template() -> Problem {
    let faulty = json!({
        "name": "order_shipped",
        "language": "english",
        "category": "UTILITY",
        "allow_category_change": true,
        "components": [{"type": "BODY", "text": "Hi {{name}}!"}],
    });
    let violations = with(&faulty, |document| Template::read(document, &V1).err());
    violations.map_or(Problem::of(ProblemKind::InvalidTemplate), Problem::from)
}

/// What a decision that is none, for a reason that is none, is answered.
fn invalid_decision() -> Problem {
    let faulty = json!({"decision": "accept", "reason": " "});
    let violations = with(&faulty, |document| Decision::read(document).err());
    violations.map_or(Problem::of(ProblemKind::InvalidDecision), Problem::invalid_decision)
}

/// The response to a request that leaves out one value and gives one to the wrong button.
fn invalid_values() -> Problem {
    let faulty = json!({"body": ["Ada"], "buttons": {"0": "4711"}});
    let template = read(&super::template("bodyAndButtons"));
    let violations = with(&faulty, |values| render::render(&template, &V1, values).err());
    violations.map_or(Problem::of(ProblemKind::InvalidValues), Problem::invalid_values)
}

/// What an endpoint without an address, for events that there are not, is answered.
fn invalid_webhook() -> Problem {
    let faulty = json!({"url": "shop.example/hooks", "events": ["template.aproved"]});
    let violations = with(&faulty, |document| Registration::read(document, V1.name).err());
    violations.map_or(Problem::of(ProblemKind::InvalidWebhook), Problem::invalid_webhook)
}

/// The response to a request that approves an approved template.
fn invalid_transition() -> Problem {
    let approved = State::initial(Review::Auto);
    match approved.apply(Trigger::Approve, Review::Auto) {
        Err(refusal) => Problem::invalid_transition(Trigger::Approve.as_str(), &refusal),
        Ok(_) => Problem::of(ProblemKind::MoveNotPossible),
    }
}

fn with<T>(document: &Value, look: impl FnOnce(&Document<'_>) -> T) -> T {
    let text = document.to_string();
    look(&Document::parse(text.as_bytes()).expect("JSON was written"))
}
