//! The problems of a response: a line of its description and an example for each of them. The code
//! that rejects requests writes the examples.

use galley_domain::{
    document::Document,
    emulator::faults::Fault,
    id::TemplateId,
    render,
    rulebook::V1,
    template::{
        Review, Template,
        lifecycle::{State, Trigger},
        review::Decision,
    },
    token::NewToken,
    violation::Violations,
    webhook::Registration,
};
use jiff::Timestamp;

use super::tree::Node;
use crate::api::problem::{Problem, ProblemKind};

/// Describes the problems with these slugs in a response, and refers to their examples.
pub(super) fn describe(response: &mut Node, slugs: &Node) {
    let kinds: Vec<ProblemKind> = slugs.as_strings().map(by_slug).collect();
    let description = response.entry("description");
    let mut text = description.as_str().unwrap_or_default().to_owned() + "\n";
    for kind in &kinds {
        text.extend(["\n- `", kind.slug(), "`: ", kind.title(), "."]);
    }
    *description = Node::string(text);
    for content in response.entry("content").children_mut() {
        let examples = kinds
            .iter()
            .map(|kind| (kind.slug().to_owned(), Node::reference("examples", kind.slug())));
        *content.entry("examples") = Node::Object(examples.collect());
    }
}

/// The example of a problem, as a component.
pub(super) fn example(slug: &str) -> Node {
    let kind = by_slug(slug);
    Node::Object(vec![
        ("summary".to_owned(), Node::string(kind.title())),
        ("value".to_owned(), Node::parse(&problem(kind).document("order-4711"))),
    ])
}

fn by_slug(slug: &str) -> ProblemKind {
    let kind = ProblemKind::ALL.iter().find(|kind| kind.slug() == slug);
    *kind.unwrap_or_else(|| panic!("there is no problem `{slug}`"))
}

fn problem(kind: ProblemKind) -> Problem {
    const DECISION: &str = r#"{"decision": "accept", "reason": " "}"#;
    const TOKEN: &str = r#"{"name": "nightly import", "scopes": ["reed"]}"#;
    const FAULT: &str = r#"{"call": "list", "kind": "drop", "times": 1, "share": 0.5}"#;
    const WEBHOOK: &str = r#"{"url": "shop.example/hooks", "events": ["template.aproved"]}"#;
    match kind {
        ProblemKind::NameTaken => Problem::name_taken("226542649344000".parse::<TemplateId>().ok()),
        ProblemKind::InvalidTemplate => Problem::from(invalid_template()),
        ProblemKind::InvalidDecision => {
            Problem::invalid_decision(rejected(DECISION, Decision::read))
        }
        ProblemKind::InvalidValues => Problem::invalid_values(invalid_values()),
        ProblemKind::InvalidWebhook => {
            let read = |document: &Document<'_>| Registration::read(document, V1.name);
            Problem::invalid_webhook(rejected(WEBHOOK, read))
        }
        ProblemKind::InvalidTokenDocument => {
            let read = |document: &Document<'_>| NewToken::read(document, Timestamp::UNIX_EPOCH);
            Problem::invalid_token_document(rejected(TOKEN, read))
        }
        ProblemKind::InvalidEmulatorDocument => {
            Problem::invalid_emulator_document(rejected(FAULT, Fault::read))
        }
        ProblemKind::ClockBackwards => {
            let now = "2026-11-16T17:05:42.007Z".parse().expect("a timestamp");
            Problem::clock_backwards(now)
        }
        ProblemKind::MoveNotPossible => invalid_transition(),
        ProblemKind::RevisionOutdated => Problem::revision_outdated(2),
        ProblemKind::EventsForgotten => Problem::events_expired(4_711),
        ProblemKind::RotationOpen => {
            let until = "2026-11-16T17:05:42.007Z".parse().expect("a timestamp");
            Problem::rotation_open(until)
        }
        ProblemKind::NameLocked => {
            Problem::name_locked("2026-12-16T17:05:42.007Z".parse().expect("a timestamp"))
        }
        _ => Problem::of(kind),
    }
}

/// The violations of a template with two errors.
fn invalid_template() -> Violations {
    const DOCUMENT: &str = r#"{"name": "order_shipped", "language": "english", "category": "UTILITY",
        "allow_category_change": true, "components": [{"type": "BODY", "text": "Hi {{name}}!"}]}"#;
    rejected(DOCUMENT, |document| Template::read(document, &V1))
}

/// The violations of values of which one is missing and one is for the wrong button.
fn invalid_values() -> Violations {
    const TEMPLATE: &str = r#"{"name": "order_shipped", "language": "en_US", "category": "UTILITY",
        "allow_category_change": true, "components": [
            {"type": "BODY", "text": "Hi {{1}}, your order {{2}} is on its way.",
             "example": {"body_text": [["Ada", "A-1024"]]}},
            {"type": "BUTTONS", "buttons": [
                {"type": "QUICK_REPLY", "text": "Thank you"},
                {"type": "URL", "text": "Track it", "url": "https://shop.example/track/{{1}}",
                 "example": "A-1024"}]}]}"#;
    const VALUES: &str = r#"{"body": ["Ada"], "buttons": {"0": "4711"}}"#;
    let document = Document::parse(TEMPLATE.as_bytes()).expect("the example is JSON");
    let template = Template::read(&document, &V1).expect("the example is valid");
    rejected(VALUES, |values| render::render(&template, &V1, values).map(|_| ()))
}

/// The response to a request that approves an approved template.
fn invalid_transition() -> Problem {
    let approved = State::initial(Review::Auto);
    let refusal = approved.apply(Trigger::Approve, Review::Auto).expect_err("it is approved");
    Problem::invalid_transition(Trigger::Approve.as_str(), &refusal)
}

/// The violations of an invalid document.
fn rejected<T>(
    document: &str,
    read: impl FnOnce(&Document<'_>) -> Result<T, Violations>,
) -> Violations {
    let document = Document::parse(document.as_bytes()).expect("the example is JSON");
    read(&document).err().expect("the example is invalid")
}
