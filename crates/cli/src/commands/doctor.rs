//! `galley doctor`: runs the start-up checks and a full check of the store, its permissions and its
//! clock guard. With `--accept-clock`, it confirms the present time first; with `--count-bytes`, it
//! corrects the totals of stored bytes.

use std::process::ExitCode;

use anyhow::{Context as _, bail};
use galley_server::{Clock as _, upstream::check_secrets};
use galley_store::{ClockStatus, Finding, SchemaPolicy, Store};
use jiff::Timestamp;

use super::{plain_secrets, progress::ProgressLine};
use crate::{
    clock::SystemClock,
    settings::{Settings, StoreUrl},
    table,
};

const GOOD: &str = "good";
/// A decision of the operator that weakens the protection of data, but no fault of the store.
const WARNING: &str = "WARNING";
const BAD: &str = "BAD";
/// A setting of the database server that can lose writes or hide damage. Nothing is wrong now.
const NOTE: &str = "note";

pub(super) async fn check(
    settings: &Settings,
    accept_clock: bool,
    count_bytes: bool,
    json: bool,
) -> anyhow::Result<ExitCode> {
    let progress = ProgressLine::start("opening the store");
    // Opening the store runs the start-up checks.
    let store = super::open_existing(settings, SchemaPolicy::Keep).await?;
    let now = SystemClock::new().now();
    if accept_clock {
        accept(&store, now).await?;
    }
    if count_bytes {
        progress.doing("counting the stored bytes");
        store.count_stored_bytes(true).await.context("the stored bytes could not be counted")?;
    }
    progress.doing(&format!("checking the store {}", settings.store));
    let mut findings = store.check_integrity().await?;
    findings.extend(permissions(settings));
    findings.extend(store.check_clock(now).await?.map(|status| clock(status, now)));
    let mut rows: Vec<_> = findings
        .into_iter()
        .map(|it| {
            let verdict = match (it.ok, it.is_note) {
                (false, _) => BAD,
                (true, true) => NOTE,
                (true, false) => GOOD,
            };
            (it.subject, it.detail, verdict)
        })
        .collect();
    let (seen, verdict) = match plain_secrets::count(&store).await {
        Ok(count) if count.plain == 0 => (count.finding(), GOOD),
        Ok(count) => (count.finding(), WARNING),
        // The database has no tables, or the store is damaged; other findings say which.
        Err(error) => (error.to_string(), BAD),
    };
    rows.push(("webhook secrets", seen, verdict));
    rows.extend(provider_secrets(settings, &store).await);
    drop(progress);
    let good = rows.iter().all(|(.., verdict)| *verdict != BAD);
    let rows = rows
        .into_iter()
        .map(|(subject, seen, verdict)| vec![subject.into(), seen.into(), verdict.into()]);
    table::print(json, &["subject", "seen", "verdict"], rows.collect());
    Ok(if good { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

async fn accept(store: &Store, now: Timestamp) -> anyhow::Result<()> {
    if store.check_clock(now).await?.is_none() {
        bail!(
            "the database has no tables yet: start `galley serve` once, then run the command again"
        );
    }
    Ok(store.accept_clock(now).await?)
}

/// Good also while the time is unconfirmed: the guard works, and the store is not damaged.
fn clock(status: ClockStatus, now: Timestamp) -> Finding {
    let detail = match status {
        ClockStatus::Trusted => "trusted".to_owned(),
        ClockStatus::Unconfirmed { trusted_at, remaining } => format!(
            "it shows {now:.3}, the last trusted time is {trusted_at:.3}: nothing is deleted by age \
             until the service has run for another {}. If the clock is right, confirm it with \
             --accept-clock",
            hours_and_minutes(remaining.as_mins())
        ),
    };
    Finding::checked("clock", detail, true)
}

fn hours_and_minutes(minutes: i64) -> String {
    format!("{} h {} min", minutes / 60, minutes % 60)
}

/// Whether the key opens the secrets of the connections to providers. `None` if the database has
/// no tables, or the store is damaged; other findings say which.
async fn provider_secrets(
    settings: &Settings,
    store: &Store,
) -> Option<(&'static str, String, &'static str)> {
    let keyring = &settings.webhooks.keyring;
    let connections = store.connections().await.ok()?;
    let all = connections.len();
    let errors: Vec<String> = connections
        .iter()
        .filter_map(|it| {
            Some(format!("account {}: {}", it.account, check_secrets(keyring, it).err()?))
        })
        .collect();
    let (seen, verdict) = match errors.first() {
        None => (format!("0 of {all} unreadable"), GOOD),
        Some(_) if !keyring.has_key() => (
            format!(
                "not checked for {all}, because no key is set: set GALLEY_SECRET_KEY to the key of \
                 the service, which cannot work on connections without it"
            ),
            WARNING,
        ),
        Some(first) => (format!("{} of {all} unreadable; {first}", errors.len()), BAD),
    };
    Some(("provider secrets", seen, verdict))
}

fn permissions(settings: &Settings) -> Option<Finding> {
    let StoreUrl::Sqlite(_) = &settings.store else { return None };
    let exposed = super::exposed_files(settings);
    let ok = exposed.is_empty();
    let detail = if ok { "only the owner has access".to_owned() } else { exposed.join("; ") };
    Some(Finding::checked("permissions", detail, ok))
}
