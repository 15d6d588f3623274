//! Reads complete media files.

use async_trait::async_trait;
use galley_domain::id::AccountId;
use jiff::Timestamp;

use crate::{Media, StoreError};

/// A complete file that no template references expires after this long.
pub const UNUSED_MEDIA_DAYS: i64 = 7;

/// Maximum number of bytes that one read of a file returns: what a download holds in memory.
pub const MEDIA_READ_BYTES: usize = 64 * 1_024;

/// Reads complete media files.
#[async_trait]
pub trait MediaStore: Send + Sync {
    /// A complete file that a template of the account may reference by its handle. Creating or
    /// editing a template that references the file exempts it from expiry.
    async fn sample(
        &self,
        account: AccountId,
        handle: &str,
        at: Timestamp,
    ) -> Result<Option<Media>, StoreError>;

    /// A complete file by its handle, which is the only authorisation needed; `None` while its
    /// account is disabled.
    async fn media(&self, handle: &str) -> Result<Option<Media>, StoreError>;

    /// A part of a complete file from `offset` on: 1 to [`MEDIA_READ_BYTES`] bytes, or none at the
    /// end of the file.
    async fn media_chunk(&self, handle: &str, offset: u64) -> Result<Vec<u8>, StoreError>;
}
