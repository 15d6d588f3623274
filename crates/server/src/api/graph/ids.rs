//! The ids of templates on this surface. A connected account shows the ids of its provider, which its
//! clients know already; both ids of a template resolve, and its former ones at the provider, too.

use std::{collections::HashMap, fmt};

use galley_domain::{id::TemplateId, upstream::RemoteId};
use galley_store::Account;

use super::caller::{Caller, unknown};
use crate::{api::problem::Problem, app::App};

impl<S> Caller<S> {
    /// The template with this id: that of the provider, also a former one, otherwise Galley's own. An
    /// id of the provider that belongs to no template is not an id of Galley.
    pub(super) async fn resolve(&self, app: &App, id: &str) -> Result<TemplateId, Problem> {
        if self.account.is_connected
            && let Some(remote) = RemoteId::parse(id)
        {
            let row = app.store().mirrored_template(self.account.id, &remote).await?;
            if let Some(row) = row {
                return row.template.ok_or_else(|| unknown(id));
            }
        }
        id.parse().map_err(|_| unknown(id))
    }
}

/// The ids of the provider of some templates; none if the account is not connected.
#[derive(Debug, Default)]
pub(super) struct ProviderIds(HashMap<TemplateId, RemoteId>);

/// An id as clients see it.
pub(super) enum ShownId<'a> {
    Own(TemplateId),
    Provider(&'a RemoteId),
}

impl fmt::Display for ShownId<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Own(id) => id.fmt(out),
            Self::Provider(id) => id.fmt(out),
        }
    }
}

impl ProviderIds {
    /// The ids of these templates. Only for a connected account it reads the mirror.
    pub(super) async fn of(
        app: &App,
        account: &Account,
        templates: impl Iterator<Item = TemplateId>,
    ) -> Result<Self, Problem> {
        if !account.is_connected {
            return Ok(Self::default());
        }
        let rows = app.store().mirror_of(account.id, templates.collect()).await?;
        let mut ids = HashMap::new();
        for (template, id) in rows.into_iter().filter_map(|row| Some((row.template?, row.id))) {
            // The first row of a template is its current one.
            ids.entry(template).or_insert(id);
        }
        Ok(Self(ids))
    }

    /// The id of a template: that of the provider if it has one.
    pub(super) fn shown(&self, id: TemplateId) -> ShownId<'_> {
        self.0.get(&id).map_or(ShownId::Own(id), ShownId::Provider)
    }
}
