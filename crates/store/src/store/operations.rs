//! Manages what a connected account has to create, edit, delete and archive at its provider.

use async_trait::async_trait;
use galley_domain::{
    id::{AccountId, TemplateId},
    upstream::{CallDone, CallFailure, HeldReason, ProbeResult, ProviderError},
};
use jiff::Timestamp;

use crate::{
    Author, Fence, Fenced, StoreError, StoredOperation, StoredTemplate, TemplateChange,
    UpstreamAction, UpstreamActionOutcome,
};

/// How long a settled operation is kept. The newest one of a template stays as long as the template.
pub const OPERATION_DAYS: i64 = 30;

/// Manages operations. A lease on the connection is the right to work on them:
/// [`lease_connection`](crate::UpstreamStore::lease_connection) makes calls and probes of earlier
/// workers, whose outcome is not recorded, unknown.
#[async_trait]
pub trait OperationStore: Send + Sync {
    /// A page of the operations of an account, newest first.
    async fn operations(
        &self,
        account: AccountId,
        before: Option<u64>,
        limit: usize,
    ) -> Result<Vec<StoredOperation>, StoreError>;

    /// The operations of an account that are not settled and are the first ones of their templates,
    /// oldest first.
    async fn open_operations(
        &self,
        account: AccountId,
        limit: usize,
    ) -> Result<Vec<StoredOperation>, StoreError>;

    /// A template at one of its versions, even if the account has deleted it since: a call whose
    /// outcome is unknown may have created it at the provider.
    async fn operation_template(
        &self,
        account: AccountId,
        template: TemplateId,
        version: u64,
    ) -> Result<Option<StoredTemplate>, StoreError>;

    /// Begins the call of an operation, or its probe if the outcome of a call is unknown. The caller
    /// makes the call after this has returned. `None` if the operation is not due, or an earlier one
    /// of its template is not settled.
    async fn begin_operation(
        &self,
        fence: Fence,
        id: u64,
        at: Timestamp,
    ) -> Result<Fenced<Option<StoredOperation>>, StoreError>;

    /// Records the outcome of a call. What was created or edited will be read.
    async fn record_call(
        &self,
        fence: Fence,
        id: u64,
        outcome: Result<CallDone, CallFailure>,
        at: Timestamp,
    ) -> Result<Fenced<Option<StoredOperation>>, StoreError>;

    /// Records the outcome of a probe. The caller has recorded a template that it found
    /// ([`record_read`](crate::UpstreamStore::record_read)).
    async fn record_probe(
        &self,
        fence: Fence,
        id: u64,
        found: ProbeResult,
        at: Timestamp,
    ) -> Result<Fenced<Option<StoredOperation>>, StoreError>;

    /// Queues the operations again that are held for a reason until a call succeeds; returns how many. A
    /// hold with an end of its own stays.
    async fn release_operations(
        &self,
        fence: Fence,
        reason: HeldReason,
        at: Timestamp,
    ) -> Result<Fenced<u64>, StoreError>;

    /// Ends a queued or held operation without a call, because the provider already has what it
    /// wants. The template of the provider will be read. `None` if the operation is in another state.
    async fn skip_operation(
        &self,
        fence: Fence,
        id: u64,
        at: Timestamp,
    ) -> Result<Fenced<Option<StoredOperation>>, StoreError>;

    /// Ends a queued or held operation without a call, in a conflict that a person decides about.
    /// `None` if the operation is in another state.
    async fn record_conflict(
        &self,
        fence: Fence,
        id: u64,
        error: ProviderError,
        at: Timestamp,
    ) -> Result<Fenced<Option<StoredOperation>>, StoreError>;

    /// An operation.
    async fn operation(
        &self,
        account: AccountId,
        id: u64,
    ) -> Result<Option<StoredOperation>, StoreError>;

    /// The newest operation that gives the provider a version of a template or deletes it, even if the
    /// account has deleted the template.
    async fn newest_operation(
        &self,
        account: AccountId,
        template: TemplateId,
    ) -> Result<Option<StoredOperation>, StoreError>;

    /// The newest operation of each of these templates, which tells its state: one about the archive
    /// that is done or superseded does not count. Templates without one are left out.
    async fn operations_of(
        &self,
        account: AccountId,
        templates: Vec<TemplateId>,
    ) -> Result<Vec<StoredOperation>, StoreError>;

    /// Does what a person asks for a template. A queued operation supersedes the earlier ones, except
    /// those whose call has begun. One about the archive and one about a version leave each other.
    async fn act_upstream(
        &self,
        change: TemplateChange,
        action: UpstreamAction,
    ) -> Result<UpstreamActionOutcome, StoreError>;

    /// Supersedes the operations of a template, refused and conflicting ones, too, except those whose
    /// call has begun; returns how many. A person adopts what the provider has instead.
    async fn abandon_operations(
        &self,
        account: AccountId,
        template: TemplateId,
        by: Author,
    ) -> Result<u64, StoreError>;
}
