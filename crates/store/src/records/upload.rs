//! Files that are sent piece by piece, as they go into a store and come out of it.

use galley_domain::id::AccountId;
use jiff::Timestamp;

/// A file that will be sent.
#[derive(Clone, Debug)]
pub struct NewUpload {
    /// Whose it is.
    pub account: AccountId,
    /// What it is called while it is sent. Random: no two are alike.
    pub id: String,
    /// What it is found by when all of it is there. Random, and nobody can guess it: whoever knows
    /// it may read the file.
    pub handle: String,
    /// What its sender calls it.
    pub file_name: String,
    /// Which type its sender says it has.
    pub file_type: String,
    /// How many bytes it will have.
    pub length: u64,
    /// How many bytes all files of the account may take together.
    pub room: u64,
    /// When.
    pub at: Timestamp,
}

/// What came of announcing a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BeginUploadOutcome {
    /// It can be sent.
    Begun,
    /// It is empty, or larger than [`MAX_UPLOAD_BYTES`](crate::MAX_UPLOAD_BYTES).
    WrongLength,
    /// The account has as many unfinished ones as it may have.
    TooMany,
    /// It does not fit beside the account's other files, which take so many bytes together.
    NoRoom(u64),
    /// An upload has that id or handle.
    Taken,
}

/// A file that is sent, or has been.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Upload {
    /// What its sender calls it.
    pub file_name: String,
    /// Which type its sender says it has.
    pub file_type: String,
    /// How many bytes it will have.
    pub length: u64,
    /// How many of them are there.
    pub received: u64,
    /// What it is found by, once all of it is there.
    pub handle: Option<String>,
    /// The type that its first bytes show, once all of it is there and if they show one.
    pub sniffed: Option<String>,
    /// When it was announced.
    pub created_at: Timestamp,
}

/// What came of sending bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AppendOutcome {
    /// So many are there now; there are more to come.
    Received(u64),
    /// All of it is there.
    Complete {
        /// What it is found by.
        handle: String,
        /// The type that its first bytes show, if they show one.
        sniffed: Option<String>,
    },
    /// They do not begin where the upload ends, which is here; nothing was added.
    Misplaced(u64),
    /// They are more than was announced, which is this; nothing was added.
    TooLong(u64),
    /// They do not fit beside the account's other files, which take so many bytes together; nothing
    /// was added.
    NoRoom(u64),
    /// They would be the last ones, and the file is of another type than its sender said: the whole
    /// upload is forgotten.
    OtherType {
        /// Which type its sender said it has.
        announced: String,
        /// The type that its first bytes show, if they show one.
        shown: Option<String>,
    },
    /// The account has no such upload, or its time is over.
    NoUpload,
}

/// A file that has been sent whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Media {
    /// The type that its first bytes show; `application/octet-stream` if they show none. Never what
    /// its sender said, who could have it taken for a page.
    pub file_type: String,
    /// What its sender calls it; may be empty.
    pub file_name: String,
    /// How many bytes it has.
    pub length: u64,
}
