//! `galley migrate`: copies a SQLite store into an empty PostgreSQL database.

use std::process::ExitCode;

use anyhow::{Context as _, bail};
use galley_store::{
    StoreError,
    migrate::{Comparison, MigrateError, MigrationPhase, Progress, migrate as migrate_store},
};

use super::progress::ProgressLine;
use crate::{
    arguments::MigrateOptions,
    settings::{Settings, StoreUrl, store_url},
    table,
};

pub(super) async fn migrate(
    settings: &Settings,
    options: &MigrateOptions,
    json: bool,
) -> anyhow::Result<ExitCode> {
    let from = read("--from", &options.from)?;
    let to = match &options.to {
        Some(to) => read("--to", to)?,
        None => settings.store.clone(),
    };
    let StoreUrl::Sqlite(path) = &from else {
        bail!("--from {from} is PostgreSQL; the source must be a SQLite store: sqlite:PATH");
    };
    let StoreUrl::Postgres(address) = &to else {
        bail!("--to {to} is SQLite; the target must be PostgreSQL: postgres://USER@HOST/DATABASE");
    };
    if !path.exists() {
        bail!("there is no store {from}; check --from");
    }
    let mut display = ProgressDisplay::new();
    let outcome = migrate_store(path, address, |progress| display.update(progress)).await;
    drop(display);
    let compared = outcome.map_err(|error| {
        let again = matches!(
            &error,
            MigrateError::Target(StoreError::Unavailable(_) | StoreError::Full(_))
        );
        let advice = if again { "; run the same command again to continue" } else { "" };
        anyhow::Error::new(error).context(format!("{from} was not copied to {to}{advice}"))
    })?;
    print_comparison(&compared, json);
    let different = compared.iter().filter(|it| !it.is_match()).map(|it| &*it.table);
    let different: Vec<&str> = different.collect();
    if !different.is_empty() {
        bail!(
            "source and target differ in {}: {to} stays marked as unfinished, and Galley does not open it. \
             One of them was changed since the copy began: recreate the database (dropdb, createdb) \
             and migrate again",
            different.join(", ")
        );
    }
    eprintln!("everything is copied to {to}; next: run galley serve with that URL as --store");
    Ok(ExitCode::SUCCESS)
}

fn read(flag: &str, address: &str) -> anyhow::Result<StoreUrl> {
    store_url(address).map_err(anyhow::Error::msg).with_context(|| flag.to_owned())
}

fn print_comparison(compared: &[Comparison], json: bool) {
    let verdict = |same: bool| if same { "same" } else { "DIFFERENT" };
    let rows = compared.iter().map(|it| {
        vec![
            it.table.clone().into(),
            it.source.rows.into(),
            it.target.rows.into(),
            it.source.to_string().into(),
            it.target.to_string().into(),
            verdict(it.is_match()).into(),
        ]
    });
    let columns =
        ["table", "source_rows", "target_rows", "source_checksum", "target_checksum", "verdict"];
    table::print(json, &columns, rows.collect());
}

/// Progress output: a bar on a terminal, otherwise one line per table.
struct ProgressDisplay {
    line: ProgressLine,
    at: Option<(MigrationPhase, String)>,
}

impl ProgressDisplay {
    fn new() -> Self {
        Self { line: ProgressLine::start("opening both stores"), at: None }
    }

    fn update(&mut self, progress: Progress<'_>) {
        let Progress { phase, table, rows, total } = progress;
        let before = self.at.replace((phase, table.to_owned()));
        let action = match phase {
            MigrationPhase::Copying => "copying",
            MigrationPhase::Comparing => "comparing",
        };
        if self.line.is_shown() {
            if before.is_none_or(|(former, _)| former != phase) {
                self.line.count_rows(rows, total);
            }
            self.line.rows(format!("{action} {table}"), rows);
        } else if before != self.at {
            eprintln!("{action} {table}: {rows} of {total} rows");
        }
    }
}
