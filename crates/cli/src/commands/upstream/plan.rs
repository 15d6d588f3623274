//! `galley upstream plan`: how the account's templates differ from those at the provider.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    process::ExitCode,
};

use anyhow::bail;
use galley_domain::{
    template::Template,
    upstream::{PlanState, RemoteId, RemoteTemplate, content::document_key},
};
use galley_store::{Account, MirrorFilter, MirroredTemplate, StoredTemplate};
use serde_json::{Value, json};

use super::{UpstreamCommands, remote_key, shown_progress, unique_key};
use crate::{
    arguments::Connected,
    commands::{lint::plural, progress::ProgressLine},
    table,
};

/// Exit code: some template differs.
const EXIT_DIFFERENT: u8 = 1;

/// A template of the account, of the provider, or of both.
struct Item {
    name: String,
    language: String,
    state: PlanState,
}

impl UpstreamCommands<'_> {
    pub(super) async fn plan(&self, connected: &Connected) -> anyhow::Result<ExitCode> {
        let (account, _) = self.connected(connected).await?;
        let session = self.session(&account).await?;
        let line = ProgressLine::start("reading templates at the provider");
        let walked = session.walk(&mut shown_progress(&line)).await;
        drop(line);
        session.end().await?;
        let walked = walked?;
        let unreadable = walked.unreadable() as usize;
        if unreadable > 0 {
            bail!("{} at the provider cannot be read", plural(unreadable, "template"));
        }
        if walked.progress.failed {
            bail!("the list of templates at the provider repeats itself");
        }
        let total = walked.progress.total;
        if total.is_some_and(|total| total > walked.progress.seen) {
            bail!("the provider has listed only {} of its templates", walked.progress.seen);
        }
        let mut own = self.templates(&account).await?;
        let mirror = self.mirror(&account, MirrorFilter::All).await?;
        let (generated, remote): (BTreeMap<_, _>, BTreeMap<_, _>) =
            walked.templates().into_iter().partition(|(_, it)| it.is_generated());
        // Some were imported before their source was known.
        let is_generated = |row: &&MirroredTemplate| {
            row.is_present() && (row.is_generated() || generated.contains_key(&row.id))
        };
        let imported: HashSet<_> =
            mirror.iter().filter(is_generated).filter_map(|row| row.template).collect();
        own.retain(|it| !imported.contains(&it.id));
        let items = compare(&account, &own, &mirror, remote.into_values());
        self.print_plan(&items, generated.len());
        let is_same = items.iter().all(|item| item.state == PlanState::Same);
        Ok(if is_same { ExitCode::SUCCESS } else { ExitCode::from(EXIT_DIFFERENT) })
    }

    fn print_plan(&self, items: &[Item], generated: usize) {
        if self.context.json {
            let items = items.iter().map(|Item { name, language, state }| {
                json!({"name": name, "language": language, "state": state.as_str()})
            });
            let items: Vec<Value> = items.collect();
            let plan = json!({ "items": items, "generated": generated });
            return table::print_line(&plan.to_string());
        }
        let different: Vec<&Item> =
            items.iter().filter(|item| item.state != PlanState::Same).collect();
        if !different.is_empty() {
            let rows = different.iter().map(|it| {
                vec![it.name.clone().into(), it.language.clone().into(), it.state.as_str().into()]
            });
            table::print(false, &["name", "language", "state"], rows.collect());
            table::print_line("");
        }
        let (all, different) = (plural(items.len(), "template"), different.len());
        table::print_line(&match different {
            0 => format!("{all}: all the same"),
            1 => format!("{all}: 1 differs"),
            _ => format!("{all}: {different} differ"),
        });
        if generated > 0 {
            let generated = plural(generated, "template");
            table::print_line(&format!("The provider generated {generated} besides."));
        }
    }
}

/// Compares the templates by name and language.
fn compare<'t>(
    account: &Account,
    own: &'t [StoredTemplate],
    mirror: &[MirroredTemplate],
    remote: impl Iterator<Item = &'t RemoteTemplate>,
) -> Vec<Item> {
    let mirror: HashMap<&RemoteId, &MirroredTemplate> =
        mirror.iter().map(|row| (&row.id, row)).collect();
    let key = |it: &Template| unique_key(account, it.name(), it.language());
    let mut pairs: BTreeMap<String, (Option<&StoredTemplate>, Option<&RemoteTemplate>)> =
        own.iter().map(|it| (key(&it.template), (Some(it), None))).collect();
    // A deleted template can have the name of another one.
    for remote in remote.filter(|remote| !remote.status.is_deleted()) {
        pairs.entry(remote_key(account, remote)).or_default().1 = Some(remote);
    }
    let mut items: Vec<Item> = pairs
        .into_values()
        .filter_map(|(own, remote)| {
            let names = own.map(|it| (it.template.name(), it.template.language()));
            let names = names.or_else(|| remote.map(|it| (&*it.name, &*it.language)))?;
            let row = remote.and_then(|remote| mirror.get(&remote.id));
            let is_mirrored = row.zip(own).is_some_and(|(row, own)| {
                (row.template, row.version) == (Some(own.id), Some(own.state.version))
                    && row.content_key
                        == remote.and_then(|it| document_key(it.document.as_deref()?))
            });
            let own = own.map(|it| &it.template);
            Some(Item {
                name: names.0.to_owned(),
                language: names.1.to_owned(),
                state: PlanState::of(own, remote, is_mirrored)?,
            })
        })
        .collect();
    items.sort_by(|left, right| (&left.name, &left.language).cmp(&(&right.name, &right.language)));
    items
}
