//! Review rules of an emulator account: which template gets which outcome, and when.

use jiff::SignedDuration;

use super::{Glob, duration, report, string, text};
use crate::{
    document::{Document, Json},
    rulebook::{Category, Field, FieldType, ObjectList, ObjectSchema, Presence, StringFormat},
    string_enum::string_enum,
    validation::reader::Reader,
    violation::{Rule, ViolationCollector, Violations},
    webhook::RejectionReason,
};

/// The largest number of rules of an account.
pub const MAX_RULES: usize = 100;

string_enum!(
    /// What a rule or the suffix of a name does to a template.
    Outcome {
        /// Approves it.
        Approve "approve",
        /// Rejects it.
        Reject "reject",
        /// Leaves it PENDING.
        Pending "pending",
        /// Announces the category MARKETING, then applies it.
        ToMarketing "to_marketing",
        /// Announces the category UTILITY, then applies it.
        ToUtility "to_utility",
        /// Announces the category AUTHENTICATION, then applies it.
        ToAuthentication "to_authentication",
        /// Pauses it for 3 hours.
        Pause "pause",
        /// Disables it.
        Disable "disable",
        /// Flags it.
        Flag "flag",
        /// Sets its quality to GREEN.
        QualityGreen "quality_green",
        /// Sets its quality to YELLOW.
        QualityYellow "quality_yellow",
        /// Sets its quality to RED.
        QualityRed "quality_red",
    }
);

/// The schema of a rule.
pub static REVIEW_RULE: ObjectSchema = ObjectSchema {
    title: "a rule",
    fields: &[
        Field {
            name: "name",
            presence: Presence::Optional,
            field_type: string(512, StringFormat::Free),
            about: "The names that the rule applies to: `*` stands for any characters, `?` for one. If absent, all names.",
        },
        Field {
            name: "category",
            presence: Presence::Optional,
            field_type: FieldType::Choice(Category::VALUES),
            about: "The category that the rule applies to. If absent, all categories.",
        },
        Field {
            name: "after",
            presence: Presence::Optional,
            field_type: string(40, StringFormat::Free),
            about: "When the outcome happens, on the account's clock: a duration from `0s` (default, at once) to `365d`.",
        },
        Field {
            name: "outcome",
            presence: Presence::Required,
            field_type: FieldType::Choice(Outcome::VALUES),
            about: "What happens to the template.",
        },
        Field {
            name: "reason",
            presence: Presence::Optional,
            field_type: FieldType::Choice(RejectionReason::VALUES),
            about: "The reason for the rejection; only with the outcome `reject` (default `INVALID_FORMAT`).",
        },
    ],
};

/// The schema of the document.
pub static REVIEW_RULES: ObjectSchema = ObjectSchema {
    title: "review rules",
    fields: &[Field {
        name: "rules",
        presence: Presence::Required,
        field_type: FieldType::ObjectList(ObjectList {
            min: 0,
            max: MAX_RULES,
            title: "rule",
            item: &REVIEW_RULE,
        }),
        about: "The rules of the account. For each new version, the first rule that matches applies.",
    }],
};

/// One rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReviewRule {
    /// The names that it applies to.
    pub name: Option<Glob>,
    /// The category that it applies to.
    pub category: Option<Category>,
    /// When the outcome happens after the version was created.
    pub after: Option<SignedDuration>,
    /// What happens.
    pub outcome: Outcome,
    /// Why a template is rejected.
    pub reason: Option<RejectionReason>,
}

/// The rules of an account, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReviewRules {
    rules: Vec<ReviewRule>,
    json: String,
}

impl Default for ReviewRules {
    /// No rules.
    fn default() -> Self {
        Self { rules: Vec::new(), json: r#"{"rules":[]}"#.to_owned() }
    }
}

impl ReviewRules {
    /// Reads a document. Returns the rules or all violations.
    pub fn read(document: &Document<'_>) -> Result<Self, Violations> {
        let root = document.root();
        let json =
            Reader::read(document, &REVIEW_RULES, |_| true, |violations| check(root, violations))?;
        let rules = items(root).iter().filter_map(rule).collect();
        Ok(Self { rules, json })
    }

