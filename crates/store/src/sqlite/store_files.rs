//! The files that belong to a store, and whether other users have access to them.

use std::{
    fmt,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
};

use crate::partial_file::{directory, with_suffix};

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

/// A file of a store, or its directory, with permissions for other users than its owner.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExposedFile {
    path: PathBuf,
    mode: u32,
    is_directory: bool,
}

/// Says what is wrong, and how to fix it.
impl fmt::Display for ExposedFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { path, mode, is_directory } = self;
        let path = path.display();
        if *is_directory {
            write!(
                f,
                "every user can replace the files in {path} (mode {mode:04o}): run chmod o-w {path}"
            )
        } else {
            write!(f, "other users have access to {path} (mode {mode:04o}): run chmod 600 {path}")
        }
    }
}

/// The files of the store that other users than the owner can access, and its directory if every
/// user can replace files there.
#[must_use]
pub fn exposed_files(store: &Path) -> Vec<ExposedFile> {
    let files = STORE_FILE_SUFFIXES.iter().map(|suffix| with_suffix(store, suffix));
    // The file itself can be a link to another directory.
    let target = store.canonicalize().unwrap_or_else(|_| store.to_owned());
    files.chain([directory(&target).to_owned()]).filter_map(exposed).collect()
}

fn exposed(path: PathBuf) -> Option<ExposedFile> {
    let metadata = path.metadata().ok()?;
    let mode = metadata.mode() & 0o7777;
    let is_directory = metadata.is_dir();
    let is_exposed = if is_directory {
        mode & (OTHERS_WRITE | STICKY) == OTHERS_WRITE
    } else {
        mode & NOT_OWNER != 0
    };
    is_exposed.then_some(ExposedFile { path, mode, is_directory })
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
        assert_eq!(exposed_files(&store), []);
        for mode in [0o640, 0o604, 0o666] {
            set_mode(&wal, mode).unwrap();
            let found = exposed_files(&store);
            assert_eq!(found, [ExposedFile { path: wal.clone(), mode, is_directory: false }]);
            assert!(found[0].to_string().ends_with(&format!("chmod 600 {}", wal.display())));
        }
        set_mode(&wal, 0o600).unwrap();
        for mode in [0o755, 0o1777] {
            set_mode(dir.path(), mode).unwrap();
            assert_eq!(exposed_files(&store), [], "others cannot replace the files");
        }
        set_mode(dir.path(), 0o777).unwrap();
        assert!(exposed_files(&store)[0].to_string().contains("chmod o-w"));
    }
}
