//! `galley doctor`: the start-up checks, and a full check of what is kept.

use std::process::ExitCode;

use galley_store::sqlite::SchemaPolicy;

use crate::{settings::Settings, table};

pub(super) async fn check_integrity(settings: &Settings, json: bool) -> anyhow::Result<ExitCode> {
    // Opening alone runs the start-up checks and refuses what they refuse.
    let findings =
        super::open_existing(settings, SchemaPolicy::LeftAlone).await?.check_integrity().await?;
    let good = findings.iter().all(|finding| finding.good);
    let verdict = |good: bool| if good { "good" } else { "BAD" };
    let rows = findings.into_iter();
    let rows = rows.map(|it| vec![it.subject.into(), it.seen.into(), verdict(it.good).into()]);
    table::print(json, &["subject", "seen", "verdict"], rows.collect());
    Ok(if good { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
