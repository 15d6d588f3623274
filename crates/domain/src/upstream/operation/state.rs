//! The kinds and states of operations, with the words that are stored and displayed.

use crate::{string_enum::string_enum, upstream::observation::RemoteStatus};

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
        /// The budget of calls is used up, or many calls of the operation had no effect.
        Throttle "throttle",
        /// The provider does not accept the token, or does not allow the call with it. A new token
        /// ends it.
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
