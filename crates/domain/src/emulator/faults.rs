//! Faults: failures of calls and of webhooks on demand.

mod document;

use jiff::SignedDuration;

use super::{
    Glob, duration,
    failures::{self, Failure},
};
use crate::string_enum::string_enum;

pub use document::FAULT;

/// The largest number of faults of an account.
pub const MAX_FAULTS: usize = 100;

/// The longest delay.
pub const MAX_DELAY: SignedDuration = SignedDuration::from_secs(30);

/// The largest number of calls that a fault strikes.
pub const MAX_TIMES: u32 = 1_000_000;

string_enum!(
    /// A call that a fault strikes.
    Call {
        /// Create a template.
        Create "create",
        /// List templates.
        List "list",
        /// Read a template.
        Read "read",
        /// Edit a template.
        Edit "edit",
        /// Delete a template.
        Delete "delete",
        /// Upload a sample.
        Upload "upload",
        /// Send a message.
        Send "send",
        /// A webhook request of the emulator.
        Webhook "webhook",
    }
);

string_enum!(
    /// The kind of a fault.
    FaultKind {
        /// The call fails with a code and changes nothing.
        Error "error",
        /// The response, or the webhook request, comes late.
        Delay "delay",
        /// The connection closes before anything happens.
        CloseBefore "close_before",
        /// The change is made, and the connection closes without a response.
        CloseAfterCommit "close_after_commit",
        /// The change is made, and the response breaks off in the middle.
        Truncate "truncate",
        /// A webhook request is sent twice.
        Duplicate "duplicate",
        /// A webhook request is not sent.
        Drop "drop",
        /// A webhook request is sent after the next one.
        Reorder "reorder",
    }
);

impl FaultKind {
    /// What happens to the call, for the documentation.
    pub fn about(self) -> &'static str {
        match self {
            Self::Error => "The call fails with the code and changes nothing.",
            Self::Delay => "The response, or the webhook request, comes late.",
            Self::CloseBefore => "The connection closes before anything happens.",
            Self::CloseAfterCommit => {
                "The change is made, and the connection closes without a response."
            }
            Self::Truncate => "The change is made, and the response breaks off in the middle.",
            Self::Duplicate => "The webhook request is sent twice.",
            Self::Drop => "The webhook request is not sent.",
            Self::Reorder => "The webhook request is sent after the next one.",
        }
    }

    /// Whether a fault of this kind can strike this call.
    pub fn fits(self, call: Call) -> bool {
        match self {
            Self::Delay => true,
            Self::Duplicate | Self::Drop | Self::Reorder => call == Call::Webhook,
            Self::Error | Self::CloseBefore | Self::CloseAfterCommit | Self::Truncate => {
                call != Call::Webhook
            }
        }
    }
}

impl Call {
    /// Whether the call is about a template, so that a fault can select it by its name.
    pub fn has_name(self) -> bool {
        !matches!(self, Self::List | Self::Upload)
    }
}

/// What a fault does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultEffect {
    /// Fails with this error; see [`FaultKind::Error`].
    Error(Failure),
    /// Waits so long.
    Delay(SignedDuration),
    /// See [`FaultKind::CloseBefore`].
    CloseBefore,
    /// See [`FaultKind::CloseAfterCommit`].
    CloseAfterCommit,
    /// See [`FaultKind::Truncate`].
    Truncate,
    /// See [`FaultKind::Duplicate`].
    Duplicate,
    /// See [`FaultKind::Drop`].
    Drop,
    /// See [`FaultKind::Reorder`].
    Reorder,
}

impl FaultEffect {
    /// The effect of a kind with its code and its delay, if the fault has them.
    fn new(kind: FaultKind, code: Option<u32>, delay: Option<SignedDuration>) -> Option<Self> {
        Some(match kind {
            FaultKind::Error => {
                Self::Error(failures::find(code.unwrap_or(failures::DEFAULT_CODE))?)
            }
            FaultKind::Delay => Self::Delay(delay?),
            FaultKind::CloseBefore => Self::CloseBefore,
            FaultKind::CloseAfterCommit => Self::CloseAfterCommit,
            FaultKind::Truncate => Self::Truncate,
            FaultKind::Duplicate => Self::Duplicate,
            FaultKind::Drop => Self::Drop,
            FaultKind::Reorder => Self::Reorder,
        })
    }

