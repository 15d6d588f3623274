//! `galley upstream import`: what it would do, and the import itself.

use std::{
    collections::{BTreeMap, BTreeSet},
    io::{self, IsTerminal as _, Write as _},
};

use anyhow::bail;
use galley_domain::{
    rulebook::Category,
    template::Status,
    upstream::{RemoteTemplate, SweepVerdict, plan::violations},
    violation::Violations,
};
use galley_server::upstream::{Session, Walked};
use galley_store::{
    Account, EndedApproval, MirrorFilter, MirroredTemplate, StoredTemplate, SweepReport,
};
use serde_json::{Value, json};

use super::{
    UpstreamCommands, remote_key, shown_progress,
    sync::{members, print_ending, warn_if_suspicious},
    unique_key,
};
use crate::{
    arguments::Connected,
    commands::{lint::plural, progress::ProgressLine},
    table,
};

/// What an import would record, and what it would do.
struct Look {
    walked: Walked,
    report: SweepReport,
    calls: u32,
    new: usize,
    ending: Vec<EndedApproval>,
}

impl UpstreamCommands<'_> {
    /// Reads all templates with their components. If approvals would end, a person confirms it first,
    /// and only what that person has seen is recorded.
    pub(super) async fn import(
        &self,
        connected: &Connected,
        is_confirmed: bool,
    ) -> anyhow::Result<()> {
        let (account, _) = self.connected(connected).await?;
        if is_confirmed || !self.templates(&account).await?.iter().any(is_approved) {
            let session = self.session(&account).await?;
            return self.sweep(session, true).await;
        }
        let mut accepted: Vec<EndedApproval> = Vec::new();
        loop {
            let session = self.session(&account).await?;
            let look = match self.look(&session, &account).await {
                Ok(look) => look,
                Err(error) => {
                    session.end().await?;
                    return Err(error);
                }
            };
            if look.ending.iter().all(|it| accepted.contains(it)) {
                let report = session.import(look.walked).await;
                return self.finish_sweep(session, report).await;
            }
            // The service works on the connection while a person reads.
            session.end().await?;
            self.print_look(&look, None);
            self.confirm(&account, look.ending.len())?;
            accepted = look.ending;
        }
    }

    /// Shows what an import would do.
    pub(super) async fn dry_run(&self, connected: &Connected) -> anyhow::Result<()> {
        let (account, _) = self.connected(connected).await?;
        let session = self.session(&account).await?;
        let look = self.look(&session, &account).await;
        session.end().await?;
        let look = look?;
        let templates = own_templates(&look.walked).into_iter();
        let findings: Vec<(&RemoteTemplate, Violations)> =
            templates.filter_map(|it| Some((it, violations(it.document.as_deref()?)?))).collect();
        self.print_look(&look, Some(&findings));
        warn_if_suspicious(look.report.suspicious);
        Ok(())
    }

    async fn look(&self, session: &Session, account: &Account) -> anyhow::Result<Look> {
        let line = ProgressLine::start("reading templates at the provider");
        let walked = session.walk(&mut shown_progress(&line)).await;
        drop(line);
        let walked = walked?;
        let (mirror, own) =
            (self.mirror(account, MirrorFilter::All).await?, self.templates(account).await?);
        let rows: BTreeMap<_, _> = mirror.iter().map(|row| (&row.id, row)).collect();
        let templates = own_templates(&walked);
        let is_changed = |it: &&&RemoteTemplate| {
            rows.get(&it.id).is_none_or(|row: &&MirroredTemplate| row.differs_from(it))
        };
        let changed = templates.iter().filter(is_changed).count() as u64;
        let (verdict, missing) = walked.verdict(&mirror);
        let was_suspicious = session.connection.suspicious_at.is_some();
        let report = SweepReport {
            verdict,
            seen: walked.progress.seen,
            generated: walked.progress.generated,
            changed,
            missing,
            suspicious: was_suspicious || verdict == SweepVerdict::Suspicious,
        };
        let new = new_templates(account, &own, templates.into_iter());
        let ending = session.preview(&walked, mirror, own).await?;
        Ok(Look { report, calls: session.calls(), new, ending, walked })
    }

    /// Prints what an import would do, with what Galley's rules find if that is known.
    fn print_look(&self, look: &Look, findings: Option<&[(&RemoteTemplate, Violations)]>) {
        let is_json = self.context.json;
        let mut members = members(&look.report, look.calls, &look.ending, is_json);
        members.push(("new", look.new.into()));
        if let Some(findings) = findings {
            members.push(if is_json {
                ("findings", findings.iter().map(finding).collect())
            } else {
                ("with_errors", findings.len().into())
            });
        }
        table::print_one(is_json, &members);
        if is_json {
            return;
        }
        print_ending("The import ends these approvals", &look.ending);
        for (template, violations) in findings.unwrap_or_default() {
            let (name, language) = (&template.name, &template.language);
            table::print_line(&table::visible(&format!("\n{name} {language}")));
            for it in violations.listed() {
                let line = format!("  {} {} [{}]", it.pointer, it.message, it.rule.id());
                table::print_line(&table::visible(&line));
            }
        }
    }

    /// Asks whether approvals may end, on a terminal.
    fn confirm(&self, account: &Account, ending: usize) -> anyhow::Result<()> {
        let ending = plural(ending, "approval");
        if self.context.json || !io::stdin().is_terminal() {
            bail!(
                "nothing was recorded, because the import would end {ending}: look at the list, then \
                 run `galley upstream import {} --yes`",
                account.id
            );
        }
        let _ = write!(io::stderr(), "\nType `yes` to import, although it ends {ending}: ");
        let mut typed = String::new();
        io::stdin().read_line(&mut typed)?;
        if typed.trim() != "yes" {
            bail!("nothing was recorded");
        }
        Ok(())
    }
}

/// Whether a template has an approval that can end.
fn is_approved(it: &StoredTemplate) -> bool {
    it.state.approved_version.is_some() || it.state.newest_status == Status::Approved
}

/// The templates that the provider has, without those that it generated.
fn own_templates(walked: &Walked) -> Vec<&RemoteTemplate> {
    walked.templates().into_values().filter(|it| !it.is_generated()).collect()
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
