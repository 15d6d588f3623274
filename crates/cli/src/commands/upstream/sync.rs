//! `galley upstream sync`, and the report of a sweep.

use galley_domain::upstream::SweepVerdict;
use galley_server::upstream::{Session, SyncError};
use galley_store::{EndedApproval, SweepReport};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::{UpstreamCommands, shown_progress};
use crate::{arguments::Connected, commands::progress::ProgressLine, table, terminal};

impl UpstreamCommands<'_> {
    /// Makes one sweep. It reads all components once a day, or if an import was interrupted. The first
    /// one is an import.
    pub(super) async fn sync(&self, connected: &Connected) -> anyhow::Result<()> {
        let (account, connection) = self.connected(connected).await?;
        if !connection.has_begun_import() {
            return self.import(connected, false).await;
        }
        let session = self.session(&account).await?;
        let full_interval = self.settings.upstream.limits.full_interval;
        let full_interval = SignedDuration::try_from(full_interval).unwrap_or(SignedDuration::MAX);
        let running = session.connection.sweep.as_ref().map(|sweep| sweep.full);
        let full = running.unwrap_or_else(|| {
            is_due(session.connection.read_all_at, full_interval, self.context.now)
        });
        self.sweep(session, full).await
    }

    pub(super) async fn sweep(&self, session: Session, full: bool) -> anyhow::Result<()> {
        let line = ProgressLine::start("reading templates at the provider");
        let report = session.sweep(full, false, &mut shown_progress(&line)).await;
        drop(line);
        self.finish_sweep(session, report).await
    }

    /// Ends the lease at once, whatever the sweep has met, and reports what it has done.
    pub(super) async fn finish_sweep(
        &self,
        session: Session,
        report: Result<SweepReport, SyncError>,
    ) -> anyhow::Result<()> {
        let (calls, ended) = (session.calls(), session.take_ended_approvals());
        session.end().await?;
        let is_json = self.context.json;
        if let Ok(report) = &report {
            table::print_one(is_json, &members(report, calls, &ended, is_json));
            warn_if_suspicious(report.suspicious);
            if report.verdict == SweepVerdict::Incomplete {
                terminal::print_warning(
                    "the sweep is not complete, so none is marked as missing: the provider's list \
                     has changed, was cut short or repeats itself; the next sweep looks again",
                );
            }
        }
        if !is_json {
            print_ending("These approvals have ended", &ended);
        } else if report.is_err() && !ended.is_empty() {
            let ended = ended_json(&ended).to_string();
            terminal::print_warning(format_args!(
                "approvals have ended before the failure: {ended}"
            ));
        }
        report?;
        Ok(())
    }
}

/// The members of a report. The approvals are listed in JSON.
pub(super) fn members(
    report: &SweepReport,
    calls: u32,
    ending: &[EndedApproval],
    is_json: bool,
) -> Vec<(&'static str, Value)> {
    let mut members = vec![
        ("complete", (report.verdict == SweepVerdict::Counted).into()),
        ("calls", calls.into()),
        ("seen", report.seen.into()),
        ("generated", report.generated.into()),
        ("changed", report.changed.into()),
        ("missing", report.missing.into()),
        ("suspicious", report.suspicious.into()),
        ("approvals_ending", ending.len().into()),
    ];
    if is_json {
        members.push(("ending", ended_json(ending)));
    }
    members
}

fn ended_json(ending: &[EndedApproval]) -> Value {
    let item = |it: &EndedApproval| {
        json!({
            "id": it.template.to_string(), "name": it.name, "language": it.language,
            "version": it.version, "reason": it.reason.as_str(), "message": it.reason.to_string(),
        })
    };
    ending.iter().map(item).collect()
}

/// Lists approvals that end, for people.
pub(super) fn print_ending(title: &str, ending: &[EndedApproval]) {
    if ending.is_empty() {
        return;
    }
    table::print_line(&format!("\n{title}; `disconnect` does not restore them:"));
    for it in ending {
        let line = format!("  {} {}: {}", it.name, it.language, it.reason);
        table::print_line(&table::visible(&line));
    }
}

pub(super) fn warn_if_suspicious(is_suspicious: bool) {
    if is_suspicious {
        terminal::print_warning(
            "the provider does not show many templates that it had, so none is marked as missing and \
             nothing is sent; look there, then run `galley upstream resume`, with --accept-missing if \
             they were deleted",
        );
    }
}

/// Whether a sweep should read all components again.
fn is_due(last: Option<Timestamp>, interval: SignedDuration, now: Timestamp) -> bool {
    last.is_none_or(|last| now.duration_since(last) >= interval)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_components_are_read_at_first_and_then_once_in_the_interval() {
        let at = |second| Timestamp::from_second(second).unwrap();
        let day = SignedDuration::from_hours(24);
        assert!(is_due(None, day, at(0)));
        assert!(!is_due(Some(at(0)), day, at(86_399)));
        assert!(is_due(Some(at(0)), day, at(86_400)));
    }
}
