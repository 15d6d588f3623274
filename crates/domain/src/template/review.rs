//! Review decisions: the document in which a reviewer decides on a template.

use crate::{
    document::{Document, Json},
    rulebook::{Field, FieldType, ObjectSchema, Presence, StringFormat, StringRule},
    template::lifecycle::Trigger,
    validation::reader::Reader,
    violation::Violations,
};

/// The triggers that a reviewer may use.
const DECISIONS: &[&str] = &["approve", "reject", "pause", "resume", "disable"];

/// The schema of the document.
pub static DECISION: ObjectSchema = ObjectSchema {
    title: "a decision",
    fields: &[
        Field {
            name: "decision",
            presence: Presence::Required,
            field_type: FieldType::Choice(DECISIONS),
            about: "What happens to the template.",
        },
        Field {
            name: "reason",
            presence: Presence::Optional,
            field_type: FieldType::String(StringRule {
                max: 1_024,
                whatsapp_max: None,
                multiline: true,
                format: StringFormat::Free,
            }),
            about: "The reason, for the author of the template.",
        },
    ],
};

/// A decision on a template.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decision {
    /// The transition to apply.
    pub trigger: Trigger,
    /// The reason.
    pub reason: Option<String>,
}

impl Decision {
    /// Reads a document. Returns the decision or all violations.
    pub fn read(document: &Document<'_>) -> Result<Self, Violations> {
        Reader::read(document, &DECISION, |_| true, |_| {})?;
        let text = |key: &str| document.root().get(key).and_then(Json::as_str);
        Ok(Self {
            trigger: text("decision")
                .and_then(Trigger::parse)
                .expect("the schema lists the decisions"),
            reason: text("reason").map(str::to_owned),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Decision, Vec<String>> {
        Decision::read(&Document::parse(text.as_bytes()).unwrap()).map_err(|violations| {
            violations
                .listed()
                .iter()
                .map(|it| format!("{} {}", it.pointer, it.rule.id()))
                .collect()
        })
    }

    #[test]
    fn a_decision_is_one_of_the_triggers_of_reviewers() {
        for value in DECISIONS {
            let decision = read(&format!(r#"{{"decision":"{value}"}}"#)).unwrap();
            assert_eq!((decision.trigger.as_str(), decision.reason), (*value, None));
        }
        let loud = read(r#"{"decision":"REJECT","reason":"too\nloud"}"#).unwrap();
        assert_eq!((loud.trigger, loud.reason.as_deref()), (Trigger::Reject, Some("too\nloud")));
        let violations = read(r#"{"decision":"delete","reason":" "}"#).unwrap_err();
        assert_eq!(violations, ["/decision not-a-choice", "/reason empty"]);
    }
}