    /// Parses the header `Galley-Fault` of a single call: `close_before`, `close_after_commit`,
    /// `truncate`, `error`, `error=131026` or `delay=5s`. The error says what to write.
    pub fn from_header(text: &str) -> Result<Self, String> {
        let text = text.trim();
        let (kind, argument) = match text.split_once('=') {
            Some((kind, argument)) => (kind.trim(), Some(argument.trim())),
            None => (text, None),
        };
        let known = FaultKind::parse(kind).filter(|kind| kind.fits(Call::Create));
        let Some(kind) = known else {
            let kinds = FaultKind::VALUES.iter().filter(|value| {
                FaultKind::parse(value).is_some_and(|kind| kind.fits(Call::Create))
            });
            let kinds: Vec<&str> = kinds.copied().collect();
            return Err(format!("the fault is not one of {}", kinds.join(", ")));
        };
        match (kind, argument) {
            (FaultKind::Error, argument) => {
                let code = argument.map(|code| code.parse().ok());
                Self::new(kind, code.unwrap_or(Some(failures::DEFAULT_CODE)), None)
                    .filter(|_| code != Some(None))
                    .ok_or_else(|| "the code of the fault is not one of the documented ones".into())
            }
            (FaultKind::Delay, argument) => {
                let delay = argument.and_then(duration::parse).filter(|it| *it <= MAX_DELAY);
                Self::new(kind, None, delay)
                    .ok_or_else(|| "the delay is not a duration up to 30s: `delay=5s`".into())
            }
            (_, Some(_)) => Err(format!("the fault `{}` has no argument", kind.as_str())),
            (_, None) => Self::new(kind, None, None)
                .ok_or_else(|| format!("the fault `{}` needs an argument", kind.as_str())),
        }
    }
}

/// A part of all matching calls, in millionths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Share(u32);

/// The number of parts of a [`Share`].
const SHARE_PARTS: u32 = 1_000_000;

impl Share {
    /// The share `0.000001` to `1`, rounded to millionths.
    pub fn new(share: f64) -> Option<Self> {
        let parts = (share * f64::from(SHARE_PARTS)).round();
        // The text of a whole float has no fraction.
        let parts = (share <= 1.0).then(|| parts.to_string().parse().ok()).flatten()?;
        (1..=SHARE_PARTS).contains(&parts).then_some(Self(parts))
    }

    /// Whether the n-th matching call (from 1) is struck: exactly the share of the first n calls is,
    /// rounded down.
    fn strikes(self, nth: u64) -> bool {
        let struck = |calls: u64| u128::from(calls) * u128::from(self.0) / u128::from(SHARE_PARTS);
        struck(nth) > struck(nth.saturating_sub(1))
    }
}

/// How often a fault strikes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Frequency {
    /// The next so many matching calls.
    Times(u32),
    /// A share of the matching calls, evenly distributed and always the same ones.
    Share(Share),
}

/// A fault of an account.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The call that it strikes.
    pub call: Call,
    /// The names of the templates whose calls it strikes.
    pub name: Option<Glob>,
    /// How often it strikes.
    pub frequency: Frequency,
    /// What it does.
    pub effect: FaultEffect,
    json: String,
}

impl Fault {
    /// The document in canonical form, from which [`Fault::restore`] restores it.
    pub fn as_json(&self) -> &str {
        &self.json
    }

    /// Whether it can strike a call about a template of this name.
    fn matches(&self, call: Call, name: Option<&str>) -> bool {
        let matches_name = |pattern: &Glob| name.is_some_and(|name| pattern.matches(name));
        self.call == call && self.name.as_ref().is_none_or(matches_name)
    }

    /// Whether it never strikes again after so many matching calls.
    pub fn is_spent(&self, matched: u64) -> bool {
        matches!(self.frequency, Frequency::Times(times) if matched >= u64::from(times))
    }
}

/// A fault with the number of calls that it has matched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CountedFault {
    /// The fault.
    pub fault: Fault,
    /// The number of matching calls so far.
    pub matched: u64,
}

/// Decides which fault strikes a call: the index of the first that does, in the order of their
/// creation. Counts the call for this fault and those before it that match.
pub fn decide(faults: &mut [CountedFault], call: Call, name: Option<&str>) -> Option<usize> {
    faults.iter_mut().position(|CountedFault { fault, matched }| {
        if !fault.matches(call, name) || fault.is_spent(*matched) {
            return false;
        }
        *matched += 1;
        match fault.frequency {
            Frequency::Times(_) => true,
            Frequency::Share(share) => share.strikes(*matched),
        }
    })
}

#[cfg(test)]
mod tests;
