//! Review decisions: the document in which a reviewer decides on a template.

use crate::{
    document::{
        Document, Json, Member,
        pointer::{Segment, pointer},
        suggest,
    },
    rulebook::{Field, FieldType, ObjectSchema, Presence, StringFormat, StringRule},
    template::lifecycle::Trigger,
    validation::reader::Reader,
    violation::{Rule, Violation, ViolationCollector, Violations},
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
        Field {
            name: "version",
            presence: Presence::Optional,
            field_type: FieldType::PositiveInteger,
            about: "The version that the reviewer has seen. The decision is refused if it is not the newest one.",
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
    /// The version that the reviewer has seen: only it may be decided on.
    pub version: Option<u64>,
}

impl Decision {
    /// Reads a document. Returns the decision or all violations.
    pub fn read(document: &Document<'_>) -> Result<Self, Violations> {
        let root = document.root();
        Reader::read(document, &DECISION, |_| true, |violations| check_members(root, violations))?;
        let text = |key: &str| document.root().get(key).and_then(Json::as_str);
        Ok(Self {
            trigger: text("decision")
                .and_then(Trigger::parse)
                .expect("the schema lists the decisions"),
            reason: text("reason").map(str::to_owned),
            version: root.get("version").and_then(Json::as_positive_integer),
        })
    }
}

/// Reports unknown members, and a `version` of `null`, which means the same as none elsewhere: a
/// decision that was meant for one version must not decide on another.
fn check_members(root: &Json<'_>, violations: &mut ViolationCollector) {
    let Json::Object(members) = root else { return };
    let known = || DECISION.fields.iter().map(|field| field.name);
    let hint = |key: &str| {
        if let Some(name) = suggest::nearest(key, known()) {
            return format!("did you mean `{name}`?");
        }
        let known: Vec<&str> = known().collect();
        format!("leave it out; the members are `{}`", known.join("`, `"))
    };
    for Member { key, value, .. } in members {
        let is_without = key == "version" && matches!(value, Json::Null);
        if known().any(|name| name == key) && !is_without {
            continue;
        }
        violations.add(|| {
            let (rule, message, hint) = if is_without {
                let message = "must be a positive integer, not null";
                (Rule::WrongType, message, "write a positive integer, or leave it out".to_owned())
            } else {
                (Rule::DecisionMember, "is not a member of a decision", hint(key))
            };
            let (pointer, message) = (pointer(&[Segment::Key(key)]), message.to_owned());
            Violation { pointer, rule, message, hint: Some(hint), span: None }
        });
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

    #[test]
    fn a_decision_names_a_version_and_has_no_other_members() {
        let version = |text: &str| read(text).map(|decision| decision.version);
        assert_eq!(version(r#"{"decision":"approve","reason":null}"#), Ok(None));
        assert_eq!(version(r#"{"decision":"approve","version":7}"#), Ok(Some(7)));
        for (document, violations) in [
            (r#"{"decision":"approve","Version":7}"#, vec!["/Version decision-member"]),
            (r#"{"decision":"approve","versions":null}"#, vec!["/versions decision-member"]),
            (r#"{"decision":"approve","$schema":"a"}"#, vec!["/$schema decision-member"]),
            (r#"{"decision":"approve","version":null}"#, vec!["/version wrong-type"]),
            (r#"{"decision":"approve","version":0}"#, vec!["/version wrong-type"]),
            (r#"{"decision":"approve","version":1.5}"#, vec!["/version wrong-type"]),
            (r#"{"decision":"approve","version":1,"version":2}"#, vec!["/version duplicate-key"]),
            (
                r#"{"decison":"approve","a/b":1}"#,
                vec!["/decision required", "/decison decision-member", "/a~1b decision-member"],
            ),
        ] {
            assert_eq!(version(document).unwrap_err(), violations, "{document}");
        }
    }
}
