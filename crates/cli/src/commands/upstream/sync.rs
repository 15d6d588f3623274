//! `galley upstream import` and `sync`.

use std::collections::{BTreeMap, BTreeSet};

use galley_domain::{
    id::TemplateId,
    rulebook::Category,
    template::Status,
    upstream::{RemoteTemplate, SweepVerdict, plan::violations},
    violation::Violations,
};
use galley_server::upstream::Session;
use galley_store::{Account, MirrorFilter, MirroredTemplate, StoredTemplate, SweepReport};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::{UpstreamCommands, remote_key, shown_progress, unique_key};
use crate::{arguments::Connected, commands::progress::ProgressLine, table, terminal};

/// How many templates whose approval ends are listed by name.
const MAX_LISTED_ENDING: usize = 20;

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
        let (calls, ended_approvals) = (session.calls(), session.ended_approvals());
        // The lease ends at once, whatever the sweep has met.
        session.end().await?;
        let report = report?;
        table::print_one(self.context.json, &members(&report, calls, ended_approvals));
        warn_if_suspicious(report.suspicious);
        if report.verdict == SweepVerdict::Incomplete {
            terminal::print_warning(
                "the sweep is not complete, so none is marked as missing: the provider's list \
                 has changed, was cut short or repeats itself; the next sweep looks again",
            );
        }
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
        let mirror = self.mirror(&account, MirrorFilter::All).await?;
        let rows: BTreeMap<_, _> = mirror.iter().map(|row| (&row.id, row)).collect();
        let (verdict, missing) = walked.verdict(&mirror);
        let templates = walked.templates().into_values().filter(|it| !it.is_generated());
        let templates: Vec<&RemoteTemplate> = templates.collect();
        let templates = templates.iter().copied();
        let is_changed = |it: &&RemoteTemplate| {
            rows.get(&it.id).is_none_or(|row: &&MirroredTemplate| row.differs_from(it))
        };
        let report = SweepReport {
            verdict,
            seen: walked.progress.seen,
            generated: walked.progress.generated,
            changed: templates.clone().filter(is_changed).count() as u64,
            missing,
            suspicious: was_suspicious || verdict == SweepVerdict::Suspicious,
        };
        let remote_keys: BTreeSet<String> =
            templates.clone().map(|it| remote_key(&account, it)).collect();
        let own = self.templates(&account).await?;
        let new = new_templates(&account, &own, templates.clone());
        let is_followed = report.verdict == SweepVerdict::Counted && !report.suspicious;
        let ending = if is_followed {
            self.ending_approvals(&account, &own, &mirror, &remote_keys).await?
        } else {
            Vec::new()
        };
        let findings: Vec<(&RemoteTemplate, Violations)> =
            templates.filter_map(|it| Some((it, violations(it.document.as_deref()?)?))).collect();
        self.print_dry_run(&members(&report, calls, ending.len()), new, &ending, &findings);
        warn_if_suspicious(report.suspicious);
        Ok(())
    }

    /// The templates whose approval an import ends, because the provider does not have them.
    async fn ending_approvals<'t>(
        &self,
        account: &Account,
        own: &'t [StoredTemplate],
        mirror: &[MirroredTemplate],
        remote_keys: &BTreeSet<String>,
    ) -> anyhow::Result<Vec<&'t StoredTemplate>> {
        let open = self.context.store.open_operations(account.id, usize::MAX).await?;
        let mut known: BTreeSet<TemplateId> =
            mirror.iter().filter_map(|row| row.template).collect();
        known.extend(open.iter().map(|operation| operation.template));
        let is_ending = |it: &&StoredTemplate| {
            let is_approved =
                it.state.approved_version.is_some() || it.state.newest_status == Status::Approved;
            let key = unique_key(account, it.template.name(), it.template.language());
            is_approved && !known.contains(&it.id) && !remote_keys.contains(&key)
        };
        Ok(own.iter().filter(is_ending).collect())
    }

    fn print_dry_run(
        &self,
        report: &[(&'static str, Value)],
        new: usize,
        ending: &[&StoredTemplate],
        findings: &[(&RemoteTemplate, Violations)],
    ) {
        let mut members = report.to_vec();
        members.push(("new", new.into()));
        if self.context.json {
            let findings: Vec<Value> = findings.iter().map(finding).collect();
            members.push(("findings", findings.into()));
            return table::print_one(true, &members);
        }
        members.push(("with_errors", findings.len().into()));
        table::print_one(false, &members);
        print_ending(ending);
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

/// How many templates the account would get.
fn new_templates<'t>(
    account: &Account,
    own: &[StoredTemplate],
    remote: impl Iterator<Item = &'t RemoteTemplate>,
) -> usize {
    let own = own.iter().map(|it| &it.template);
    let own: BTreeSet<String> =
        own.map(|it| unique_key(account, it.name(), it.language())).collect();
    let is_new = |it: &&RemoteTemplate| {
        !it.status.is_deleted()
            && Category::parse(&it.category).is_some()
            && !own.contains(&remote_key(account, it))
    };
    remote.filter(is_new).count()
}

/// Lists the templates whose approval ends.
fn print_ending(ending: &[&StoredTemplate]) {
    if ending.is_empty() {
        return;
    }
    table::print_line(
        "\nThe provider does not have these templates. The import ends their approvals, and \
         `disconnect` does not restore them:",
    );
    for it in ending.iter().take(MAX_LISTED_ENDING) {
        let line = format!("  {} {}", it.template.name(), it.template.language());
        table::print_line(&table::visible(&line));
    }
    if ending.len() > MAX_LISTED_ENDING {
        table::print_line(&format!("  and {} more", ending.len() - MAX_LISTED_ENDING));
    }
}

fn members(
    report: &SweepReport,
    calls: u32,
    approvals_ending: usize,
) -> Vec<(&'static str, Value)> {
    vec![
        ("complete", (report.verdict == SweepVerdict::Counted).into()),
        ("calls", calls.into()),
        ("seen", report.seen.into()),
        ("generated", report.generated.into()),
        ("changed", report.changed.into()),
        ("missing", report.missing.into()),
        ("suspicious", report.suspicious.into()),
        ("approvals_ending", approvals_ending.into()),
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
