//! A file that is written aside, and renamed when it is complete.
//!
//! The process that writes it holds a lock. A file that a killed process has left is not locked, so
//! the next one reuses it.

use std::{
    ffi::OsString,
    fs::{File, OpenOptions, Permissions, TryLockError},
    io,
    os::unix::fs::{MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _},
    path::{Path, PathBuf},
};

use rustix::{
    fs::{CWD, OFlags, RenameFlags, renameat_with},
    io::Errno,
};

/// Suffixes of the files that SQLite keeps beside a database.
const COMPANION_SUFFIXES: [&str; 3] = ["-journal", "-wal", "-shm"];

/// Why the file cannot be written.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PartialFileError {
    /// Another process is writing it.
    #[error("another process is writing {}: wait until it has ended", .0.display())]
    InProgress(PathBuf),
    /// The target exists; it was not replaced.
    #[error("{} already exists: choose another path, or move it away", .0.display())]
    Exists(PathBuf),
    /// The file system refused.
    #[error("{} cannot be written", .0.display())]
    Write(PathBuf, #[source] io::Error),
}

/// A locked file that only its owner can read. Dropping it deletes it, unless it was persisted.
pub(crate) struct PartialFile {
    path: PathBuf,
    file: File,
    is_persisted: bool,
}

impl PartialFile {
    /// Creates and locks an empty file, or reuses the one that a killed process has left. Never
    /// follows a symbolic link.
    pub(crate) fn lock(path: PathBuf) -> Result<Self, PartialFileError> {
        let failed = |error| PartialFileError::Write(path.clone(), error);
        let no_follow = i32::try_from(OFlags::NOFOLLOW.bits()).unwrap_or(0);
        let mut options = OpenOptions::new();
        let options = options.write(true).create(true).truncate(false);
        let file = options.mode(0o600).custom_flags(no_follow).open(&path).map_err(failed)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(PartialFileError::InProgress(path)),
            Err(TryLockError::Error(error)) => return Err(failed(error)),
        }
        // Another process may have renamed the file before it released the lock: then this one
        // must not write to it.
        if !is_same_file(&file, &path).map_err(failed)? {
            return Err(PartialFileError::InProgress(path));
        }
        file.set_len(0).map_err(failed)?;
        file.set_permissions(Permissions::from_mode(0o600)).map_err(failed)?;
        let partial = Self { path, file, is_persisted: false };
        // SQLite would apply the journal of a killed process.
        partial.remove_companions();
        Ok(partial)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Syncs the file and renames it to its target, which must not exist.
    pub(crate) fn persist(mut self, target: &Path) -> Result<(), PartialFileError> {
        let failed = |error| PartialFileError::Write(self.path.clone(), error);
        self.file.sync_all().map_err(failed)?;
        if !is_same_file(&self.file, &self.path).map_err(failed)? {
            return Err(failed(io::Error::other("another process has replaced the file")));
        }
        let failed = |error| PartialFileError::Write(target.to_owned(), error);
        // Does not replace a target that another process creates at the same time. File systems
        // without such a rename get a plain one.
        match renameat_with(CWD, &self.path, CWD, target, RenameFlags::NOREPLACE) {
            Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => {
                refuse_existing(target)?;
                std::fs::rename(&self.path, target).map_err(failed)?;
            }
            Err(Errno::EXIST) => return Err(PartialFileError::Exists(target.to_owned())),
            renamed => renamed.map_err(|error| failed(error.into()))?,
        }
        self.is_persisted = true;
        self.remove_companions();
        let directory = File::open(directory(target));
        directory.and_then(|directory| directory.sync_all()).map_err(failed)
    }

    fn remove_companions(&self) {
        for suffix in COMPANION_SUFFIXES {
            let _ = std::fs::remove_file(with_suffix(&self.path, suffix));
        }
    }
}

