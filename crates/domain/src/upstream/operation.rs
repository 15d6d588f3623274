//! What becomes of an operation: a create, an edit, a delete, or putting a template aside and taking it
//! back, which Galley has to make at the provider.
//!
//! `queued → sending → done`, and `sending → unknown → probing → done | queued | conflict` when the
//! outcome of the call is not known. A call is made only in `sending`, and only `queued` becomes
//! `sending`. After a call with an unknown outcome, only a probe leads back to `queued`: Galley does
//! not make a call twice without having looked.

use jiff::{SignedDuration, Timestamp};

use super::{
    failure::{CallFailure, CallKind, PROBE_INTERVAL, ProviderError},
    observation::Created,
};

mod probe;
mod state;

pub use probe::{LostCall, ProbeResult, Replaced};
pub use state::{HeldReason, OperationKind, OperationState};

/// What a successful call returned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CallDone {
    /// The template was created.
    Created(Created),
    /// The template was edited.
    Edited,
    /// The template was deleted.
    Deleted,
    /// The template was put aside.
    Archived,
    /// The template was taken back from the archive.
    Unarchived,
}

/// An operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Operation {
    /// What it does.
    pub kind: OperationKind,
    /// Its state.
    pub state: OperationState,
    /// How many times Galley began a call or a probe for it.
    pub attempts: u32,
    /// How many of its calls had an unknown outcome since it was queued, or queued again by a person.
    pub unknown_calls: u32,
    /// Nothing happens to it before this time.
    pub held_until: Option<Timestamp>,
    /// The last error of the provider.
    pub error: Option<ProviderError>,
}

/// The first wait after a call that failed, which doubles with every attempt.
pub const MIN_BACKOFF: SignedDuration = SignedDuration::from_secs(1);

/// The longest wait after a call that failed. All operations settle within 90 seconds after faults
/// end.
pub const MAX_BACKOFF: SignedDuration = SignedDuration::from_mins(1);

/// How often a create of a locked name is tried. The lock of Meta lasts 30 days; its error does not
/// tell when it ends.
pub const NAME_LOCK_RETRY: SignedDuration = SignedDuration::from_hours(7 * 24);

/// How often a create beyond the limit of templates is tried.
pub const LIMIT_RETRY: SignedDuration = SignedDuration::from_hours(1);

/// How often a call is tried that the token may not make, although it can read the account.
pub const PERMISSION_RETRY: SignedDuration = SignedDuration::from_hours(24);

/// How often an edit is tried that the provider does not allow now.
pub const QUOTA_RETRY: SignedDuration = SignedDuration::from_hours(24);

/// How many calls with an unknown outcome are made again as soon as a probe shows that they had no
/// effect. After that, a change of the archive is refused, and others wait.
const MAX_PROMPT_RETRIES: u32 = 10;

/// How often a call is made again that has an unknown outcome each time, and no effect.
pub const UNKNOWN_RETRY: SignedDuration = SignedDuration::from_hours(1);

impl Operation {
    /// A new operation.
    pub fn new(kind: OperationKind) -> Self {
        Self {
            kind,
            state: OperationState::Queued,
            attempts: 0,
            unknown_calls: 0,
            held_until: None,
            error: None,
        }
    }

    /// Whether its next step can be made now: [`begin`](Self::begin) or
    /// [`begin_probe`](Self::begin_probe).
    pub fn is_due(&self, now: Timestamp) -> bool {
        let is_over = |until: Timestamp| until <= now;
        match self.state {
            OperationState::Queued | OperationState::Unknown => self.held_until.is_none_or(is_over),
            OperationState::Held(_) => self.held_until.is_some_and(is_over),
            _ => false,
        }
    }

    /// The call that it waits for; `None` if a call is being made, or none is to be made by itself.
    pub fn awaited_call(&self) -> Option<CallKind> {
        match (self.state, self.kind) {
            (OperationState::Queued, OperationKind::Create) => Some(CallKind::Create),
            (OperationState::Queued, OperationKind::Edit) => Some(CallKind::Edit),
            (OperationState::Queued, OperationKind::Delete) => Some(CallKind::Delete),
            (OperationState::Queued, OperationKind::Archive) => Some(CallKind::Archive),
            (OperationState::Queued, OperationKind::Unarchive) => Some(CallKind::Unarchive),
            (OperationState::Unknown, _) => Some(CallKind::Read),
            _ => None,
        }
    }

    /// Begins the call, if it is due. The result is committed before the first byte leaves.
    pub fn begin(&self, now: Timestamp) -> Option<Self> {
        let is_possible = self.state != OperationState::Unknown && self.is_due(now);
        is_possible.then(|| self.attempt(OperationState::Sending))
    }

