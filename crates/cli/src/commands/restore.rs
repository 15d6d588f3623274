//! `galley restore PATH`: creates a store from a backup.

use std::{fmt::Display, process::ExitCode};

use anyhow::bail;
use galley_store::restore::{Restore, RestoreError, restore as restore_store};

use super::progress::ProgressLine;
use crate::{
    arguments::RestoreOptions,
    settings::{Settings, StoreUrl},
    table,
};

pub(super) fn restore(
    settings: &Settings,
    options: &RestoreOptions,
    json: bool,
) -> anyhow::Result<ExitCode> {
    let backup = options.backup();
    if !backup.exists() {
        bail!("there is no backup {}", backup.display());
    }
    let StoreUrl::Sqlite(store) = &settings.store else {
        bail!(
            "{} is PostgreSQL, but `galley restore` creates SQLite stores. Move a backup written by \
             `galley backup` with `galley migrate --from {} --to postgres://…`; restore a backup made \
             with PostgreSQL's own tools with pg_restore",
            settings.store,
            quoted(format_args!("sqlite:{}", backup.display()))
        );
    };
    let progress = ProgressLine::start("opening the backup");
    let observer = |phase| progress.copying(phase);
    let allow_damaged = options.allow_damaged;
    let outcome = restore_store(Restore { backup: &backup, store, allow_damaged }, &observer);
    drop(progress);
    let restored = match outcome {
        Ok(restored) => restored,
        Err(RestoreError::Occupied(files)) => {
            let files: Vec<String> = files.iter().map(|it| quoted(it.display())).collect();
            let (files, away) =
                (files.join(" "), quoted(store.with_added_extension("old").display()));
            bail!(
                "existing files are never overwritten or mixed with a backup. Stop the service and move \
                 them away: mkdir {away} && mv {files} {away}/"
            );
        }
        Err(error) => return Err(error.into()),
    };
    let address = settings.store.to_string();
    let mut rows =
        vec![("store", address.clone().into()), ("from", backup.display().to_string().into())];
    rows.extend(restored.counts.iter().map(|(what, number)| (*what, (*number).into())));
    let schema = format!("version {} of {}", restored.schema, restored.newest_schema);
    rows.push(("schema", schema.into()));
    let next = if restored.schema == restored.newest_schema { "doctor" } else { "serve" };
    rows.push(("next", format!("galley {next} --store {}", quoted(&address)).into()));
    table::print_one(json, &rows);
    Ok(ExitCode::SUCCESS)
}

/// Quotes a path or URL for a shell.
fn quoted(shown: impl Display) -> String {
    let shown = shown.to_string();
    let is_plain = |it: char| it.is_ascii_alphanumeric() || "/._-+,:@%".contains(it);
    if shown.chars().all(is_plain) { shown } else { format!("'{}'", shown.replace('\'', r"'\''")) }
}
