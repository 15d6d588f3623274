//! What becomes of an operation: a create, an edit, a delete, or putting a template aside and taking it
//! back, which Galley has to make at the provider.
//!
//! `queued → sending → done`, and `sending → unknown → probing → done | queued | conflict` when the
//! outcome of the call is not known. A call is made only in `sending`, and only `queued` becomes
//! `sending`. After a call with an unknown outcome, only a probe leads back to `queued`: Galley does
//! not make a call twice without having looked.

use jiff::{SignedDuration, Timestamp};

use super::{
    content::{ComparableContent, comparable},
    failure::{CallFailure, CallKind, PROBE_INTERVAL, ProviderError},
    observation::{Created, RemoteStatus, RemoteTemplate},
};
use crate::{document::Document, string_enum::string_enum};

string_enum!(
    /// What an operation does at the provider.
    OperationKind {
        /// Creates the template.
        Create "create",
        /// Replaces its content.
        Edit "edit",
        /// Deletes it.
        Delete "delete",
        /// Puts it aside.
        Archive "archive",
        /// Takes it back from the archive.
        Unarchive "unarchive",
    }
);

impl OperationKind {
    /// Whether it gives the provider a version. Such an operation says nothing about other versions.
    pub fn is_submission(self) -> bool {
        matches!(self, Self::Create | Self::Edit)
    }

    /// Whether it puts the template aside or takes it back.
    pub fn is_archiving(self) -> bool {
        matches!(self, Self::Archive | Self::Unarchive)
    }

    /// Whether a template with this status at the provider is where an archiving operation wants it.
    pub fn is_placed(self, status: &RemoteStatus) -> bool {
        self.is_archiving() && (*status == RemoteStatus::Archived) == (self == Self::Archive)
    }

    /// Whether it replaces an earlier operation of the same template whose call was not made. A
    /// version says nothing about the archive, and the archive nothing about versions; a deleted
    /// template needs neither.
    pub fn supersedes(self, earlier: Self) -> bool {
        self == Self::Delete || self.is_archiving() == earlier.is_archiving()
    }
}

string_enum!(
    /// Why an operation is held.
    HeldReason {
        /// The budget of calls is used up.
        Throttle "throttle",
        /// The provider does not accept the token. A new token ends it.
        Credentials "credentials",
        /// The quota of edits is used up, or the status does not allow an edit.
        Quota "quota",
        /// The name of a deleted template is locked.
        NameLock "name_lock",
        /// The account has as many templates as the provider allows.
        Limit "limit",
        /// The provider has restricted the account. A person ends it.
        Restricted "restricted",
    }
);

/// The state of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum OperationState {
    /// The call is to be made.
    Queued,
    /// The call is being made. Committed before the first byte leaves.
    Sending,
    /// The call was made, and its outcome is not known.
    Unknown,
    /// Galley reads the template at the provider to learn the outcome.
    Probing,
    /// The provider has what the operation wanted. Final.
    Done,
    /// The provider refused the call. A person can retry it.
    Refused,
    /// The provider has another template in its place, or none. A person decides.
    Conflict,
    /// A later operation replaced it before its call was made. Final.
    Superseded,
    /// The call was not made or had no effect, and is to be made later.
    Held(HeldReason),
}

impl OperationState {
    /// The word that is stored and displayed; the reason of a hold is stored beside it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Sending => "sending",
            Self::Unknown => "unknown",
            Self::Probing => "probing",
            Self::Done => "done",
            Self::Refused => "refused",
            Self::Conflict => "conflict",
            Self::Superseded => "superseded",
            Self::Held(_) => "held",
        }
    }

    /// The reason of a hold.
    pub fn held_reason(self) -> Option<HeldReason> {
        match self {
            Self::Held(reason) => Some(reason),
            _ => None,
        }
    }

    /// The state with this word. `held` needs its reason.
    pub fn parse(word: &str, reason: Option<HeldReason>) -> Option<Self> {
        Some(match word {
            "queued" => Self::Queued,
            "sending" => Self::Sending,
            "unknown" => Self::Unknown,
            "probing" => Self::Probing,
            "done" => Self::Done,
            "refused" => Self::Refused,
            "conflict" => Self::Conflict,
            "superseded" => Self::Superseded,
            "held" => Self::Held(reason?),
            _ => return None,
        })
    }

    /// Whether a call may have been made whose outcome is not recorded.
    pub fn is_uncertain(self) -> bool {
        matches!(self, Self::Sending | Self::Unknown | Self::Probing)
    }

    /// Whether nothing more happens to the operation by itself.
    pub fn is_settled(self) -> bool {
        matches!(self, Self::Done | Self::Refused | Self::Conflict | Self::Superseded)
    }
}

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

