//! `galley console`: a link that signs in to the console.

use anyhow::bail;
use galley_domain::account::{Scope, Scopes, prefix};
use galley_store::{Account, NewConsoleLink, SecretHash};

use super::{
    CommandContext,
    credentials::{self, parse_scopes},
};
use crate::{secrets, settings::Settings, table};

/// The scopes of a link without a choice: what the pages need that show and change templates, and what
/// emulator accounts and connected accounts have in addition.
fn default_scopes(account: &Account) -> Scopes {
    let emulator = account.emulator.map(|_| Scope::Emulator);
    let upstream = account.is_connected.then_some(Scope::Upstream);
    let further = emulator.into_iter().chain(upstream);
    Scopes::of([Scope::Read, Scope::Write, Scope::Review].into_iter().chain(further))
}

/// Creates a link and prints it. Its secret is in the fragment, which browsers send to no server.
pub(super) async fn link(
    context: &CommandContext,
    settings: &Settings,
    account: &str,
    scopes: Option<&str>,
    name: String,
) -> anyhow::Result<()> {
    if !settings.console {
        bail!("the console is switched off: set `console = true` in the settings of the service");
    }
    let scopes = scopes.map(parse_scopes).transpose()?;
    if scopes.is_some_and(|scopes| !scopes.contains(Scope::Read)) {
        bail!("the console needs the scope `read`: add it to --scopes");
    }
    let name = credentials::checked_name(name)?;
    let account = context.account(account).await?;
    let scopes = scopes.unwrap_or_else(|| default_scopes(&account));
    if account.disabled_at.is_some() {
        bail!("the account is disabled; `galley account enable {}` enables it", account.id);
    }
    let secret = secrets::random(prefix::LINK)?;
    let new = NewConsoleLink { account: account.id, hash: SecretHash::of(&secret), scopes, name };
    if !context.store.create_console_link(new, context.author()).await? {
        bail!("the account no longer exists");
    }
    let base = match &*settings.public_url {
        "" => format!("http://{}", settings.listen),
        url => url.trim_end_matches('/').to_owned(),
    };
    let url = format!("{base}/console/sign-in#link={secret}");
    let end = NewConsoleLink::end(context.now);
    let members = [("url", url.into()), ("expires_at", format!("{end:.3}").into())];
    if account.four_eyes && scopes.contains(Scope::Write) && scopes.contains(Scope::Review) {
        eprintln!(
            "warning: four eyes compare tokens, and each link is a new one: with two links, one person \
             can write and approve. Use --scopes read,write or --scopes read,review"
        );
    }
    table::print_one(context.json, &members);
    if !context.json {
        table::print_line("\nThe link works once, within 60 seconds.");
    }
    Ok(())
}
