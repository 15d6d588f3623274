//! Whether an upload may begin, what an append writes, when a file expires, and how their rows are
//! decoded.

use galley_domain::emulator::EmulatorKind;
use jiff::{SignedDuration, Timestamp};

use crate::{
    AppendOutcome, BeginUploadOutcome, MAX_OPEN_UPLOADS, MAX_UPLOAD_BYTES, Media, NewUpload,
    StoreError, UNUSED_MEDIA_DAYS, UPLOAD_CHUNK_BYTES, UPLOAD_LIFETIME_HOURS, Upload,
    encoding::{millis, quota_bytes},
    stored_row::{Row, StoredRow as _},
};

/// A stored chunk shorter than this is extended by the next append, so that an upload in many small
/// appends still has few chunks.
const MIN_CHUNK_BYTES: usize = 16 * 1_024;

/// How much longer an unused file is stored than templates may reference it: a create that has just
/// checked the file may still be about to commit.
const DELETION_GRACE: SignedDuration = SignedDuration::from_hours(1);

/// How many bytes of its account's quota a file uses before and after a change; 0 if there is no file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct QuotaChange {
    pub(super) before: u64,
    pub(super) after: u64,
}

/// What an account has uploaded.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Uploaded {
    /// How many of its uploads are unfinished.
    pub(super) unfinished: u64,
    /// How many bytes of the quota its files use.
    pub(super) used: u64,
}

/// Decides whether an upload may begin, and what it uses of the quota then.
pub(super) fn plan_upload(
    new: &NewUpload,
    Uploaded { unfinished, used }: Uploaded,
) -> Result<QuotaChange, BeginUploadOutcome> {
    if !(1..=MAX_UPLOAD_BYTES).contains(&new.length) {
        return Err(BeginUploadOutcome::InvalidLength);
    }
    if unfinished >= u64::from(MAX_OPEN_UPLOADS) {
        return Err(BeginUploadOutcome::TooMany);
    }
    if used.saturating_add(quota_bytes(new.length, &new.file_name)) > new.quota {
        return Err(BeginUploadOutcome::QuotaExceeded(used));
    }
    Ok(QuotaChange { before: 0, after: quota_bytes(0, &new.file_name) })
}

/// The row of an upload.
pub(super) struct StoredUpload {
    /// Its chunks refer to this number.
    pub(super) number: i64,
    /// The handle of the file, which its sender learns when it is complete.
    handle: String,
    pub(super) upload: Upload,
}

impl StoredUpload {
    pub(super) fn read(row: &Row<'_>) -> Result<Self, StoreError> {
        let handle: String = row.value("handle")?;
        let (length, received) = (row.number("length")?, row.number("received")?);
        let upload = Upload {
            file_name: row.value("file_name")?,
            file_type: row.value("file_type")?,
            length,
            received,
            handle: (received == length).then(|| handle.clone()),
            sniffed: row.value("sniffed")?,
            created_at: row.timestamp("created_at")?,
            emulated_at: row.optional_timestamp("emulated_at")?,
        };
        Ok(Self { number: row.value("number")?, handle, upload })
    }

    /// The outcome of the last part.
    pub(super) fn complete(&self, sniffed: Option<String>) -> AppendOutcome {
        AppendOutcome::Complete { handle: self.handle.clone(), sniffed }
    }
}

/// The part of an append that one transaction writes.
pub(super) struct Part {
    pub(super) offset: u64,
    pub(super) bytes: Vec<u8>,
    /// Number of bytes that follow in the same append.
    pub(super) remaining: u64,
    /// Maximum number of bytes for all files of the account.
    pub(super) quota: u64,
}

/// Splits an append into parts; there is at least one, which may be empty.
pub(super) fn parts(offset: u64, bytes: &[u8], quota: u64) -> impl Iterator<Item = Part> {
    let starts = (0..bytes.len().max(1)).step_by(UPLOAD_CHUNK_BYTES);
    starts.map(move |start| {
        let rest = &bytes[start..];
        let (current, remaining) = rest.split_at(rest.len().min(UPLOAD_CHUNK_BYTES));
        Part {
            offset: offset.saturating_add(start as u64),
            bytes: current.to_owned(),
            remaining: remaining.len() as u64,
            quota,
        }
    })
}

