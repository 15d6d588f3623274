//! `galley key …` and `galley token …`.

use anyhow::{Context as _, bail};
use galley_domain::account::{Scope, Scopes};
use galley_store::{
    AddCredentialOutcome, Credential, CredentialId, CredentialKind, NewCredential, SecretHash,
};
use jiff::Timestamp;
use serde_json::Value;

use super::Desk;
use crate::{
    arguments::{CredentialChoice, CredentialCommand},
    secrets, settings, table,
};

pub(super) async fn run(
    desk: &Desk,
    kind: CredentialKind,
    command: CredentialCommand,
) -> anyhow::Result<()> {
    match command {
        CredentialCommand::Create { account, choice } => {
            let account = desk.account(&account).await?;
            let (secret, new) = chosen(desk, kind, choice, Scopes::ALL)?;
            let addition = desk.store.add_credential(account.id, new, desk.now).await?;
            report(desk, kind, addition, secret)
        }
        CredentialCommand::List { account } => list(desk, kind, &account).await,
        CredentialCommand::Rotate { id, overlap, choice } => {
            let old = find(desk, kind, id).await?;
            if old.revoked_at.is_some() {
                bail!("the {} {id} is revoked; create a new one", kind.as_str());
            }
            let (secret, new) = chosen(desk, kind, choice, old.scopes)?;
            let end = from_now(desk, "--overlap", &overlap)?;
            let addition = desk.store.rotate_credential(old.id, new, end, desk.now).await?;
            report(desk, kind, addition, secret)
        }
        CredentialCommand::Revoke { id } => {
            let old = find(desk, kind, id).await?;
            let now = desk.store.revoke_credential(old.id, desk.now).await?;
            let state = if now { "revoked" } else { "was revoked before" };
            table::print_one(desk.json, &[("id", id.into()), ("state", state.into())]);
            Ok(())
        }
    }
}

/// The secret and what is to be kept of it.
fn chosen(
    desk: &Desk,
    kind: CredentialKind,
    choice: CredentialChoice,
    scopes: Scopes,
) -> anyhow::Result<(String, NewCredential)> {
    let scopes = match choice.scopes {
        Some(_) if kind == CredentialKind::Key => bail!("scopes belong to tokens, not to keys"),
        Some(words) => Scopes::parse(&words).map_err(|unknown| {
            let known: Vec<_> = Scope::ALL.iter().map(|it| it.as_str()).collect();
            anyhow::anyhow!("there is no scope {unknown:?}; known: {}", known.join(", "))
        })?,
        None => scopes,
    };
    let secret = match choice.secret {
        Some(secret) => secrets::given(kind.as_str(), secret)?,
        None => secrets::random(if kind == CredentialKind::Key { "gk_" } else { "gt_" })?,
    };
    let end = choice.expires_in.map(|text| from_now(desk, "--expires-in", &text)).transpose()?;
    let new = NewCredential { kind, hash: SecretHash::of(&secret), scopes, expires_at: end };
    Ok((secret, new))
}

fn from_now(desk: &Desk, flag: &str, text: &str) -> anyhow::Result<Timestamp> {
    let time = settings::time(text)
        .with_context(|| format!("{flag} takes a time such as 90d or 12h, not {text:?}"))?;
    desk.now.checked_add(time).with_context(|| format!("{flag} is too far away"))
}

fn report(
    desk: &Desk,
    kind: CredentialKind,
    addition: AddCredentialOutcome,
    secret: String,
) -> anyhow::Result<()> {
    let id = match addition {
        AddCredentialOutcome::Added(id) => id,
        AddCredentialOutcome::SecretTaken => bail!("this {} is in use already", kind.as_str()),
        AddCredentialOutcome::NoOwner => bail!("the account is gone"),
    };
    table::print_one(desk.json, &[("id", id.0.into()), (kind.as_str(), secret.into())]);
    if !desk.json {
        table::say(&format!("\nThe {} is shown this once.", kind.as_str()));
    }
    Ok(())
}

async fn find(desk: &Desk, kind: CredentialKind, id: u64) -> anyhow::Result<Credential> {
    for account in desk.store.accounts().await? {
        let all = desk.store.credentials(account.id).await?;
        if let Some(found) = all.into_iter().find(|it| it.id == CredentialId(id) && it.kind == kind)
        {
            return Ok(found);
        }
    }
    bail!("there is no {word} {id}; `galley {word} list ACCOUNT` shows them", word = kind.as_str())
}

async fn list(desk: &Desk, kind: CredentialKind, account: &str) -> anyhow::Result<()> {
    let account = desk.account(account).await?;
    let all = desk.store.credentials(account.id).await?.into_iter();
    let state = |it: &Credential| match (it.revoked_at, it.expires_at) {
        (Some(_), _) => "revoked",
        (None, Some(end)) if end <= desk.now => "expired",
        _ => "good",
    };
    let rows = all.filter(|it| it.kind == kind).map(|it| {
        let scopes =
            if kind == CredentialKind::Token { it.scopes.to_string().into() } else { Value::Null };
        vec![
            it.id.0.into(),
            state(&it).into(),
            scopes,
            it.created_at.to_string().into(),
            moment(it.expires_at),
            moment(it.revoked_at),
        ]
    });
    let columns = ["id", "state", "scopes", "created_at", "expires_at", "revoked_at"];
    table::print(desk.json, &columns, rows.collect());
    Ok(())
}

pub(super) fn moment(at: Option<Timestamp>) -> Value {
    at.map_or(Value::Null, |at| at.to_string().into())
}
