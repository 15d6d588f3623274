//! `galley account delete`.

use std::io::{self, IsTerminal as _, Write as _};

use anyhow::bail;
use galley_store::{Account, Actor, DeleteAccountOutcome, DeleteOutcome, Initiator, ListQuery};

use crate::{commands::CommandContext, table};

/// Number of templates that one transaction deletes.
const STEP: usize = 100;

pub(super) async fn delete(
    context: &CommandContext,
    wanted: &str,
    is_confirmed: bool,
) -> anyhow::Result<()> {
    let account = context.account(wanted).await?;
    if account.disabled_at.is_none() {
        bail!(
            "the account {:?} is not disabled; run `galley account disable {}` first, and wait until its clients have stopped",
            account.name,
            account.id
        );
    }
    if !is_confirmed {
        confirm(&account.name)?;
    }
    let templates = delete_templates(context, &account).await?;
    match context.store.delete_account(account.id, context.author()).await? {
        DeleteAccountOutcome::Deleted => {}
        DeleteAccountOutcome::NotDisabled => {
            bail!("the account has been enabled again; its templates are deleted")
        }
        DeleteAccountOutcome::HasTemplates => {
            bail!("a client has created a template meanwhile; run the command again")
        }
        DeleteAccountOutcome::NotFound => bail!("the account no longer exists"),
    }
    let members = [
        ("id", account.id.to_string().into()),
        ("state", "deleted".into()),
        ("templates", templates.into()),
    ];
    table::print_one(context.json, &members);
    Ok(())
}

/// Asks for the name of the account, on a terminal.
fn confirm(name: &str) -> anyhow::Result<()> {
    if !io::stdin().is_terminal() {
        bail!("deleting an account needs a confirmation: pass --yes");
    }
    let _ = write!(
        io::stderr(),
        "This deletes the account, its templates, credentials, webhooks and phone numbers for good.\n\
         Type the name of the account to confirm: "
    );
    let mut typed = String::new();
    io::stdin().read_line(&mut typed)?;
    if typed.trim_end_matches(['\r', '\n']) != name {
        bail!("this is not the name of the account; nothing was deleted");
    }
    Ok(())
}

/// Deletes all templates of the account. Returns how many.
async fn delete_templates(context: &CommandContext, account: &Account) -> anyhow::Result<usize> {
    let by = Initiator {
        account: account.id,
        // Not the effective review: the templates at the provider of a connected account stay.
        review: account.review,
        actor: Actor::Operator,
        trace: None,
        at: context.now,
    };
    let mut deleted = 0;
    loop {
        let page = context.store.list(ListQuery::new(account.id, STEP)).await?;
        let ids: Vec<_> = page.templates.iter().map(|template| template.id).collect();
        if ids.is_empty() {
            return Ok(deleted);
        }
        let count = ids.len();
        match context.store.delete_templates(by, ids).await? {
            DeleteOutcome::Done(_) => deleted += count,
            // Another process deletes them, too: read the list again.
            DeleteOutcome::NoTemplate(_) => {}
            DeleteOutcome::InvalidTransition(id, refusal) => {
                bail!("the template {id} is {} and cannot be deleted", refusal.status.as_str())
            }
        }
    }
}