/// What an append of one part writes.
#[derive(Clone, Copy)]
pub(super) struct AppendPlan {
    /// How many bytes have been received afterwards.
    pub(super) received: u64,
    pub(super) is_complete: bool,
    pub(super) quota: QuotaChange,
}

impl AppendPlan {
    /// Decides what a part writes, or returns the outcome if it writes nothing. `used` is how many
    /// bytes of the quota the account's files use.
    pub(super) fn new(
        stored: &StoredUpload,
        part: &Part,
        used: u64,
    ) -> Result<Self, AppendOutcome> {
        let upload = &stored.upload;
        if part.offset != upload.received {
            return Err(AppendOutcome::OffsetMismatch(upload.received));
        }
        let received = upload.received + part.bytes.len() as u64;
        if received + part.remaining > upload.length {
            return Err(AppendOutcome::TooLong(upload.length));
        }
        let is_complete = received == upload.length;
        if part.bytes.is_empty() {
            return Err(if is_complete {
                stored.complete(upload.sniffed.clone())
            } else {
                AppendOutcome::Received(received)
            });
        }
        let quota = QuotaChange {
            before: quota_bytes(upload.received, &upload.file_name),
            after: quota_bytes(received, &upload.file_name),
        };
        let used_after = used.saturating_sub(quota.before).saturating_add(quota.after);
        if used_after > part.quota && quota.after > quota.before {
            return Err(AppendOutcome::QuotaExceeded(used));
        }
        Ok(Self { received, is_complete, quota })
    }
}

/// New bytes extend the last stored chunk if it is shorter than this, and else become a chunk of their
/// own.
pub(super) fn extended_below(new: usize) -> usize {
    MIN_CHUNK_BYTES.min((UPLOAD_CHUNK_BYTES + 1).saturating_sub(new))
}

/// Unfinished uploads created at or before this time have expired.
pub(super) fn unfinished_cutoff(at: Timestamp) -> i64 {
    millis(before(at, SignedDuration::from_hours(UPLOAD_LIFETIME_HOURS)))
}

/// Unused files finished at or before this time have expired: no template can use them any more.
pub(super) fn unused_cutoff(at: Timestamp) -> i64 {
    millis(before(at, SignedDuration::from_hours(24 * UNUSED_MEDIA_DAYS)))
}

/// Which files may be deleted; files that a template uses never are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RemovalCutoffs {
    /// Unfinished uploads created at or before this time.
    pub(super) unfinished: i64,
    /// Unused files finished at or before this time.
    pub(super) unused: i64,
}

impl RemovalCutoffs {
    /// Every file that no template uses: its upload was cancelled or refused.
    pub(super) const UNUSED: Self = Self { unfinished: i64::MAX, unused: i64::MAX };

    /// The files that have expired by this time.
    pub(super) fn expired(at: Timestamp) -> Self {
        let unused = unused_cutoff(before(at, DELETION_GRACE));
        Self { unfinished: unfinished_cutoff(at), unused }
    }
}

/// The complete file in a row with the columns `sniffed`, `length`, `file_name` and `emulated_at`.
pub(super) fn media(row: &Row<'_>) -> Result<Media, StoreError> {
    let sniffed: Option<String> = row.value("sniffed")?;
    Ok(Media {
        file_type: sniffed.unwrap_or_else(|| "application/octet-stream".to_owned()),
        file_name: row.value("file_name")?,
        length: row.number("length")?,
        emulated_at: row.optional_timestamp("emulated_at")?,
        faithful: None,
    })
}

/// The complete file in such a row that also has the columns `account_id` and `emulator` of its
/// account.
pub(super) fn public_media(row: &Row<'_>) -> Result<Media, StoreError> {
    let kind = row.optional("emulator", |kind: String| EmulatorKind::parse(&kind))?;
    let faithful = match kind {
        Some(EmulatorKind { faithful: true }) => Some(row.account_id("account_id")?),
        _ => None,
    };
    Ok(Media { faithful, ..media(row)? })
}

fn before(at: Timestamp, duration: SignedDuration) -> Timestamp {
    at.saturating_sub(duration).unwrap_or(Timestamp::MIN)
}

#[cfg(test)]
mod tests;
