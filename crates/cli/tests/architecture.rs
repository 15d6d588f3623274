//! The architecture as tests: dependencies between crates and modules, the form of source files,
//! documents that match the code, and the names that clients depend on.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod architecture {
    mod dependencies;
    mod deployment;
    mod documents;
    mod module_cycles;
    mod published_names;
    mod source_files;
}

use std::{
    fs,
    path::{Path, PathBuf},
};

/// The root of the repository.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn read(path: impl AsRef<Path>) -> String {
    let path = root().join(path);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Every file of the repository with one of these extensions, and its text.
fn files(extensions: &[&str]) -> Vec<(PathBuf, String)> {
    files_below(&root(), extensions)
}

fn files_below(directory: &Path, extensions: &[&str]) -> Vec<(PathBuf, String)> {
    let mut found = Vec::new();
    let mut directories = vec![directory.to_owned()];
    while let Some(directory) = directories.pop() {
        for path in fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()) {
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            if path.is_dir() {
                if !name.starts_with('.') && name != "target" && name != "node_modules" {
                    directories.push(path);
                }
            } else if path.extension().is_some_and(|it| extensions.iter().any(|known| it == *known))
            {
                found.push((path.clone(), fs::read_to_string(&path).unwrap()));
            }
        }
    }
    assert!(!found.is_empty(), "no file below {}", directory.display());
    found
}

/// Compares a generated file with the committed one; `UPDATE_DOCS=1` writes it.
fn assert_up_to_date(path: &str, expected: &str) {
    if std::env::var_os("UPDATE_DOCS").is_some() {
        fs::write(root().join(path), expected).unwrap();
        return;
    }
    let committed = fs::read_to_string(root().join(path)).unwrap_or_default();
    let differs = committed.lines().zip(expected.lines()).find(|(old, new)| old != new);
    assert!(
        committed == expected,
        "{path} is out of date (first difference: {differs:?}). Run \
         `UPDATE_DOCS=1 cargo test -p galley --test architecture` and review the difference."
    );
}
