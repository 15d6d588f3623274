//! Reads the test data from npm that `scripts/suites/fetch-data` downloads.

use std::path::PathBuf;

/// The text of a file in a package.
#[expect(clippy::disallowed_methods, reason = "the variable names the directory of the test data")]
pub(crate) fn read(file: &str) -> String {
    let root = std::env::var("GALLEY_SUITES").unwrap_or_else(|_| {
        panic!("GALLEY_SUITES is not set: set it to the directory of scripts/suites/fetch-data")
    });
    let path = PathBuf::from(root).join("node_modules").join(file);
    std::fs::read_to_string(&path).unwrap_or_else(|error| {
        panic!("{}: {error}; run scripts/suites/fetch-data", path.display())
    })
}
