//! Suffixes of names that decide the review of a template without any rule, like the numbers of
//! test cards: `_reject_promotional`, `_pending_10m`.

use jiff::SignedDuration;

use super::{duration, rules::Outcome};
use crate::webhook::RejectionReason;

/// What the suffix of a name says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Suffix {
    /// What happens.
    pub outcome: Outcome,
    /// Why the template is rejected.
    pub reason: Option<RejectionReason>,
    /// When it happens after the version was created.
    pub after: Option<SignedDuration>,
}

impl Suffix {
    /// The suffix of a name: `_` and an outcome, for a rejection optionally `_` and a reason, and
    /// optionally `_` and a duration of at least `1s`. A name that is only a suffix has none.
    pub fn of(name: &str) -> Option<Self> {
        let duration = name.rsplit_once('_').and_then(|(rest, last)| {
            let duration = duration::parse(last).filter(SignedDuration::is_positive)?;
            Some((rest, duration))
        });
        match duration {
            Some((rest, duration)) => {
                Self::without_duration(rest).map(|it| Self { after: Some(duration), ..it })
            }
            None => Self::without_duration(name),
        }
    }

    fn without_duration(name: &str) -> Option<Self> {
        let reason = RejectionReason::VALUES.iter().find_map(|value| {
            let rest = strip(name, value)?;
            Some((rest, RejectionReason::parse(value)?))
        });
        if let Some((rest, reason)) = reason {
            let outcome = Outcome::Reject;
            strip(rest, outcome.as_str()).filter(|rest| !rest.is_empty())?;
            return Some(Self { outcome, reason: Some(reason), after: None });
        }
        let outcome = Outcome::VALUES
            .iter()
            .find(|value| strip(name, value).is_some_and(|rest| !rest.is_empty()))?;
        Some(Self { outcome: Outcome::parse(outcome)?, reason: None, after: None })
    }
}

/// The name without `_` and this word in lower case at its end.
fn strip<'n>(name: &'n str, word: &str) -> Option<&'n str> {
    name.strip_suffix(&*word.to_lowercase())?.strip_suffix('_')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_suffix_is_an_outcome_with_a_reason_and_a_duration() {
        use Outcome::{
            Approve, Disable, Flag, Pause, Pending, QualityRed, Reject, ToAuthentication,
            ToMarketing,
        };
        use RejectionReason::{InvalidFormat, Promotional, Scam, TagContentMismatch};
        for (name, outcome, reason, seconds) in [
            ("a_approve", Approve, None, None),
            ("order_shipped_approve_5m", Approve, None, Some(300)),
            ("a_reject", Reject, None, None),
            ("a_reject_promotional", Reject, Some(Promotional), None),
            ("a_reject_scam_2h", Reject, Some(Scam), Some(7_200)),
            ("a_reject_invalid_format", Reject, Some(InvalidFormat), None),
            ("a_reject_tag_content_mismatch_1s", Reject, Some(TagContentMismatch), Some(1)),
            ("a_reject_1d", Reject, None, Some(86_400)),
            ("a_pending", Pending, None, None),
            ("a_pending_10m", Pending, None, Some(600)),
            ("a_pending_1h30m", Pending, None, Some(5_400)),
            ("__pending", Pending, None, None),
            ("a_pause", Pause, None, None),
            ("a_pause_1h", Pause, None, Some(3_600)),
            ("a_disable", Disable, None, None),
            ("a_flag", Flag, None, None),
            ("a_to_marketing", ToMarketing, None, None),
            ("a_to_authentication_7d", ToAuthentication, None, Some(604_800)),
            ("a_quality_red_30m", QualityRed, None, Some(1_800)),
            ("a_pending_approve", Approve, None, None),
        ] {
            let after = seconds.map(SignedDuration::from_secs);
            assert_eq!(Suffix::of(name), Some(Suffix { outcome, reason, after }), "{name}");
        }
    }

    #[test]
    fn other_names_have_no_suffix() {
        for name in [
            "",
            "_",
            "order",
            "pending",
            "_pending",
            "pending_10m",
            "_reject_scam",
            "reject_scam",
            "a_scam",
            "a_10m",
            "a_pending_",
            "a_pending_0s",
            "a_pending_366d",
            "a_pending_10m_5m",
            "a_pending_10x",
            "a_pause_scam",
            "a_reject_none",
            "apending",
            "a_marketing",
            "a_quality",
            "a_quality_unknown",
        ] {
            assert_eq!(Suffix::of(name), None, "{name}");
        }
    }

    proptest! {
        #[test]
        fn every_outcome_with_every_duration_is_found(
            prefix in "[a-z0-9_]{1,20}",
            outcome in prop::sample::select(Outcome::VALUES),
            seconds in prop::option::of(1_i64..=31_536_000),
        ) {
            let after = seconds.map(SignedDuration::from_secs);
            let duration = after.map(|it| format!("_{}", duration::format(it))).unwrap_or_default();
            let suffix = Suffix::of(&format!("{prefix}_{outcome}{duration}")).unwrap();
            prop_assert_eq!((suffix.outcome.as_str(), suffix.after), (outcome, after));
        }
    }
}
