//! The files that belong to a store, and who has access to them.

use std::{os::unix::fs::MetadataExt as _, path::Path};

use rustix::{
    fs::{Access, access},
    io::Errno,
    process::geteuid,
};

use crate::{
    StoreError,
    error::unavailable,
    partial_file::{directory, with_suffix},
};

/// Suffixes of all files that belong to a store. Leftover files of another store would be taken for
/// its own.
pub(crate) const STORE_FILE_SUFFIXES: [&str; 9] = [
    "",
    "-wal",
    "-shm",
    "-journal",
    "-search",
    "-search-wal",
    "-search-shm",
    "-search-journal",
    "-reserve",
];

/// Suffix of the search index.
pub(super) const SEARCH_INDEX_SUFFIX: &str = "-search";

/// Permissions of the group and of others.
const NOT_OWNER: u32 = 0o077;

/// Permission of others to write, and thus to replace the files in a directory.
const OTHERS_WRITE: u32 = 0o002;

/// In a sticky directory, only the owner of a file can replace it.
const STICKY: u32 = 0o1000;

/// The files of the store that other users than the owner can access, and its directory if every
/// user can replace files there. Each says what is wrong, and how to fix it.
#[must_use]
pub fn exposed_files(store: &Path) -> Vec<String> {
    let files = STORE_FILE_SUFFIXES.iter().map(|suffix| with_suffix(store, suffix));
    // The file itself can be a link to another directory.
    let target = store.canonicalize().unwrap_or_else(|_| store.to_owned());
    files.chain([directory(&target).to_owned()]).filter_map(|path| exposed(&path)).collect()
}

fn exposed(path: &Path) -> Option<String> {
    let metadata = path.metadata().ok()?;
    let (mode, path) = (metadata.mode() & 0o7777, path.display());
    if metadata.is_dir() {
        return (mode & (OTHERS_WRITE | STICKY) == OTHERS_WRITE).then(|| {
            format!(
                "every user can replace the files in {path} (mode {mode:04o}): run chmod o-w {path}"
            )
        });
    }
    (mode & NOT_OWNER != 0).then(|| {
        format!("other users have access to {path} (mode {mode:04o}): run chmod 600 {path}")
    })
}

/// The sizes of the files that grow. A file that does not exist has size 0.
pub(super) fn part_sizes(store: &Path) -> Vec<(&'static str, u64)> {
    let size = |suffix: &str| with_suffix(store, suffix).metadata().map_or(0, |it| it.len());
    let index_wal = format!("{SEARCH_INDEX_SUFFIX}-wal");
    vec![
        ("database", size("")),
        ("wal", size("-wal")),
        ("search_index", size(SEARCH_INDEX_SUFFIX) + size(&index_wal)),
    ]
}

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

/// Replaces the error of a database that is not available, if this process may not use a file.
pub(super) fn explained(store: &Path, error: StoreError) -> StoreError {
    let found = match error {
        StoreError::Unavailable(_) => missing_rights(store),
        _ => None,
    };
    found.map_or(error, unavailable)
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

#[cfg(test)]
mod tests {
    use std::{
        fs::{Permissions, set_permissions},
        os::unix::fs::PermissionsExt as _,
    };

    use super::*;

    #[test]
    fn files_of_a_store_that_others_can_access_are_found() {
        let dir = tempfile::tempdir().unwrap();
        let (store, wal) = (dir.path().join("galley.db"), dir.path().join("galley.db-wal"));
        let set_mode = |path: &Path, mode| set_permissions(path, Permissions::from_mode(mode));
        for path in [&store, &wal] {
            std::fs::write(path, "").unwrap();
            set_mode(path, 0o600).unwrap();
        }
        assert!(exposed_files(&store).is_empty());
        for mode in [0o640, 0o604, 0o666] {
            set_mode(&wal, mode).unwrap();
            let wal = wal.display();
            let access = format!("other users have access to {wal} (mode {mode:04o})");
            assert_eq!(exposed_files(&store), [format!("{access}: run chmod 600 {wal}")]);
        }
        set_mode(&wal, 0o600).unwrap();
        for mode in [0o755, 0o1777] {
            set_mode(dir.path(), mode).unwrap();
            assert!(exposed_files(&store).is_empty(), "others cannot replace the files");
        }
        set_mode(dir.path(), 0o777).unwrap();
        assert!(exposed_files(&store)[0].contains("chmod o-w"));
    }
}
