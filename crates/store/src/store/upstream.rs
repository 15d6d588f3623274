//! Manages the connections of accounts to a provider, and the mirror of what the provider shows.

use async_trait::async_trait;
use galley_domain::{
    id::{AccountId, TemplateId},
    upstream::{CallKind, Hint, ProviderError, RemoteId},
};
use jiff::{SignedDuration, Timestamp};

use crate::{
    Absence, Author, CallPermit, ConnectOutcome, ConnectionChange, DegradedReason, EndedApproval,
    Fence, Fenced, HintReport, Lease, LeaseState, MirrorCounts, MirrorFilter, MirroredTemplate,
    NewConnection, PageRecord, PageResult, ReadRecord, SecretHash, StoreError, SweepReport, ToRead,
    UpstreamConnection, UpstreamWork,
};

/// How many approvals one write withdraws.
pub const MAX_WITHDRAWN: usize = 200;

/// Manages connected accounts. For any other account these methods find nothing and change nothing.
#[async_trait]
pub trait UpstreamStore: Send + Sync {
    /// Connects an account to a provider.
    async fn connect_upstream(&self, new: NewConnection) -> Result<ConnectOutcome, StoreError>;

    /// Deletes a connection with its mirror and its operations; `false` if there is none. The
    /// templates stay as they are.
    async fn disconnect_upstream(&self, account: AccountId, by: Author)
    -> Result<bool, StoreError>;

    /// Changes a connection; `false` if there is none.
    async fn change_connection(
        &self,
        account: AccountId,
        change: ConnectionChange,
        by: Author,
    ) -> Result<bool, StoreError>;

    /// The connection of an account.
    async fn connection(
        &self,
        account: AccountId,
    ) -> Result<Option<UpstreamConnection>, StoreError>;

    /// All connections, by account.
    async fn connections(&self) -> Result<Vec<UpstreamConnection>, StoreError>;

    /// The connection whose webhook has this secret in its path.
    async fn connection_by_hook(
        &self,
        hash: SecretHash,
    ) -> Result<Option<UpstreamConnection>, StoreError>;

    /// The connections to these accounts at providers, at most `limit`, by account. Several accounts
    /// of Galley may be connected to the same one.
    async fn connections_to(
        &self,
        wabas: Vec<String>,
        limit: usize,
    ) -> Result<Vec<UpstreamConnection>, StoreError>;

    /// The connections with work that no worker has leased: templates to read, a sweep that runs or
    /// is due this long after the last one, operations. Paused connections and those of disabled
    /// accounts have none.
    async fn connections_with_work(
        &self,
        at: Timestamp,
        sweep_interval: SignedDuration,
        calls_per_hour: u32,
    ) -> Result<UpstreamWork, StoreError>;

    /// Leases a connection until `until`; `None` while another lease lasts.
    async fn lease_connection(
        &self,
        account: AccountId,
        at: Timestamp,
        until: Timestamp,
    ) -> Result<Option<Lease>, StoreError>;

    /// Extends a lease. Tells whether a worker should go on.
    async fn extend_lease(
        &self,
        fence: Fence,
        until: Timestamp,
    ) -> Result<Fenced<LeaseState>, StoreError>;

    /// Ends a lease.
    async fn release_connection(&self, fence: Fence) -> Result<Fenced<()>, StoreError>;

    /// Counts a call before it is made. `is_sweep`: it is part of a sweep, which may use only a part
    /// of the budget.
    async fn take_call(
        &self,
        fence: Fence,
        kind: CallKind,
        is_sweep: bool,
        calls_per_hour: u32,
        at: Timestamp,
    ) -> Result<Fenced<CallPermit>, StoreError>;

    /// Makes no call for this long, or longer if calls already rest, because the provider says that
    /// its budget is almost used up. Calls do not fail, so that the connection is not degraded.
    async fn rest_calls(
        &self,
        fence: Fence,
        rest: SignedDuration,
        at: Timestamp,
    ) -> Result<Fenced<()>, StoreError>;

    /// Records why calls fail and until when none is made, or that they succeed again. An event tells
    /// of each change of the reason.
    async fn set_degraded(
        &self,
        fence: Fence,
        degraded: Option<(DegradedReason, Option<Timestamp>, Option<ProviderError>)>,
        at: Timestamp,
    ) -> Result<Fenced<()>, StoreError>;