    /// Restores stored rules from [`ReviewRules::as_json`].
    pub fn restore(json: &str) -> Option<Self> {
        Self::read(&Document::parse(json.as_bytes()).ok()?).ok()
    }

    /// The document in canonical form.
    pub fn as_json(&self) -> &str {
        &self.json
    }

    /// The first rule that applies to a template.
    pub fn first_match(&self, name: &str, category: Category) -> Option<&ReviewRule> {
        self.rules.iter().find(|rule| {
            rule.category.is_none_or(|it| it == category)
                && rule.name.as_ref().is_none_or(|it| it.matches(name))
        })
    }
}

/// The rules of a document that are read.
fn items<'j, 'd>(root: &'j Json<'d>) -> &'j [Json<'d>] {
    let Some(Json::Array(items)) = root.get("rules") else { return &[] };
    let kept = Json::kept(items);
    &kept[..kept.len().min(MAX_RULES)]
}

/// Checks what the schema cannot express.
fn check(root: &Json<'_>, violations: &mut ViolationCollector) {
    for (index, item) in items(root).iter().enumerate() {
        let is_rejection = text(item, "outcome").and_then(Outcome::parse) == Some(Outcome::Reject);
        // A wrong outcome is reported and may be meant as a rejection.
        let has_other_outcome = text(item, "outcome").and_then(Outcome::parse).is_some();
        if item.get("reason").is_some() && has_other_outcome && !is_rejection {
            let pointer = format!("/rules/{index}/reason");
            let message = "is only used with the outcome `reject`";
            report(violations, pointer, Rule::RuleReason, message, "leave it out");
        }
        let after = text(item, "after").filter(|after| !after.trim().is_empty());
        if let Some(Err(violation)) =
            after.map(|after| duration::check(after, SignedDuration::ZERO, duration::MAX))
        {
            let pointer = format!("/rules/{index}/after");
            report(violations, pointer, violation.rule, violation.message, duration::HINT);
        }
    }
}

/// A valid rule.
fn rule(item: &Json<'_>) -> Option<ReviewRule> {
    Some(ReviewRule {
        name: text(item, "name").map(Glob::new),
        category: text(item, "category").and_then(Category::parse),
        after: text(item, "after").and_then(duration::parse),
        outcome: text(item, "outcome").and_then(Outcome::parse)?,
        reason: text(item, "reason").and_then(RejectionReason::parse),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> ReviewRules {
        ReviewRules::read(&Document::parse(text.as_bytes()).unwrap()).unwrap()
    }

    #[test]
    fn the_first_rule_that_matches_name_and_category_applies() {
        let rules = read(
            r#"{"rules":[
                {"name":"order_*","category":"marketing","outcome":"reject","reason":"promotional"},
                {"name":"order_*","after":"1h30m","outcome":"approve"},
                {"category":"UTILITY","outcome":"PENDING"}]}"#,
        );
        let outcome = |name, category| {
            rules.first_match(name, category).map(|rule| (rule.outcome, rule.reason, rule.after))
        };
        let reason = Some(RejectionReason::Promotional);
        assert_eq!(outcome("order_1", Category::Marketing), Some((Outcome::Reject, reason, None)));
        let after = Some(SignedDuration::from_secs(5_400));
        assert_eq!(outcome("order_1", Category::Utility), Some((Outcome::Approve, None, after)));
        assert_eq!(outcome("other", Category::Utility), Some((Outcome::Pending, None, None)));
        assert_eq!(outcome("other", Category::Marketing), None);
    }

    #[test]
    fn stored_rules_are_restored() {
        let rules = read(r#"{ "rules": [{"outcome": "TO_MARKETING", "name": "a*", "x": 1}] }"#);
        assert_eq!(rules.as_json(), r#"{"rules":[{"name":"a*","outcome":"to_marketing"}]}"#);
        assert_eq!(ReviewRules::restore(rules.as_json()), Some(rules));
        let none = ReviewRules::default();
        assert_eq!(ReviewRules::restore(none.as_json()), Some(none));
        assert_eq!(ReviewRules::restore("{}"), None);
    }
}
