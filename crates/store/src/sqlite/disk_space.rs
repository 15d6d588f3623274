//! Keeps disk space free for the operator.
//!
//! Below a free-space mark, writes of clients are refused, so that commands of the operator (revoke a
//! token, disable an account) and a restart still have room. Another program can fill the disk beyond
//! the mark; for that case the service keeps a reserve file, which is deleted when such a command
//! needs its space.

use std::{
    fs::OpenOptions,
    io,
    os::unix::fs::OpenOptionsExt as _,
    path::{Path, PathBuf},
    sync::atomic::{AtomicBool, Ordering},
};

use rustix::fs::{FallocateFlags, fallocate, statvfs};

use crate::{
    StoreError,
    error::cause,
    partial_file::{directory, with_suffix},
};

/// Suffix of the reserve file.
const RESERVE_SUFFIX: &str = "-reserve";

/// Size of the reserve file: enough to open the store and for hundreds of small transactions.
const RESERVE_BYTES: u64 = 4 * 1_024 * 1_024;

/// The disk of a store.
pub(super) struct DiskSpace {
    pub(super) path: PathBuf,
    reserve: PathBuf,
    min_free_bytes: u64,
    /// Whether this process maintains the reserve file; any process may use it up.
    keeps_reserve: bool,
    is_low: AtomicBool,
}

impl DiskSpace {
    pub(super) fn of(store: &Path, min_free_bytes: u64, keeps_reserve: bool) -> Self {
        Self {
            path: store.to_owned(),
            reserve: with_suffix(store, RESERVE_SUFFIX),
            min_free_bytes,
            keeps_reserve,
            is_low: AtomicBool::new(false),
        }
    }

    /// Fails if the free space is below the mark. Logs when this changes.
    pub(super) fn check(&self) -> Result<(), StoreError> {
        if self.min_free_bytes == 0 {
            return Ok(());
        }
        // If the free space is unknown, the write itself will fail or succeed.
        let Ok(free) = self.free_bytes() else { return Ok(()) };
        let is_low = free < self.min_free_bytes;
        let was_low = self.is_low.swap(is_low, Ordering::Relaxed);
        if !is_low {
            if was_low {
                tracing::info!("there is enough free disk space again: writes are accepted");
            }
            return Ok(());
        }
        let low = format!(
            "only {} MiB are free on the disk of {}, less than the {} MiB of `min_free_disk_mib`: \
             free some space",
            free >> 20,
            self.path.display(),
            self.min_free_bytes >> 20
        );
        if !was_low {
            tracing::error!("writes of clients are refused: {low}");
        }
        Err(StoreError::Full(cause(low)))
    }

    /// Creates the reserve file, if this process maintains it and there is enough space.
    pub(super) fn restore_reserve(&self) {
        let is_wanted = self.keeps_reserve && !self.reserve.exists();
        let has_room =
            || self.free_bytes().is_ok_and(|free| free >= self.min_free_bytes + 2 * RESERVE_BYTES);
        if is_wanted
            && has_room()
            && let Err(error) = allocate(&self.reserve)
        {
            tracing::warn!(%error, "the reserve of disk space could not be created");
            let _ = std::fs::remove_file(&self.reserve);
        }
    }

    /// Deletes the reserve file to make room. Returns whether there was one.
    pub(super) fn release_reserve(&self) -> bool {
        let released = std::fs::remove_file(&self.reserve).is_ok();
        if released {
            tracing::warn!("the disk is full: the reserve of disk space is used up");
        }
        released
    }

    /// Whether the disk has less free space than the reserve file takes.
    pub(super) fn is_exhausted(&self) -> bool {
        self.free_bytes().is_ok_and(|free| free < RESERVE_BYTES)
    }

    pub(super) fn free_bytes(&self) -> io::Result<u64> {
        let disk = statvfs(directory(&self.path))?;
        Ok(disk.f_bavail.saturating_mul(disk.f_frsize))
    }
}

/// Creates a file whose space is allocated on the disk.
fn allocate(path: &Path) -> io::Result<()> {
    let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    match fallocate(&file, FallocateFlags::empty(), 0, RESERVE_BYTES) {
        // Some file systems cannot allocate; a file of zeros is the next best.
        Err(rustix::io::Errno::NOTSUP | rustix::io::Errno::NOSYS) => {
            let zeros = vec![0; usize::try_from(RESERVE_BYTES).unwrap_or(0)];
            io::Write::write_all(&mut &file, &zeros)
        }
        allocated => allocated.map_err(io::Error::from),
    }
}