    /// After a call.
    #[must_use]
    pub fn after_call(&self, outcome: Result<CallDone, CallFailure>, now: Timestamp) -> Self {
        if self.state != OperationState::Sending {
            return self.clone();
        }
        let Err(failure) = outcome else {
            return self.moved(OperationState::Done, None, None);
        };
        let error = failure.error().cloned();
        let held = |reason, duration: Option<SignedDuration>| {
            let until = duration.map(|duration| later(now, duration));
            self.moved(OperationState::Held(reason), until, error.clone())
        };
        match (&failure, self.kind) {
            (CallFailure::NotSent(_), _) => self.backing_off(OperationState::Queued, error, now),
            // The lookup before the call. It would use up the calls of others.
            (CallFailure::OtherTemplate, _) => {
                let until = Some(later(now, PROBE_INTERVAL));
                self.moved(OperationState::Queued, until, Some(failure.to_error()))
            }
            (CallFailure::Throttled { rest }, _) => held(HeldReason::Throttle, Some(*rest)),
            // A create is refused as unknown if the token cannot see the account.
            (CallFailure::Credentials(_), _) | (CallFailure::Gone(_), OperationKind::Create) => {
                held(HeldReason::Credentials, None)
            }
            (CallFailure::Forbidden(_), _) => held(HeldReason::Credentials, Some(PERMISSION_RETRY)),
            (CallFailure::Restricted(_), _) => held(HeldReason::Restricted, None),
            (CallFailure::NameLocked(_), _) => held(HeldReason::NameLock, Some(NAME_LOCK_RETRY)),
            (CallFailure::TemplateLimit(_), _) => held(HeldReason::Limit, Some(LIMIT_RETRY)),
            (CallFailure::EditNotAllowed(_), OperationKind::Edit) => {
                held(HeldReason::Quota, Some(QUOTA_RETRY))
            }
            // The call is about the account: the provider does not offer the archive. A template that
            // it does not know is refused by name.
            (CallFailure::Gone(_), OperationKind::Archive | OperationKind::Unarchive) => {
                self.moved(OperationState::Refused, None, error)
            }
            (CallFailure::Unknown(_) | CallFailure::TooMuchData(_) | CallFailure::Gone(_), _)
            // An edit whose template the provider does not have creates it.
            | (CallFailure::Exists(_), OperationKind::Create | OperationKind::Edit) => Self {
                unknown_calls: self.unknown_calls.saturating_add(1),
                ..self.backing_off(OperationState::Unknown, error, now)
            },
            (
                CallFailure::Refused(_)
                | CallFailure::Exists(_)
                | CallFailure::EditNotAllowed(_)
                | CallFailure::CursorExpired(_),
                _,
            ) => self.moved(OperationState::Refused, None, error),
        }
    }

    /// At the start of a lease: a call or a probe that was being made has an unknown outcome, because
    /// the process that made it is gone.
    #[must_use]
    pub fn recovered(&self) -> Self {
        match self.state {
            OperationState::Sending | OperationState::Probing => {
                self.moved(OperationState::Unknown, None, self.error.clone())
            }
            _ => self.clone(),
        }
    }

    /// Begins a probe, if it is due.
    pub fn begin_probe(&self, now: Timestamp) -> Option<Self> {
        let is_possible = self.state == OperationState::Unknown && self.is_due(now);
        is_possible.then(|| self.attempt(OperationState::Probing))
    }

    /// After a probe.
    #[must_use]
    pub fn after_probe(&self, found: ProbeResult, now: Timestamp) -> Self {
        if self.state != OperationState::Probing {
            return self.clone();
        }
        let error = self.error.clone();
        match (found, self.kind) {
            (ProbeResult::Absent, OperationKind::Delete)
            | (
                ProbeResult::Equal,
                OperationKind::Create
                | OperationKind::Edit
                | OperationKind::Archive
                | OperationKind::Unarchive,
            ) => self.moved(OperationState::Done, None, None),
            // The provider answers calls and reads, and does not do what is asked.
            (ProbeResult::Different, kind)
                if kind.is_archiving() && self.unknown_calls >= MAX_PROMPT_RETRIES =>
            {
                let error = error.or_else(|| Some(unchanged()));
                self.moved(OperationState::Refused, None, error)
            }
            (ProbeResult::Absent, OperationKind::Create)
            | (
                ProbeResult::Different,
                OperationKind::Edit | OperationKind::Archive | OperationKind::Unarchive,
            )
            | (ProbeResult::Equal | ProbeResult::Different, OperationKind::Delete) => {
                // The provider answers, so that the call can be made at once, unless that never helps:
                // then it leaves the calls to others.
                if self.unknown_calls < MAX_PROMPT_RETRIES {
                    return self.moved(OperationState::Queued, None, error);
                }
                let until = Some(later(now, UNKNOWN_RETRY));
                let error = error.or_else(|| Some(without_effect()));
                self.moved(OperationState::Held(HeldReason::Throttle), until, error)
            }
            (
                ProbeResult::Absent,
                OperationKind::Edit | OperationKind::Archive | OperationKind::Unarchive,
            )
            | (ProbeResult::Different, OperationKind::Create) => {
                self.moved(OperationState::Conflict, None, error)
            }
            (ProbeResult::Failed(failure), _) => {
                // That the name is in use still tells that the call has made nothing.
                let error = match error {
                    Some(error) if error.is_name_in_use() => Some(error),
                    earlier => failure.error().cloned().or(earlier),
                };
                let rest = match &failure {
                    // The whole connection rests, and a new token or a person ends that.
                    CallFailure::Credentials(_) | CallFailure::Restricted(_) => None,
                    CallFailure::OtherTemplate => Some(PROBE_INTERVAL),
                    failure => failure.rest().or(failure.error().map(|_| PROBE_INTERVAL)),
                };
                match rest.map(|rest| later(now, rest)) {
                    Some(until) => self.moved(OperationState::Unknown, Some(until), error),
                    None => self.backing_off(OperationState::Unknown, error, now),
                }
            }
        }
    }

