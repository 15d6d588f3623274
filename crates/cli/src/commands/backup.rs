//! `galley backup PATH`: a consistent copy while the service goes on.

use std::{path::Path, process::ExitCode};

use anyhow::{Context as _, bail};
use galley_store::sqlite::SchemaPolicy;

use crate::{settings::Settings, table};

pub(super) async fn backup(
    settings: &Settings,
    path: &Path,
    json: bool,
) -> anyhow::Result<ExitCode> {
    if path.exists() {
        bail!("{} exists already; a backup goes into a new file", path.display());
    }
    let store = super::open_existing(settings, SchemaPolicy::LeftAlone).await?;
    store
        .backup(path)
        .await
        .with_context(|| format!("the copy {} could not be written", path.display()))?;
    let bytes = std::fs::metadata(path)?.len();
    table::print_one(json, &[("path", path.display().to_string().into()), ("bytes", bytes.into())]);
    Ok(ExitCode::SUCCESS)
}
