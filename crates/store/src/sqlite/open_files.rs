//! Notices when the files of an open store are deleted or replaced.
//!
//! An open SQLite connection continues to write to a deleted file without an error, and a connection
//! that is opened later would combine the write-ahead log of one file with the pages of another. So
//! every batch of writes and every new connection first checks that the paths still lead to the
//! files that were opened.

use std::{
    fs::File,
    io,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
    sync::atomic::{AtomicBool, Ordering},
};

use rusqlite::Connection;

use super::connection;
use crate::{StoreError, error::unavailable, partial_file::with_suffix};

/// Added to the name of a WAL whose database was replaced.
const ASIDE_SUFFIX: &str = ".replaced";

/// Suffixes of the files that belong to an open database.
const SUFFIXES: [&str; 3] = ["", "-wal", "-shm"];

/// The files of an open store.
pub(super) struct OpenFiles {
    path: PathBuf,
    files: Vec<(PathBuf, FileId)>,
    /// The database file, open to be synced. Closing it releases the locks that SQLite holds on it in
    /// this process, so whatever has connections keeps an `Arc` of this value until they are closed.
    database: File,
    /// Whether the last check found another file at one of the paths.
    are_gone: AtomicBool,
}

/// What identifies a file independently of its path: device and inode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct FileId(u64, u64);

impl OpenFiles {
    /// The files of a store that a connection has just opened.
    pub(super) fn of(path: &Path) -> Result<Self, StoreError> {
        let mut files = Vec::new();
        for suffix in SUFFIXES {
            let file = with_suffix(path, suffix);
            if let Some(id) = FileId::at(&file)? {
                files.push((file, id));
            }
        }
        let (path, database) = (path.to_owned(), File::open(path)?);
        Ok(Self { path, files, database, are_gone: AtomicBool::new(false) })
    }

    /// Waits until all that was written to the database file is on the disk.
    pub(super) fn sync_database(&self) -> Result<(), StoreError> {
        Ok(self.database.sync_data()?)
    }

    /// Checks that the paths lead to the open files. Logs when this changes.
    pub(super) fn check(&self) -> Result<(), StoreError> {
        let mut found = self.find_gone()?;
        // Rarely reached, so that moving files costs nothing when all is well.
        if let Some((path, _)) = &found {
            self.move_companions(*path == self.path)?;
            found = self.find_gone()?;
        }
        let was_gone = self.are_gone.swap(found.is_some(), Ordering::Relaxed);
        match found {
            None if was_gone => tracing::info!("the files of the store are back"),
            None => {}
            Some((path, happened)) => {
                let gone = format!(
                    "{} was {happened} while the service is running, so the store refuses all reads \
                     and writes: put the file back, or stop the service before you use another one",
                    path.display()
                );
                if !was_gone {
                    tracing::error!("{gone}");
                }
                return Err(unavailable(gone));
            }
        }
        Ok(())
    }

    /// Fails if the last check failed. For reads, which are too frequent for a check of their own.
    pub(super) fn ensure_present(&self) -> Result<(), StoreError> {
        if self.are_gone.load(Ordering::Relaxed) { self.check() } else { Ok(()) }
    }

    /// Opens another connection for reading, to the same file as all others.
    pub(super) fn open_for_reading(&self) -> Result<Connection, StoreError> {
        self.check()?;
        let connection = connection::open_for_reading(&self.path)?;
        self.check()?;
        Ok(connection)
    }

    /// Moves the WAL and its index aside while another file is at the path of the database: the next
    /// process would apply this WAL to that file. Moves them back when the database is back.
    fn move_companions(&self, is_database_gone: bool) -> Result<(), StoreError> {
        if is_database_gone && !self.path.exists() {
            // Deleted or moved: a start without the database refuses to run beside its WAL.
            return Ok(());
        }
        for (path, id) in self.files.iter().skip(1) {
            let aside = &with_suffix(path, ASIDE_SUFFIX);
            let (from, to) = if is_database_gone { (path, aside) } else { (aside, path) };
            if FileId::at(from)? == Some(*id) && !to.exists() {
                std::fs::rename(from, to)?;
            }
        }
        Ok(())
    }

    /// The first path that no longer leads to the file that is open, and what happened to it.
    fn find_gone(&self) -> Result<Option<(&Path, &'static str)>, StoreError> {
        for (path, id) in &self.files {
            let happened = match FileId::at(path)? {
                Some(found) if found == *id => continue,
                Some(_) => "replaced by another file",
                None => "deleted or moved",
            };
            return Ok(Some((path, happened)));
        }
        Ok(None)
    }
}

impl FileId {
    /// The file at a path, if there is one.
    fn at(path: &Path) -> Result<Option<Self>, StoreError> {
        match path.metadata() {
            Ok(metadata) => Ok(Some(Self(metadata.dev(), metadata.ino()))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error.into()),
        }
    }
}
