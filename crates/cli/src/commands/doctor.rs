//! `galley doctor`: runs the start-up checks and a full check of the store and its permissions.

use std::process::ExitCode;

use galley_store::{Finding, sqlite::SchemaPolicy};

use crate::{
    settings::{Settings, StoreUrl},
    table,
};

pub(super) async fn check(settings: &Settings, json: bool) -> anyhow::Result<ExitCode> {
    // Opening the store runs the start-up checks.
    let store = super::open_existing(settings, SchemaPolicy::Keep).await?;
    let mut findings = store.check_integrity().await?;
    findings.extend(permissions(settings));
    let good = findings.iter().all(|finding| finding.ok);
    let verdict = |good: bool| if good { "good" } else { "BAD" };
    let rows = findings.into_iter();
    let rows = rows.map(|it| vec![it.subject.into(), it.detail.into(), verdict(it.ok).into()]);
    table::print(json, &["subject", "seen", "verdict"], rows.collect());
    Ok(if good { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn permissions(settings: &Settings) -> Option<Finding> {
    let StoreUrl::Sqlite(_) = &settings.store else { return None };
    let exposed = super::exposed_files(settings);
    let ok = exposed.is_empty();
    let exposed: Vec<String> = exposed.iter().map(ToString::to_string).collect();
    let detail = if ok { "only the owner has access".to_owned() } else { exposed.join("; ") };
    Some(Finding { subject: "permissions", detail, ok })
}
