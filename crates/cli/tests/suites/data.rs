//! Where the test data from npm is. `scripts/suites/fetch-data` fetches it.

use std::path::PathBuf;

/// A file of a package.
#[expect(clippy::disallowed_methods, reason = "whoever runs the suites says where their data is")]
pub(crate) fn read(file: &str) -> String {
    let root = std::env::var("GALLEY_SUITES").unwrap_or_else(|_| {
        panic!("GALLEY_SUITES has to name the directory that scripts/suites/fetch-data filled")
    });
    let path = PathBuf::from(root).join("node_modules").join(file);
    std::fs::read_to_string(&path).unwrap_or_else(|error| {
        panic!("{}: {error}; scripts/suites/fetch-data fetches it", path.display())
    })
}
