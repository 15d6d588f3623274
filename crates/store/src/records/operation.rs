//! Operations at a provider.

use galley_domain::{
    id::{AccountId, TemplateId},
    upstream::{Operation, OperationKind},
};
use jiff::Timestamp;

/// An operation to queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NewOperation {
    /// The account.
    pub account: AccountId,
    /// The template.
    pub template: TemplateId,
    /// The version to create or to replace the content with.
    pub version: u64,
    /// What to do.
    pub kind: OperationKind,
    /// When it is queued.
    pub at: Timestamp,
}

/// An operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredOperation {
    /// Its id.
    pub id: u64,
    /// The template.
    pub template: TemplateId,
    /// The version.
    pub version: u64,
    /// What it does, and its state.
    pub operation: Operation,
    /// When it was queued.
    pub created_at: Timestamp,
    /// When its last call began.
    pub sent_at: Option<Timestamp>,
    /// When its state changed last.
    pub updated_at: Timestamp,
}
