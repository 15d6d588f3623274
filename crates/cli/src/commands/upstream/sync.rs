//! `galley upstream import` and `sync`.

use std::collections::{BTreeMap, BTreeSet};

use galley_domain::{
    rulebook::Category,
    upstream::{RemoteTemplate, SweepVerdict, plan::violations, sweep::verdict},
    violation::Violations,
};
use galley_server::upstream::Session;
use galley_store::{Account, MirroredTemplate, SweepReport};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::{UpstreamCommands, remote_key, shown_progress, unique_key};
use crate::{arguments::Connected, commands::progress::ProgressLine, table, terminal};

impl UpstreamCommands<'_> {
    /// Reads all templates with their components.
    pub(super) async fn import(&self, connected: &Connected) -> anyhow::Result<()> {
        let (account, _) = self.connected(connected).await?;
        let session = self.session(&account).await?;
        self.sweep(session, true).await
    }

    /// Makes one sweep. It reads all components once a day, or if an import was interrupted.
    pub(super) async fn sync(&self, connected: &Connected) -> anyhow::Result<()> {
        let (account, _) = self.connected(connected).await?;
        let session = self.session(&account).await?;
        let full_interval = self.settings.upstream.limits.full_interval;
        let full_interval = SignedDuration::try_from(full_interval).unwrap_or(SignedDuration::MAX);
        let running = session.connection.sweep.as_ref().map(|sweep| sweep.full);
        let full = running.unwrap_or_else(|| {
            is_due(session.connection.read_all_at, full_interval, self.context.now)
        });
        self.sweep(session, full).await
    }

    async fn sweep(&self, session: Session, full: bool) -> anyhow::Result<()> {
        let line = ProgressLine::start("reading templates at the provider");
        let report = session.sweep(full, false, shown_progress(&line)).await;
        drop(line);
        let calls = session.calls();
        // The lease ends at once, whatever the sweep has met.
        session.end().await?;
        let report = report?;
        table::print_one(self.context.json, &members(&report, calls));
        warn_if_suspicious(report.suspicious);
        Ok(())
    }

    /// Shows what an import would do.
    pub(super) async fn dry_run(&self, connected: &Connected) -> anyhow::Result<()> {
        let (account, _) = self.connected(connected).await?;
        let session = self.session(&account).await?;
        let line = ProgressLine::start("reading templates at the provider");
        let walked = session.walk(shown_progress(&line)).await;
        drop(line);
        let (calls, was_suspicious) = (session.calls(), session.connection.suspicious_at.is_some());
        session.end().await?;
        let walked = walked?;
        let mirror = self.mirror(&account).await?;
        let rows: BTreeMap<_, _> = mirror.iter().map(|row| (&row.id, row)).collect();
        let count = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
        let present = || mirror.iter().filter(|row| row.is_present());
        let missing =
            count(present().filter(|row| !walked.templates.contains_key(&row.id)).count());
        let verdict = verdict(count(present().count()), missing, walked.progress);
        let templates = walked.templates.values();
        let is_changed = |it: &&RemoteTemplate| {
            rows.get(&it.id).is_none_or(|row: &&MirroredTemplate| row.differs_from(it))
        };
        let report = SweepReport {
            verdict,
            seen: walked.progress.seen,
            changed: templates.clone().filter(is_changed).count() as u64,
            missing,
            suspicious: was_suspicious || verdict == SweepVerdict::Suspicious,
        };
        let new = self.new_templates(&account, templates.clone()).await?;
        let findings: Vec<(&RemoteTemplate, Violations)> =
            templates.filter_map(|it| Some((it, violations(it.document.as_deref()?)?))).collect();
        self.print_dry_run(&report, calls, new, &findings);
        warn_if_suspicious(report.suspicious);
        Ok(())
    }

    /// How many templates the account would get.
    async fn new_templates(
        &self,
        account: &Account,
        remote: impl Iterator<Item = &RemoteTemplate>,
    ) -> anyhow::Result<usize> {
        let own = self.templates(account).await?;
        let own = own.iter().map(|it| &it.template);
        let own: BTreeSet<String> =
            own.map(|it| unique_key(account, it.name(), it.language())).collect();
        let is_new = |it: &&RemoteTemplate| {
            !it.status.is_deleted()
                && Category::parse(&it.category).is_some()
                && !own.contains(&remote_key(account, it))
        };
        Ok(remote.filter(is_new).count())
    }

    fn print_dry_run(
        &self,
        report: &SweepReport,
        calls: u32,
        new: usize,
        findings: &[(&RemoteTemplate, Violations)],
    ) {
        let mut members = members(report, calls);
        members.push(("new", new.into()));
        if self.context.json {
            let findings: Vec<Value> = findings.iter().map(finding).collect();
            members.push(("findings", findings.into()));
            return table::print_one(true, &members);
        }
        members.push(("with_errors", findings.len().into()));
        table::print_one(false, &members);
        for (template, violations) in findings {
            let (name, language) = (&template.name, &template.language);
            table::print_line(&table::visible(&format!("\n{name} {language}")));
            for it in violations.listed() {
                let line = format!("  {} {} [{}]", it.pointer, it.message, it.rule.id());
                table::print_line(&table::visible(&line));
            }
        }
    }
}

fn members(report: &SweepReport, calls: u32) -> Vec<(&'static str, Value)> {
    vec![
        ("complete", (report.verdict == SweepVerdict::Counted).into()),
        ("calls", calls.into()),
        ("seen", report.seen.into()),
        ("changed", report.changed.into()),
        ("missing", report.missing.into()),
        ("suspicious", report.suspicious.into()),
    ]
}

fn finding((template, violations): &(&RemoteTemplate, Violations)) -> Value {
    let listed = violations
        .listed()
        .iter()
        .map(|it| json!({"pointer": it.pointer, "rule": it.rule.id(), "message": it.message}));
    let mut finding = json!({
        "name": template.name,
        "language": template.language,
        "violations": listed.collect::<Vec<_>>(),
    });
    if violations.omitted() > 0 {
        finding["more_violations"] = violations.omitted().into();
    }
    finding
}

fn warn_if_suspicious(is_suspicious: bool) {
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
