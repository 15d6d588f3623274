//! `galley upstream accept`, `submit`, `push` and `adopt`: what a person decides about one template.

use std::collections::BTreeSet;

use anyhow::{Context as _, bail};
use galley_domain::id::TemplateId;
use galley_store::{Account, StoredTemplate, UpstreamAction, UpstreamActionOutcome};
use serde_json::Value;

use super::{PAGE_SIZE, UpstreamCommands, not_connected};
use crate::{
    arguments::{Connected, ConnectedTemplate, TemplateFilter},
    commands::templates,
    table,
};

impl UpstreamCommands<'_> {
    pub(super) async fn act(
        &self,
        wanted: &ConnectedTemplate,
        action: UpstreamAction,
    ) -> anyhow::Result<()> {
        let (account, _) = self.connected(&wanted.connected).await?;
        let stored = self.template(&account, wanted).await?;
        let change = self.context.change(&account, &stored);
        let members = match self.context.store.act_upstream(change, action).await? {
            UpstreamActionOutcome::Queued(operation) => vec![
                ("id", Value::from(operation.template.to_string())),
                ("operation", operation.id.to_string().into()),
                ("kind", operation.operation.kind.as_str().into()),
                ("state", operation.operation.state.as_str().into()),
                ("version", operation.version.into()),
            ],
            UpstreamActionOutcome::Changed(template) => vec![
                ("id", Value::from(template.id.to_string())),
                ("status", template.state.status().as_str().into()),
                ("version", template.state.version.into()),
                ("live_version", template.state.live_version().into()),
            ],
            UpstreamActionOutcome::NotPossible(reason) => bail!("{reason}"),
            UpstreamActionOutcome::NotConnected => bail!(not_connected(&account)),
            UpstreamActionOutcome::NoTemplate | UpstreamActionOutcome::RevisionMismatch(_) => {
                bail!("the template was changed at the same time: look at it, and try again")
            }
        };
        table::print_one(self.context.json, &members);
        Ok(())
    }

    /// Submits all templates that neither the provider nor an operation knows.
    pub(super) async fn submit_all(&self, connected: &Connected) -> anyhow::Result<()> {
        let (account, _) = self.connected(connected).await?;
        let (mut submitted, mut skipped) = (0, 0);
        for templates in self.templates(&account).await?.chunks(PAGE_SIZE) {
            for stored in self.local_templates(&account, templates).await? {
                let change = self.context.change(&account, stored);
                let store = &self.context.store;
                match store.act_upstream(change, UpstreamAction::Submit).await? {
                    UpstreamActionOutcome::Queued(_) => submitted += 1,
                    UpstreamActionOutcome::NotConnected => bail!(not_connected(&account)),
                    _ => skipped += 1,
                }
            }
        }
        let members: [(&str, Value); 2] =
            [("submitted", submitted.into()), ("skipped", skipped.into())];
        table::print_one(self.context.json, &members);
        Ok(())
    }

    /// Those of these templates whose state at the provider is `local`.
    async fn local_templates<'t>(
        &self,
        account: &Account,
        templates: &'t [StoredTemplate],
    ) -> anyhow::Result<Vec<&'t StoredTemplate>> {
        let store = &self.context.store;
        let ids: Vec<TemplateId> = templates.iter().map(|it| it.id).collect();
        let rows = store.mirror_of(account.id, ids.clone()).await?;
        let mut known: BTreeSet<TemplateId> = rows.iter().filter_map(|row| row.template).collect();
        let operations = store.operations_of(account.id, ids).await?;
        known.extend(operations.iter().map(|operation| operation.template));
        Ok(templates.iter().filter(|it| !known.contains(&it.id)).collect())
    }

    pub(super) async fn adopt(&self, wanted: &ConnectedTemplate) -> anyhow::Result<()> {
        let (account, _) = self.connected(&wanted.connected).await?;
        let stored = self.template(&account, wanted).await?;
        let (name, language) = (stored.template.name(), stored.template.language());
        let session = self.session(&account).await?;
        let found = session.adopt(name, language).await;
        session.end().await?;
        let found = found?.with_context(|| {
            format!("the provider has no template {name:?} in the language {language}")
        })?;
        let store = &self.context.store;
        let abandoned =
            store.abandon_operations(account.id, stored.id, self.context.author()).await?;
        let mirrored = store.mirrored_template(account.id, &found.id).await?;
        let members = [
            ("id", stored.id.to_string().into()),
            ("upstream_id", found.id.as_str().into()),
            ("status", found.status.as_str().into()),
            ("drifted", mirrored.is_some_and(|row| row.drifted).into()),
            ("abandoned", abandoned.into()),
        ];
        table::print_one(self.context.json, &members);
        Ok(())
    }

    /// The template of the account with this name and language.
    async fn template(
        &self,
        account: &Account,
        ConnectedTemplate { name, language, .. }: &ConnectedTemplate,
    ) -> anyhow::Result<StoredTemplate> {
        let filter = TemplateFilter {
            name: Some(name.clone()),
            language: Some(language.clone()),
            ..TemplateFilter::default()
        };
        let found = templates::list(&self.context, account, &filter).await?;
        found.into_iter().next().with_context(|| {
            format!(
                "the account has no template {name:?} in the language {language}; run `galley \
                 upstream plan {}`",
                account.id
            )
        })
    }
}
