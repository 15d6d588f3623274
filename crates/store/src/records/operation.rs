//! Operations at a provider.

use galley_domain::{
    id::TemplateId,
    upstream::{
        Operation,
        content::{ContentKey, ContentMatch, VersionContent},
    },
};
use jiff::Timestamp;

use crate::{MirroredTemplate, StoredTemplate};

/// How long a settled operation is kept. The newest one of a template stays as long as the template.
pub const OPERATION_DAYS: i64 = 30;

/// What a person asks for a template of a connected account.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum UpstreamAction {
    /// Submits the newest version, which the provider does not have.
    Submit,
    /// Makes the content of the provider a new version, and ends the hold of a template whose
    /// category the provider changed.
    Accept,
    /// Replaces the content of the provider with the newest version.
    Push,
    /// Makes the last operation again, which was refused, in conflict or held.
    Retry,
    /// Puts the template aside.
    Archive,
    /// Takes the template back from the archive.
    Unarchive,
}

impl UpstreamAction {
    /// The word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Submit => "submit",
            Self::Accept => "accept",
            Self::Push => "push",
            Self::Retry => "retry",
            Self::Archive => "archive",
            Self::Unarchive => "unarchive",
        }
    }
}

/// The result of [`act_upstream`](crate::Store::act_upstream). Only `Queued` and `Changed`
/// change the store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UpstreamActionOutcome {
    /// This operation is queued.
    Queued(Box<StoredOperation>),
    /// The template after the change.
    Changed(Box<StoredTemplate>),
    /// The account has no such template.
    NoTemplate,
    /// The account is not connected to a provider.
    NotConnected,
    /// The template is at this revision, which is not an expected one.
    RevisionMismatch(u64),
    /// The state of the template does not allow it; a sentence says why.
    NotPossible(&'static str),
}

/// An operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredOperation {
    /// Its id.
    pub id: u64,
    /// The template.
    pub template: TemplateId,
    /// The name of the template; `None` if the template was deleted for good.
    pub name: Option<String>,
    /// The language of the template; `None` if the template was deleted for good.
    pub language: Option<String>,
    /// The version.
    pub version: u64,
    /// What it does, and its state.
    pub operation: Operation,
    /// The fingerprint of the content at the provider that its last call has replaced, or that a person
    /// has decided to replace.
    pub replaces: Option<ContentKey>,
    /// When it was queued.
    pub created_at: Timestamp,
    /// When its last call began.
    pub sent_at: Option<Timestamp>,
    /// When its state changed last.
    pub updated_at: Timestamp,
}

impl StoredOperation {
    /// Whether an edit may replace what a row of the mirror shows: content that Galley has sent, or
    /// that a person has seen and decided to replace.
    pub fn may_replace(&self, row: &MirroredTemplate) -> bool {
        !row.drifted || (row.content_key.is_some() && self.replaces == row.content_key)
    }

    /// Whether what the provider shows may have been made by an earlier call of the edit, whose outcome
    /// was unknown: it shows nothing else than the version, and the call is made again. A call
    /// that was a create has replaced nothing.
    pub fn may_have_made(&self, template: &StoredTemplate, document: &str) -> bool {
        let own = VersionContent::of(&template.template);
        let has_replaced = self.sent_at.is_some() && self.replaces.is_some();
        has_replaced && own.compare(document) != ContentMatch::Different
    }

    /// Whether it is about a template whose newest version is this one: it sends that version, or no
    /// content at all.
    pub fn is_about(&self, newest_version: u64) -> bool {
        !self.operation.kind.is_submission() || self.version == newest_version
    }
}
