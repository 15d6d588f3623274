//! Resumable uploads and the media files that result from them.

use galley_domain::id::AccountId;
use jiff::Timestamp;

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

/// A complete file that no template references expires after this long.
pub const UNUSED_MEDIA_DAYS: i64 = 7;

/// Maximum number of bytes that one read of a file returns: what a download holds in memory.
pub const MEDIA_READ_BYTES: usize = 64 * 1_024;

/// An upload to begin.
#[derive(Clone, Debug)]
pub struct NewUpload {
    /// The account that owns it.
    pub account: AccountId,
    /// The upload's id while it is in progress: random and unique.
    pub id: String,
    /// The handle of the complete file: random and unguessable. Knowing it is enough to read the
    /// file.
    pub handle: String,
    /// The file name that the client declared.
    pub file_name: String,
    /// The media type that the client declared.
    pub file_type: String,
    /// The length of the complete file in bytes.
    pub length: u64,
    /// The account's quota for all its files, in bytes.
    pub quota: u64,
    /// The start time.
    pub at: Timestamp,
    /// The start time on the clock of an emulator account.
    pub emulated_at: Option<Timestamp>,
}

/// The result of [`begin_upload`](crate::Store::begin_upload).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BeginUploadOutcome {
    /// The upload can receive bytes.
    Begun,
    /// The length is 0 or more than [`MAX_UPLOAD_BYTES`](crate::MAX_UPLOAD_BYTES).
    InvalidLength,
    /// The account has [`MAX_OPEN_UPLOADS`](crate::MAX_OPEN_UPLOADS) unfinished uploads.
    TooMany,
    /// The file would exceed the quota, of which the account's files use this many bytes.
    QuotaExceeded(u64),
    /// Another upload has that id or handle.
    DuplicateId,
}

/// An upload, in progress or complete.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Upload {
    /// The file name that the client declared.
    pub file_name: String,
    /// The media type that the client declared.
    pub file_type: String,
    /// The length of the complete file in bytes.
    pub length: u64,
    /// How many bytes have been received.
    pub received: u64,
    /// The handle of the file, once it is complete.
    pub handle: Option<String>,
    /// The media type that the first bytes indicate, if any, once the file is complete.
    pub sniffed: Option<String>,
    /// When the upload began.
    pub created_at: Timestamp,
    /// When it began on the clock of an emulator account.
    pub emulated_at: Option<Timestamp>,
}

/// The result of [`append_upload`](crate::Store::append_upload).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AppendOutcome {
    /// This many bytes have been received in total; the file is not complete.
    Received(u64),
    /// The file is complete.
    Complete {
        /// The handle of the file.
        handle: String,
        /// The media type that the first bytes indicate, if any.
        sniffed: Option<String>,
    },
    /// The upload continues at this offset, not at the given one; nothing was added.
    OffsetMismatch(u64),
    /// The bytes exceed the declared length, which is this; nothing was added.
    TooLong(u64),
    /// The next chunk would exceed the quota, of which the account's files use this many bytes.
    /// Chunks before it were added.
    QuotaExceeded(u64),
    /// The complete file is not of the declared type; the upload was deleted.
    TypeMismatch {
        /// The media type that the client declared.
        declared: String,
        /// The media type that the first bytes indicate, if any.
        sniffed: Option<String>,
    },
    /// The account has no such upload, or the upload has expired.
    NoUpload,
}

/// A complete media file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Media {
    /// The media type that the first bytes indicate, or else `application/octet-stream`. Never the
    /// declared type: a client could have the file served as HTML.
    pub file_type: String,
    /// The file name that the client declared; may be empty.
    pub file_name: String,
    /// The length in bytes.
    pub length: u64,
    /// When its upload began on the clock of an emulator account. For a sample, `None` once a
    /// template uses it.
    pub emulated_at: Option<Timestamp>,
    /// The faithful emulator account that owns it, whose links to samples expire. `None` for a
    /// sample, which is read for its account.
    pub faithful: Option<AccountId>,
}
