//! What a reviewer says: the document of a decision.

use crate::{
    document::{Document, Json},
    rulebook::{Field, FieldType, ObjectSchema, Presence, StringFormat, StringRule},
    template::lifecycle::Trigger,
    validation::reader::Reader,
    violation::Violations,
};

/// The moves that are a reviewer's.
const DECISIONS: &[&str] = &["approve", "reject", "pause", "resume", "disable"];

/// The form of the document.
pub static DECISION: ObjectSchema = ObjectSchema {
    title: "a decision",
    fields: &[
        Field {
            name: "decision",
            presence: Presence::Required,
            field_type: FieldType::Choice(DECISIONS),
            about: "What is to become of the template.",
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
            about: "Why, for whoever made the template.",
        },
    ],
};

/// A decision on a template.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decision {
    /// Which move.
    pub trigger: Trigger,
    /// Why.
    pub reason: Option<String>,
}

impl Decision {
    /// Reads the document: a decision, or everything that is wrong with it.
    pub fn read(document: &Document<'_>) -> Result<Self, Violations> {
        Reader::read(document, &DECISION, |_| true, |_| {})?;
        let text = |key: &str| document.root().get(key).and_then(Json::as_str);
        Ok(Self {
            trigger: text("decision").and_then(Trigger::parse).expect("one of the words listed"),
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
    fn a_decision_is_one_of_the_reviewers_moves() {
        for word in DECISIONS {
            let decision = read(&format!(r#"{{"decision":"{word}"}}"#)).unwrap();
            assert_eq!((decision.trigger.as_str(), decision.reason), (*word, None));
        }
        let loud = read(r#"{"decision":"REJECT","reason":"too\nloud"}"#).unwrap();
        assert_eq!((loud.trigger, loud.reason.as_deref()), (Trigger::Reject, Some("too\nloud")));
        let faults = read(r#"{"decision":"delete","reason":" "}"#).unwrap_err();
        assert_eq!(faults, ["/decision not-a-choice", "/reason empty"]);
    }
}
