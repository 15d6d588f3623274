//! Finds the file or directory that this process may not use, when a store cannot be opened.

use std::{os::unix::fs::MetadataExt as _, path::Path};

use rustix::{
    fs::{Access, access},
    io::Errno,
    process::geteuid,
};

use super::store_files::STORE_FILE_SUFFIXES;
use crate::{
    StoreError,
    error::unavailable,
    partial_file::{directory, with_suffix},
};

/// What the store needs of a path.
#[derive(Clone, Copy, PartialEq, Eq)]
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

    const fn as_str(self) -> &'static str {
        match self {
            Self::EnterDirectory => "enter the directory",
            Self::ReadAndWriteFile => "read and write the file",
            Self::CreateFilesInDirectory => "create files in the directory",
        }
    }
}

/// Replaces the error of a database that is not available, if rights on a file are the cause.
pub(super) fn explained(store: &Path, error: StoreError) -> StoreError {
    let found = match error {
        StoreError::Unavailable(_) => missing_rights(store),
        _ => None,
    };
    found.map_or(error, |found| unavailable(found))
}

/// What is wrong with the first directory on the way to the store, file of the store, or directory of
/// the store that this process may not use, and how to fix it.
fn missing_rights(store: &Path) -> Option<String> {
    // The file itself can be a link to another directory.
    let store = store.canonicalize().or_else(|_| std::path::absolute(store)).ok()?;
    let mut parents: Vec<&Path> = directory(&store).ancestors().collect();
    parents.reverse();
    let parents = parents.into_iter().map(|parent| (parent.to_owned(), Needed::EnterDirectory));
    let files = STORE_FILE_SUFFIXES.iter().map(|suffix| with_suffix(&store, suffix));
    let files = files.map(|file| (file, Needed::ReadAndWriteFile));
    // SQLite creates its WAL beside the store.
    let create = (directory(&store).to_owned(), Needed::CreateFilesInDirectory);
    let (path, needed) = parents
        .chain(files)
        .chain([create])
        .find(|(path, needed)| access(path, needed.access()) == Err(Errno::ACCESS))?;
    let metadata = path.metadata().ok()?;
    let (owner, process, path) = (metadata.uid(), geteuid().as_raw(), path.display());
    let advice = if owner == process {
        let missing = if needed == Needed::ReadAndWriteFile { "u+rw" } else { "u+wx" };
        format!("Run chmod {missing} {path}")
    } else if needed == Needed::EnterDirectory {
        format!("Run galley as user {owner}, or choose another directory with --store")
    } else {
        format!("Run galley as user {owner}, or run chown {process} {path}")
    };
    Some(format!(
        "permission denied: galley runs as user {process} and may not {} {path}, which belongs to \
         user {owner} and has mode {:04o}. {advice}",
        needed.as_str(),
        metadata.mode() & 0o7777
    ))
}
