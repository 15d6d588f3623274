//! `galley upstream status`.

use galley_store::{Account, MirrorCounts, MirrorFilter};
use serde_json::Value;

use super::{PAGE_SIZE, UpstreamCommands, held};
use crate::{arguments::Connected, commands::credentials::timestamp, table};

/// The state of an account without a connection.
pub(super) const DISCONNECTED: &str = "disconnected";

/// How many of the templates that a suspicious sweep did not see are listed.
const MAX_LISTED_UNSEEN: usize = 20;

/// What to run before the service follows the provider.
pub(super) fn import_steps(account: &Account) -> String {
    let id = account.id;
    format!(
        "Next:\n  galley upstream check {id}             asks the provider for the account\n  \
         galley upstream import {id} --dry-run  shows what an import would do\n  \
         galley upstream import {id}            imports; the service makes sweeps from then on\n\
         Do this soon. While the account has approved templates of which Galley does not know whether \
         the provider has them, the service waits for your import. If it has none, the service imports \
         by itself, by default within 15 minutes (`upstream_sweep_interval`)."
    )
}

impl UpstreamCommands<'_> {
    pub(super) async fn status(&self, connected: &Connected) -> anyhow::Result<()> {
        let (account, connection) = self.connected(connected).await?;
        let store = &self.context.store;
        let MirrorCounts { present, drifted, missing, gone, generated, unseen } =
            store.mirror_counts(account.id).await?;
        let unseen = connection.suspicious_at.map(|_| unseen);
        let first_unseen: Option<Vec<String>> = match unseen {
            Some(_) => {
                let listed = (MirrorFilter::Unseen, MAX_LISTED_UNSEEN);
                let rows = store.mirrored(account.id, listed.0, None, listed.1).await?;
                Some(rows.iter().map(|row| format!("{} {}", row.name, row.language)).collect())
            }
            None => None,
        };
        let operations = self.operation_states(&account).await?;
        let operations = |states: &[&str]| -> Value {
            operations.iter().filter(|state| states.contains(state)).count().into()
        };
        let degraded = connection.degraded.as_ref();
        let sweep = connection.sweep.as_ref();
        let error = degraded.and_then(|it| it.error.as_ref()).map(ToString::to_string);
        let members = [
            ("account", account.name.clone().into()),
            ("state", connection.state().as_str().into()),
            ("base_url", connection.base_url.clone().into()),
            ("waba", connection.waba.clone().into()),
            ("app_id", connection.app_id.clone().into()),
            ("connected_at", timestamp(Some(connection.connected_at))),
            ("token_expires_at", timestamp(connection.token_expires_at)),
            ("paused_at", timestamp(connection.paused_at)),
            ("suspicious_at", timestamp(connection.suspicious_at)),
            ("unseen", unseen.into()),
            ("unseen_templates", first_unseen.into()),
            ("degraded", degraded.map(|it| it.reason.as_str()).into()),
            ("degraded_since", timestamp(degraded.map(|it| it.since))),
            ("degraded_until", timestamp(degraded.and_then(|it| it.until))),
            ("error", error.into()),
            ("held", held(&connection, &account, self.context.now).into()),
            ("sweep_began_at", timestamp(sweep.map(|it| it.began_at))),
            ("sweep_seen", sweep.map(|it| it.progress.seen).into()),
            ("sweep_ended_at", timestamp(connection.sweep_ended_at)),
            ("swept_at", timestamp(connection.swept_at)),
            ("read_all_at", timestamp(connection.read_all_at)),
            ("template_limit", connection.template_limit.into()),
            ("templates", present.into()),
            ("generated", generated.into()),
            ("drifted", drifted.into()),
            ("missing", missing.into()),
            ("gone", gone.into()),
            ("operations_queued", operations(&["queued"])),
            ("operations_sending", operations(&["sending", "unknown", "probing"])),
            ("operations_held", operations(&["held"])),
            ("operations_refused", operations(&["refused"])),
            ("operations_conflict", operations(&["conflict"])),
        ];
        table::print_one(self.context.json, &members);
        if !self.context.json && !connection.has_begun_import() {
            table::print_line(&format!("\nNothing is imported yet. {}", import_steps(&account)));
        }
        Ok(())
    }

    /// The states of all operations.
    async fn operation_states(&self, account: &Account) -> anyhow::Result<Vec<&'static str>> {
        let mut states = Vec::new();
        let mut before = None;
        loop {
            let page = self.context.store.operations(account.id, before, PAGE_SIZE).await?;
            states.extend(page.iter().map(|it| it.operation.state.as_str()));
            before = page.last().map(|it| it.id);
            if page.len() < PAGE_SIZE {
                return Ok(states);
            }
        }
    }
}