impl Drop for PartialFile {
    fn drop(&mut self) {
        if !self.is_persisted {
            self.remove_companions();
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

/// Fails if the target exists, or a file that SQLite would take for a part of it. A dangling
/// symbolic link exists, too.
pub(crate) fn refuse_existing(target: &Path) -> Result<(), PartialFileError> {
    for suffix in std::iter::once("").chain(COMPANION_SUFFIXES) {
        let path = with_suffix(target, suffix);
        if path.symlink_metadata().is_ok() {
            return Err(PartialFileError::Exists(path));
        }
    }
    Ok(())
}

/// The path with a suffix after its name.
pub(crate) fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(suffix);
    PathBuf::from(name)
}

/// The directory that contains the file.
pub(crate) fn directory(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if parent != Path::new("") => parent,
        _ => Path::new("."),
    }
}

/// Whether the path still names the open file.
fn is_same_file(file: &File, path: &Path) -> io::Result<bool> {
    let opened = file.metadata()?;
    let named = path.symlink_metadata();
    Ok(named.is_ok_and(|it| (it.dev(), it.ino()) == (opened.dev(), opened.ino())))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn partial(dir: &tempfile::TempDir) -> PathBuf {
        dir.path().join("copy.partial")
    }

    #[test]
    fn a_file_created_in_the_meantime_is_not_replaced() {
        let dir = tempfile::tempdir().unwrap();
        let target = dir.path().join("copy");
        let copy = PartialFile::lock(partial(&dir)).unwrap();
        std::fs::write(&target, "precious").unwrap();
        let error = copy.persist(&target).unwrap_err();
        assert!(matches!(&error, PartialFileError::Exists(path) if *path == target), "{error}");
        assert_eq!(std::fs::read(&target).unwrap(), b"precious");
        assert!(!partial(&dir).exists(), "a file that is not complete is deleted");
        std::fs::remove_file(&target).unwrap();
        PartialFile::lock(partial(&dir)).unwrap().persist(&target).unwrap();
        assert!(target.exists() && !partial(&dir).exists());
    }

    #[test]
    fn a_file_that_a_killed_process_has_left_is_reused() {
        let dir = tempfile::tempdir().unwrap();
        let journal = with_suffix(&partial(&dir), "-journal");
        std::fs::write(partial(&dir), "half").unwrap();
        std::fs::set_permissions(partial(&dir), Permissions::from_mode(0o644)).unwrap();
        std::fs::write(&journal, "half").unwrap();
        let reused = PartialFile::lock(partial(&dir)).unwrap();
        let metadata = partial(&dir).metadata().unwrap();
        assert_eq!((metadata.len(), metadata.mode() & 0o777), (0, 0o600));
        assert!(!journal.exists());
        drop(reused);
        assert!(!partial(&dir).exists());
    }

    #[test]
    fn a_file_that_another_process_is_writing_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let first = PartialFile::lock(partial(&dir)).unwrap();
        let second = PartialFile::lock(partial(&dir)).err().unwrap();
        assert!(matches!(second, PartialFileError::InProgress(_)), "{second}");
        assert!(partial(&dir).exists(), "the first writer keeps its file");
        drop(first);
        PartialFile::lock(partial(&dir)).unwrap();
    }

    #[test]
    fn a_symbolic_link_is_not_followed() {
        let dir = tempfile::tempdir().unwrap();
        let elsewhere = dir.path().join("elsewhere");
        std::os::unix::fs::symlink(&elsewhere, partial(&dir)).unwrap();
        let refused = PartialFile::lock(partial(&dir)).err().unwrap();
        assert!(matches!(refused, PartialFileError::Write(..)), "{refused}");
        assert!(!elsewhere.exists());
        let link = dir.path().join("link");
        std::os::unix::fs::symlink(&elsewhere, &link).unwrap();
        let refused = refuse_existing(&link).unwrap_err();
        assert!(matches!(refused, PartialFileError::Exists(_)), "{refused}");
    }
}