/// What a read at the provider showed after a call with an unknown outcome.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProbeResult {
    /// The template does not exist. After [`CallFailure::Gone`], only if the account is readable.
    Absent,
    /// It has what the operation wants: the content, or the place in or outside of the archive.
    Equal,
    /// It does not have that.
    Different,
    /// The read failed.
    Failed(CallFailure),
}

impl ProbeResult {
    /// Compares what the provider shows with the content that the operation wants. `previous` is the
    /// content before an edit: if the provider shows both alike, for example because only a sample
    /// was replaced, then no read tells whether the edit was made, and it counts as not made.
    pub fn compare(
        found: Option<&RemoteTemplate>,
        wanted: &ComparableContent,
        previous: Option<&ComparableContent>,
    ) -> Self {
        let Some(found) = found.filter(|found| !found.status.is_deleted()) else {
            return Self::Absent;
        };
        let document = found.document.as_deref();
        let document = document.and_then(|text| Document::parse(text.as_bytes()).ok());
        let is_equal = document.is_some_and(|it| comparable(it.root()) == *wanted);
        if is_equal && previous != Some(wanted) { Self::Equal } else { Self::Different }
    }

    /// Compares the status that the provider shows with the one that an archiving operation wants.
    pub fn placed(found: Option<&RemoteTemplate>, kind: OperationKind) -> Self {
        match found.filter(|found| !found.status.is_deleted()) {
            None => Self::Absent,
            Some(found) if kind.is_placed(&found.status) => Self::Equal,
            Some(_) => Self::Different,
        }
    }
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

/// How often an edit is tried that the provider does not allow now.
pub const QUOTA_RETRY: SignedDuration = SignedDuration::from_hours(24);

/// How many calls and probes a change of the archive has, if the responses do not tell what became of it
/// and the probes show that nothing did.
const MAX_ARCHIVE_ATTEMPTS: u32 = 20;

impl Operation {
    /// A new operation.
    pub fn new(kind: OperationKind) -> Self {
        Self { kind, state: OperationState::Queued, attempts: 0, held_until: None, error: None }
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
            (CallFailure::Throttled { rest }, _) => held(HeldReason::Throttle, Some(*rest)),
            // A create is refused as unknown if the token cannot see the account.
            (CallFailure::Credentials(_), _) | (CallFailure::Gone(_), OperationKind::Create) => {
                held(HeldReason::Credentials, None)
            }
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
            | (CallFailure::Exists(_), OperationKind::Create) => {
                self.backing_off(OperationState::Unknown, error, now)
            }
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
                if kind.is_archiving() && self.attempts >= MAX_ARCHIVE_ATTEMPTS =>
            {
                let error = error.or_else(|| Some(unchanged()));
                self.moved(OperationState::Refused, None, error)
            }
            (ProbeResult::Absent, OperationKind::Create)
            | (
                ProbeResult::Different,
                OperationKind::Edit | OperationKind::Archive | OperationKind::Unarchive,
            )
            // The provider answers, so that the call can be made at once.
            | (ProbeResult::Equal | ProbeResult::Different, OperationKind::Delete) => {
                self.moved(OperationState::Queued, None, error)
            }
            (
                ProbeResult::Absent,
                OperationKind::Edit | OperationKind::Archive | OperationKind::Unarchive,
            )
            | (ProbeResult::Different, OperationKind::Create) => {
                self.moved(OperationState::Conflict, None, error)
            }
            (ProbeResult::Failed(failure), _) => {
                let error = failure.error().cloned().or(error);
                let rest = match &failure {
                    // The whole connection rests, and a new token or a person ends that.
                    CallFailure::Credentials(_) | CallFailure::Restricted(_) => None,
                    failure => failure.rest().or(failure.error().map(|_| PROBE_INTERVAL)),
                };
                match rest.map(|rest| later(now, rest)) {
                    Some(until) => self.moved(OperationState::Unknown, Some(until), error),
                    None => self.backing_off(OperationState::Unknown, error, now),
                }
            }
        }
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
        is_possible.then(|| self.moved(OperationState::Queued, None, self.error.clone()))
    }

    /// Queued again because the reason of its hold has ended, for example by a new token.
    pub fn released(&self, reason: HeldReason) -> Option<Self> {
        if self.state == OperationState::Held(reason) { self.retry() } else { None }
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
        Self { kind: self.kind, state, attempts: self.attempts, held_until, error }
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
