//! The script of a version: what happens to it after its creation, and when.

use jiff::SignedDuration;

use super::{
    actions::Action,
    rules::{Outcome, ReviewRules},
    suffixes::Suffix,
};
use crate::{
    rulebook::Category,
    template::quality::Quality,
    webhook::{CATEGORY_NOTICE, RejectionReason},
};

/// The length of a pause.
pub const PAUSE: SignedDuration = SignedDuration::from_secs(3 * 60 * 60);

/// One step of a script.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScriptStep {
    /// The time after the creation of the version; zero for a step of the creation itself.
    pub after: SignedDuration,
    /// What happens.
    pub action: Action,
}

/// The script of a new version, in the order of its times. The first rule that matches decides, then
/// the suffix of the name; any other template is approved at once.
pub fn steps(name: &str, category: Category, rules: &ReviewRules) -> Vec<ScriptStep> {
    let suffix = match rules.first_match(name, category) {
        Some(rule) => {
            Some(Suffix { outcome: rule.outcome, reason: rule.reason, after: rule.after })
        }
        None => Suffix::of(name),
    };
    let approve = Suffix { outcome: Outcome::Approve, reason: None, after: None };
    steps_of(suffix.unwrap_or(approve), category)
}

fn steps_of(Suffix { outcome, reason, after }: Suffix, category: Category) -> Vec<ScriptStep> {
    let step = |after, action| ScriptStep { after, action };
    let at = after.unwrap_or(SignedDuration::ZERO);
    let approve = step(SignedDuration::ZERO, Action::Approve);
    match outcome {
        Outcome::Approve => vec![step(at, Action::Approve)],
        Outcome::Reject => {
            let reason = reason.unwrap_or(RejectionReason::InvalidFormat);
            vec![step(at, Action::Reject(reason))]
        }
        Outcome::Pending => after.map(|at| step(at, Action::Approve)).into_iter().collect(),
        Outcome::ToMarketing | Outcome::ToUtility | Outcome::ToAuthentication => {
            let target = outcome.category().filter(|target| *target != category);
            let change = target.map(|target| {
                let announce = step(at, Action::AnnounceCategory(target));
                [announce, step(at + CATEGORY_NOTICE, Action::ChangeCategory(target))]
            });
            [approve].into_iter().chain(change.into_iter().flatten()).collect()
        }
        Outcome::Pause => {
            vec![approve, step(at, Action::Pause), step(at + PAUSE, Action::Resume)]
        }
        Outcome::Disable => vec![approve, step(at, Action::Disable)],
        Outcome::Flag => vec![approve, step(at, Action::Flag)],
        Outcome::QualityGreen => vec![approve, step(at, Action::Quality(Quality::Green))],
        Outcome::QualityYellow => vec![approve, step(at, Action::Quality(Quality::Yellow))],
        Outcome::QualityRed => vec![approve, step(at, Action::Quality(Quality::Red))],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{document::Document, emulator::duration};

    /// The steps as text: `after action argument`.
    fn script(name: &str, rules: &str) -> Vec<String> {
        let rules = ReviewRules::read(&Document::parse(rules.as_bytes()).unwrap()).unwrap();
        let steps = steps(name, Category::Utility, &rules);
        assert!(steps.is_sorted_by_key(|it| it.after), "{steps:?}");
        let line = |ScriptStep { after, action }: &ScriptStep| {
            let argument = action.argument().map(|it| format!(" {it}")).unwrap_or_default();
            format!("{} {}{argument}", duration::format(*after), action.as_str())
        };
        steps.iter().map(line).collect()
    }

    const NONE: &str = r#"{"rules":[]}"#;

    #[test]
    fn without_rule_and_suffix_a_template_is_approved_at_once() {
        assert_eq!(script("order", NONE), ["0s approve"]);
    }

    #[test]
    fn a_suffix_decides() {
        for (name, expected) in [
            ("a_approve_5m", &["5m approve"] as &[_]),
            ("a_reject", &["0s reject INVALID_FORMAT"]),
            ("a_reject_promotional_2h", &["2h reject PROMOTIONAL"]),
            ("a_pending", &[]),
            ("a_pending_10m", &["10m approve"]),
            (
                "a_to_marketing_1h",
                &["0s approve", "1h announce_category MARKETING", "1d1h change_category MARKETING"],
            ),
            ("a_to_utility", &["0s approve"]),
            ("a_pause_1h", &["0s approve", "1h pause", "4h resume"]),
            ("a_pause", &["0s approve", "0s pause", "3h resume"]),
            ("a_disable_1d", &["0s approve", "1d disable"]),
            ("a_flag_5s", &["0s approve", "5s flag"]),
            ("a_quality_green", &["0s approve", "0s quality GREEN"]),
            ("a_quality_yellow", &["0s approve", "0s quality YELLOW"]),
            ("a_quality_red_30m", &["0s approve", "30m quality RED"]),
        ] {
            assert_eq!(script(name, NONE), expected, "{name}");
        }
    }

    #[test]
    fn a_rule_overrides_the_suffix() {
        let rule = |rule: &str| format!(r#"{{"rules":[{{"name":"a*",{rule}}}]}}"#);
        let scripted = |text: &str| script("a_reject", &rule(text));
        assert_eq!(scripted(r#""outcome":"approve""#), ["0s approve"]);
        assert_eq!(scripted(r#""outcome":"pending""#), [""; 0]);
        assert_eq!(scripted(r#""outcome":"pending","after":"0s""#), ["0s approve"]);
        let reject = r#""outcome":"reject","after":"1h","reason":"SCAM""#;
        assert_eq!(scripted(reject), ["1h reject SCAM"]);
        assert_eq!(script("b_reject", &rule(reject)), ["0s reject INVALID_FORMAT"]);
    }
}
