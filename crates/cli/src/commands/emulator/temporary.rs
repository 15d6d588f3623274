//! The directory of a throw-away store.

use std::{
    fs::{self, DirBuilder},
    os::unix::fs::DirBuilderExt as _,
    path::PathBuf,
};

use anyhow::Context as _;

use crate::{secrets, terminal};

/// A directory that only this user can read. Dropping it deletes it.
pub(super) struct TemporaryDirectory(PathBuf);

impl TemporaryDirectory {
    pub(super) fn create() -> anyhow::Result<Self> {
        let name = format!("galley-emulator-{}", secrets::instance()?);
        let path = std::env::temp_dir().join(name);
        let created = DirBuilder::new().mode(0o700).create(&path);
        created.with_context(|| format!("cannot create {}", path.display()))?;
        Ok(Self(path))
    }

    /// The URL of the store in it.
    pub(super) fn store_url(&self) -> String {
        format!("sqlite:{}", self.0.join("galley.db").display())
    }
}

impl Drop for TemporaryDirectory {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_dir_all(&self.0) {
            let path = self.0.display();
            terminal::print_warning(format_args!("{path} could not be deleted: {error}"));
        }
    }
}
