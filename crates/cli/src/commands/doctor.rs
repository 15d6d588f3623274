//! `galley doctor`: runs the start-up checks and a full integrity check of the store.

use std::process::ExitCode;

use galley_store::sqlite::SchemaPolicy;

use super::plain_secrets;
use crate::{settings::Settings, table};

const GOOD: &str = "good";
/// A decision of the operator that weakens the protection of data, but no fault of the store.
const WARNING: &str = "WARNING";
const BAD: &str = "BAD";

pub(super) async fn check(settings: &Settings, json: bool) -> anyhow::Result<ExitCode> {
    // Opening the store runs the start-up checks.
    let store = super::open_existing(settings, SchemaPolicy::Keep).await?;
    let findings = store.check_integrity().await?;
    let mut rows: Vec<_> = findings
        .into_iter()
        .map(|it| (it.subject, it.detail, if it.ok { GOOD } else { BAD }))
        .collect();
    let (seen, verdict) = match plain_secrets::count(&*store).await {
        Ok(count) if count.plain == 0 => (count.finding(), GOOD),
        Ok(count) => (count.finding(), WARNING),
        // The schema is older, or the store is damaged; other findings say which.
        Err(error) => (error.to_string(), BAD),
    };
    rows.push(("webhook secrets", seen, verdict));
    let good = rows.iter().all(|(.., verdict)| *verdict != BAD);
    let rows = rows
        .into_iter()
        .map(|(subject, seen, verdict)| vec![subject.into(), seen.into(), verdict.into()]);
    table::print(json, &["subject", "seen", "verdict"], rows.collect());
    Ok(if good { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
