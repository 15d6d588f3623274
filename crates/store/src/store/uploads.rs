//! Receives media files in parts.

use async_trait::async_trait;
use galley_domain::id::AccountId;
use jiff::Timestamp;

use crate::{AppendOutcome, BeginUploadOutcome, NewUpload, StoreError, Upload};

/// The maximum length of an upload; the minimum is 1.
pub const MAX_UPLOAD_BYTES: u64 = 16 * 1_024 * 1_024;

/// How many unfinished uploads an account may have.
pub const MAX_OPEN_UPLOADS: u32 = 64;

/// An unfinished upload expires after this long.
pub const UPLOAD_LIFETIME_HOURS: i64 = 24;

/// How many bytes of an upload one transaction writes: small, so that other writes do not wait
/// long.
pub const UPLOAD_CHUNK_BYTES: usize = 256 * 1_024;

/// The size of a file is rounded up to a multiple of this when it counts towards the quota.
pub const MEDIA_QUOTA_UNIT_BYTES: u64 = 4_096;

/// Receives media files in parts.
#[async_trait]
pub trait UploadStore: Send + Sync {
    /// Begins a resumable upload.
    async fn begin_upload(&self, new: NewUpload) -> Result<BeginUploadOutcome, StoreError>;

    /// An upload of an account; `None` if it does not exist or has expired.
    async fn upload(
        &self,
        account: AccountId,
        id: &str,
        at: Timestamp,
    ) -> Result<Option<Upload>, StoreError>;

    /// Appends bytes to an upload. They must start at its current end and fit into the account's
    /// `quota` for all its files. Not a single transaction: each chunk of [`UPLOAD_CHUNK_BYTES`] is
    /// one. After an error, some chunks may have been stored; [`UploadStore::upload`] returns how many
    /// bytes.
    async fn append_upload(
        &self,
        account: AccountId,
        id: &str,
        offset: u64,
        bytes: &[u8],
        quota: u64,
        at: Timestamp,
    ) -> Result<AppendOutcome, StoreError>;

    /// Deletes an upload that is unfinished or that no template references; `false` if there is no
    /// such upload.
    async fn cancel_upload(
        &self,
        account: AccountId,
        id: &str,
        at: Timestamp,
    ) -> Result<bool, StoreError>;
}