    /// Whether one of its calls may have made what a probe finds. It has not if the provider refused
    /// the only call, because the name is in use.
    pub fn may_be_made(&self) -> bool {
        let is_refused = self.error.as_ref().is_some_and(ProviderError::is_name_in_use);
        !is_refused || self.unknown_calls > 1
    }

    /// Ends a queued operation without a call, because the provider already shows what it wants.
    pub fn unneeded(&self) -> Option<Self> {
        let is_possible = matches!(self.state, OperationState::Queued | OperationState::Held(_));
        is_possible.then(|| self.moved(OperationState::Done, None, None))
    }

    /// Ends a queued operation without a call, because a person has to decide about what the provider
    /// shows.
    pub fn conflicting(&self, error: ProviderError) -> Option<Self> {
        let is_possible = matches!(self.state, OperationState::Queued | OperationState::Held(_));
        is_possible.then(|| self.moved(OperationState::Conflict, None, Some(error)))
    }

    /// Replaced by a later operation. A call whose outcome is not known stays as it is: what it did
    /// at the provider has to be learned first.
    #[must_use]
    pub fn superseded(&self) -> Self {
        let is_final = matches!(self.state, OperationState::Done | OperationState::Superseded);
        if is_final || self.state.is_uncertain() {
            return self.clone();
        }
        self.moved(OperationState::Superseded, None, self.error.clone())
    }

    /// Queued again by a person: refused, in conflict or held.
    pub fn retry(&self) -> Option<Self> {
        let is_possible = matches!(
            self.state,
            OperationState::Refused | OperationState::Conflict | OperationState::Held(_)
        );
        let queued = || self.moved(OperationState::Queued, None, self.error.clone());
        is_possible.then(|| Self { unknown_calls: 0, ..queued() })
    }

    /// Queued again because the reason of its hold has ended, for example by a new token.
    pub fn released(&self, reason: HeldReason) -> Option<Self> {
        if self.state == OperationState::Held(reason) { self.retry() } else { None }
    }

    /// Queued again because a call succeeds. A hold with an end of its own stays: other calls succeeded
    /// when it began.
    pub fn released_by_success(&self, reason: HeldReason) -> Option<Self> {
        self.released(reason).filter(|_| self.held_until.is_none())
    }

    fn attempt(&self, state: OperationState) -> Self {
        let attempts = self.attempts.saturating_add(1);
        Self { attempts, ..self.moved(state, None, self.error.clone()) }
    }

    /// In a state, from which it continues after the backoff.
    fn backing_off(
        &self,
        state: OperationState,
        error: Option<ProviderError>,
        now: Timestamp,
    ) -> Self {
        self.moved(state, Some(later(now, backoff(self.attempts))), error)
    }

    fn moved(
        &self,
        state: OperationState,
        held_until: Option<Timestamp>,
        error: Option<ProviderError>,
    ) -> Self {
        let unknown_calls = if state == OperationState::Done { 0 } else { self.unknown_calls };
        Self { kind: self.kind, state, attempts: self.attempts, unknown_calls, held_until, error }
    }
}

/// The error of a change of the archive that the provider does not make, without a reason.
fn unchanged() -> ProviderError {
    ProviderError {
        code: 0,
        subcode: None,
        title: None,
        message: "The provider did not change the template.".to_owned(),
    }
}

/// The error of an operation whose calls told nothing.
fn without_effect() -> ProviderError {
    ProviderError {
        code: 0,
        subcode: None,
        title: None,
        message: format!("{MAX_PROMPT_RETRIES} calls told nothing, and had no effect."),
    }
}

/// The error of an edit that was not made, because it would replace content that was not sent by Galley
/// and that no person has decided to replace.
pub fn changed_outside() -> ProviderError {
    ProviderError {
        code: 0,
        subcode: None,
        title: Some("The content at the provider was changed there".to_owned()),
        message: "The version was not sent. Accept the content of the provider, or push yours."
            .to_owned(),
    }
}

/// How long to wait after this many attempts.
pub fn backoff(attempts: u32) -> SignedDuration {
    let doublings = attempts.saturating_sub(1).min(16);
    MIN_BACKOFF.checked_mul(1 << doublings).unwrap_or(MAX_BACKOFF).min(MAX_BACKOFF)
}

fn later(now: Timestamp, duration: SignedDuration) -> Timestamp {
    now.checked_add(duration).unwrap_or(Timestamp::MAX)
}

#[cfg(test)]
mod tests;
