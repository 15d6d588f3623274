//! `galley migrate`: a whole store from a SQLite file into an empty PostgreSQL database.

use std::{
    io::{IsTerminal as _, stderr},
    process::ExitCode,
};

use anyhow::{Context as _, bail};
use galley_store::{
    StoreError,
    migrate::{Comparison, MigrateError, Progress, Step, migrate as migrate_store},
};
use indicatif::{ProgressBar, ProgressStyle};

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
        bail!("--from {from} is PostgreSQL; only a SQLite store is moved: sqlite:PATH");
    };
    let StoreUrl::Postgres(address) = &to else {
        bail!("--to {to} is SQLite; the target is a database: postgres://USER@HOST/DATABASE");
    };
    if !path.exists() {
        bail!("there is no store {from}; --from names another");
    }
    let mut shown = Shown::default();
    let outcome = migrate_store(path, address, |progress| shown.tell(progress)).await;
    shown.end();
    let compared = outcome.map_err(|error| {
        let again = matches!(
            &error,
            MigrateError::Target(StoreError::Unavailable(_) | StoreError::Full(_))
        );
        let advice = if again { "; the same command goes on where it was" } else { "" };
        anyhow::Error::new(error).context(format!("{from} was not moved to {to}{advice}"))
    })?;
    tell(&compared, json);
    let different = compared.iter().filter(|it| !it.is_same()).map(|it| it.table);
    let different: Vec<&str> = different.collect();
    if !different.is_empty() {
        bail!(
            "both sides differ in {}: {to} stays marked as unfinished, and no galley opens it. \
             Somebody has changed one of both since the copy began: make the database anew (dropdb, \
             createdb), and migrate again",
            different.join(", ")
        );
    }
    eprintln!("everything is in {to}; next: galley serve, with its address as --store");
    Ok(ExitCode::SUCCESS)
}

fn read(flag: &str, address: &str) -> anyhow::Result<StoreUrl> {
    store_url(address).map_err(anyhow::Error::msg).with_context(|| flag.to_owned())
}

fn tell(compared: &[Comparison], json: bool) {
    let verdict = |same: bool| if same { "same" } else { "DIFFERENT" };
    let rows = compared.iter().map(|it| {
        vec![
            it.table.into(),
            it.source.rows.into(),
            it.target.rows.into(),
            it.source.to_string().into(),
            it.target.to_string().into(),
            verdict(it.is_same()).into(),
        ]
    });
    let columns =
        ["table", "source_rows", "target_rows", "source_checksum", "target_checksum", "verdict"];
    table::print(json, &columns, rows.collect());
}

/// How far it has come: a bar on a terminal, elsewhere a line for each table.
#[derive(Default)]
struct Shown {
    bar: Option<ProgressBar>,
    at: Option<(Step, &'static str)>,
}

impl Shown {
    fn tell(&mut self, progress: Progress) {
        let Progress { step, table, rows, of } = progress;
        let before = self.at.replace((step, table));
        let doing = match step {
            Step::Copying => "copying",
            Step::Comparing => "comparing",
        };
        if stderr().is_terminal() {
            if before.is_none_or(|(former, _)| former != step) {
                self.end();
                self.bar = Some(bar(rows, of));
            }
            if let Some(bar) = &self.bar {
                bar.set_message(format!("{doing} {table}"));
                bar.set_position(rows);
            }
        } else if before != self.at {
            eprintln!("{doing} {table}: {rows} of {of} rows are done");
        }
    }

    fn end(&mut self) {
        if let Some(bar) = self.bar.take() {
            bar.finish_and_clear();
        }
    }
}

/// Draws on standard error. What an earlier run has done says nothing of how long the rest takes.
fn bar(done: u64, of: u64) -> ProgressBar {
    let look = "{msg:<26} {wide_bar} {human_pos}/{human_len} rows, {eta} left";
    let style = ProgressStyle::with_template(look);
    let style = style.unwrap_or_else(|_| ProgressStyle::default_bar());
    let bar = ProgressBar::new(of).with_style(style).with_position(done);
    bar.reset_eta();
    bar
}
