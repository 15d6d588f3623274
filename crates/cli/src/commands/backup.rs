//! `galley backup PATH`: writes a consistent copy of a store, also while the service runs.

use std::process::ExitCode;

use anyhow::{Context as _, bail};
use galley_store::SchemaPolicy;

use super::progress::ProgressLine;
use crate::{
    arguments::BackupOptions,
    settings::{Settings, StoreUrl},
    table,
};

pub(super) async fn backup(
    settings: &Settings,
    options: &BackupOptions,
    json: bool,
) -> anyhow::Result<ExitCode> {
    let BackupOptions { path, allow_damaged } = options;
    if let StoreUrl::Postgres(_) = &settings.store {
        bail!(
            "`galley backup` copies SQLite stores only: back up PostgreSQL with pg_dump or pg_basebackup"
        );
    }
    // Also a symbolic link, whether its target exists or not: a backup never follows one.
    if path.symlink_metadata().is_ok() {
        bail!("{} already exists; a backup needs a new file", path.display());
    }
    let progress = ProgressLine::start("opening the store");
    let store = super::open_existing(settings, SchemaPolicy::Keep).await?;
    let copied = store.backup(path, *allow_damaged, &|phase| progress.copying(phase)).await;
    drop(progress);
    copied.with_context(|| format!("the backup {} could not be written", path.display()))?;
    let bytes = std::fs::metadata(path)?.len();
    table::print_one(json, &[("path", path.display().to_string().into()), ("bytes", bytes.into())]);
    Ok(ExitCode::SUCCESS)
}
