//! `galley doctor`: runs the start-up checks and a full integrity check of the store.

use std::process::ExitCode;

use galley_store::sqlite::SchemaPolicy;

use crate::{settings::Settings, table};

pub(super) async fn check(settings: &Settings, json: bool) -> anyhow::Result<ExitCode> {
    // Opening the store runs the start-up checks.
    let findings =
        super::open_existing(settings, SchemaPolicy::Keep).await?.check_integrity().await?;
    let good = findings.iter().all(|finding| finding.ok);
    let verdict = |good: bool| if good { "good" } else { "BAD" };
    let rows = findings.into_iter();
    let rows = rows.map(|it| vec![it.subject.into(), it.detail.into(), verdict(it.ok).into()]);
    table::print(json, &["subject", "seen", "verdict"], rows.collect());
    Ok(if good { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