    /// Records when the token expires; `None` if it does not.
    async fn record_token_expiry(
        &self,
        fence: Fence,
        expires_at: Option<Timestamp>,
    ) -> Result<Fenced<()>, StoreError>;

    /// Begins a sweep, which replaces one that runs; returns its number.
    async fn begin_sweep(
        &self,
        fence: Fence,
        full: bool,
        at: Timestamp,
    ) -> Result<Fenced<u64>, StoreError>;

    /// Records a page of the sweep that runs: its templates and the progress of the sweep. Templates
    /// that the account does not have are created from their documents. What changes in the account
    /// changes at `at`, which is later than the page was seen if its samples were fetched meanwhile.
    async fn record_page(
        &self,
        fence: Fence,
        page: PageRecord,
        at: Timestamp,
    ) -> Result<Fenced<PageResult>, StoreError>;

    /// Ends the sweep that runs. If it counts, what it did not see is missing once more.
    async fn finish_sweep(
        &self,
        fence: Fence,
        at: Timestamp,
    ) -> Result<Fenced<SweepReport>, StoreError>;

    /// Withdraws the approval of templates that neither the mirror nor an operation knows, at most
    /// [`MAX_WITHDRAWN`] at a time; returns them. They were approved before the account was
    /// connected, and the provider does not have them. Withdraws nothing before a sweep has counted, or
    /// while the connection is suspicious.
    async fn withdraw_approvals(
        &self,
        fence: Fence,
        at: Timestamp,
    ) -> Result<Fenced<Vec<EndedApproval>>, StoreError>;

    /// Whether the account has approved templates that the mirror does not know: a first sweep may end
    /// their approval.
    async fn has_own_approvals(&self, account: AccountId) -> Result<bool, StoreError>;

    /// The templates to read at the provider, at most `limit`: those of which something may have
    /// changed, and those that sweeps no longer see.
    async fn templates_to_read(
        &self,
        account: AccountId,
        limit: usize,
    ) -> Result<Vec<ToRead>, StoreError>;

    /// Records a template that was read with its components. What changes in the account changes at
    /// `at`. Returns the approval that it has ended.
    async fn record_read(
        &self,
        fence: Fence,
        read: ReadRecord,
        at: Timestamp,
    ) -> Result<Fenced<Option<EndedApproval>>, StoreError>;

    /// Postpones the read of a template, which failed, until this time or shortly after it. `asked`
    /// is the reason to read it, as it was before the read: if it is another one since, or the
    /// template is gone, nothing changes.
    async fn postpone_read(
        &self,
        fence: Fence,
        id: RemoteId,
        asked: Option<Timestamp>,
        until: Timestamp,
    ) -> Result<Fenced<()>, StoreError>;

    /// Records that the provider does not know a template, while it shows the account. The template
    /// is gone only if sweeps did not see it, either.
    async fn record_absent(
        &self,
        fence: Fence,
        id: RemoteId,
        asked: Option<Timestamp>,
        at: Timestamp,
    ) -> Result<Fenced<Absence>, StoreError>;

    /// Records what webhooks say: what no read shows is kept, and the templates will be read. Needs
    /// no lease.
    async fn record_hints(
        &self,
        account: AccountId,
        hints: Vec<Hint>,
        at: Timestamp,
    ) -> Result<HintReport, StoreError>;

    /// The mirror of templates of the account; those without one are left out. A template has several
    /// rows if the provider had it under other ids: the one that it has, or else the newest, is first.
    async fn mirror_of(
        &self,
        account: AccountId,
        templates: Vec<TemplateId>,
    ) -> Result<Vec<MirroredTemplate>, StoreError>;

    /// A page of the mirror, by ids at the provider.
    async fn mirrored(
        &self,
        account: AccountId,
        filter: MirrorFilter,
        after: Option<RemoteId>,
        limit: usize,
    ) -> Result<Vec<MirroredTemplate>, StoreError>;

    /// How many templates the mirror has.
    async fn mirror_counts(&self, account: AccountId) -> Result<MirrorCounts, StoreError>;

    /// The template of the mirror with this id at the provider.
    async fn mirrored_template(
        &self,
        account: AccountId,
        id: RemoteId,
    ) -> Result<Option<MirroredTemplate>, StoreError>;

    /// The document of a mirrored template, byte for byte as it was received.
    async fn mirrored_document(
        &self,
        account: AccountId,
        id: RemoteId,
    ) -> Result<Option<String>, StoreError>;
}
