//! Finds the file or directory that this process may not use, when a store cannot be opened.

use std::{
    fmt,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
    sync::Arc,
};

use rustix::{
    fs::{Access, access},
    io::Errno,
    process::geteuid,
};

use super::store_files::STORE_FILE_SUFFIXES;
use crate::{
    StoreError,
    partial_file::{directory, with_suffix},
};

/// A file or directory that this process has too few rights on.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(super) struct MissingRights {
    path: PathBuf,
    needed: Needed,
    owner: u32,
    mode: u32,
    process: u32,
}

/// What the store needs of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Needed {
    EnterDirectory,
    ReadAndWriteFile,
    CreateFilesInDirectory,
}

impl Needed {
    const fn access(self) -> Access {
        match self {
            Self::EnterDirectory => Access::EXEC_OK,
            Self::ReadAndWriteFile => Access::READ_OK.union(Access::WRITE_OK),
            Self::CreateFilesInDirectory => Access::WRITE_OK.union(Access::EXEC_OK),
        }
    }
}

/// Says what is wrong, and how to fix it.
impl fmt::Display for MissingRights {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { path, needed, owner, mode, process } = self;
        let path = path.display();
        let needs = match needed {
            Needed::EnterDirectory => "enter the directory",
            Needed::ReadAndWriteFile => "read and write the file",
            Needed::CreateFilesInDirectory => "create files in the directory",
        };
        write!(
            f,
            "permission denied: galley runs as user {process} and may not {needs} {path}, which \
             belongs to user {owner} and has mode {mode:04o}. "
        )?;
        if owner == process {
            let missing = if *needed == Needed::ReadAndWriteFile { "u+rw" } else { "u+wx" };
            return write!(f, "Run chmod {missing} {path}");
        }
        write!(f, "Run galley as user {owner}, or ")?;
        match needed {
            Needed::EnterDirectory => f.write_str("choose another directory with --store"),
            _ => write!(f, "run chown {process} {path}"),
        }
    }
}

/// Replaces the error of a database that is not available, if rights on a file are the cause.
pub(super) fn explained(store: &Path, error: StoreError) -> StoreError {
    let found = match error {
        StoreError::Unavailable(_) => missing_rights(store),
        _ => None,
    };
    found.map_or(error, |found| StoreError::Unavailable(Arc::new(found)))
}

/// The first directory on the way to the store, file of the store, or directory of the store that
/// this process may not use.
fn missing_rights(store: &Path) -> Option<MissingRights> {
    // The file itself can be a link to another directory.
    let store = store.canonicalize().or_else(|_| std::path::absolute(store)).ok()?;
    let mut parents: Vec<&Path> = directory(&store).ancestors().collect();
    parents.reverse();
    let parents = parents.into_iter().map(|parent| (parent.to_owned(), Needed::EnterDirectory));
    let files = STORE_FILE_SUFFIXES.iter().map(|suffix| with_suffix(&store, suffix));
    let files = files.map(|file| (file, Needed::ReadAndWriteFile));
    // SQLite creates its WAL beside the store.
    let create = (directory(&store).to_owned(), Needed::CreateFilesInDirectory);
    let is_refused =
        |(path, needed): &(PathBuf, Needed)| access(path, needed.access()) == Err(Errno::ACCESS);
    let (path, needed) = parents.chain(files).chain([create]).find(is_refused)?;
    let metadata = path.metadata().ok()?;
    Some(MissingRights {
        needed,
        owner: metadata.uid(),
        mode: metadata.mode() & 0o7777,
        process: geteuid().as_raw(),
        path,
    })
}
