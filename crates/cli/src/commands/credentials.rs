//! `galley key …` and `galley token …`.

use anyhow::{Context as _, bail};
use galley_domain::account::{self, Scope, Scopes, prefix};
use galley_store::{
    Actor, AddCredentialOutcome, Credential, CredentialId, CredentialKind, NewCredential,
    RotateCredentialOutcome, SecretHash,
};
use jiff::Timestamp;
use serde_json::Value;

use super::CommandContext;
use crate::{
    arguments::{CredentialChoice, CredentialCommand},
    secrets::{self, file},
    settings, table,
};

pub(super) async fn run(
    context: &CommandContext,
    kind: CredentialKind,
    command: CredentialCommand,
) -> anyhow::Result<()> {
    match command {
        CredentialCommand::Create { account, choice } => {
            let account = context.account(&account).await?;
            let (secret, new) = new_credential(context, kind, choice, Scopes::DEFAULT)?;
            let addition = context.store.add_credential(account.id, new, context.author()).await?;
            report(context, kind, addition, secret)
        }
        CredentialCommand::List { account } => list(context, kind, &account).await,
        CredentialCommand::Rotate { id, overlap, choice } => {
            let old = find(context, kind, id).await?;
            let (secret, new) = new_credential(context, kind, choice, old.scopes)?;
            let end = from_now(context, "--overlap", &overlap)?;
            let rotation =
                context.store.rotate_credential(old.id, new, end, context.author()).await?;
            report_rotation(context, &old, rotation, secret)
        }
        CredentialCommand::Revoke { id } => {
            let old = find(context, kind, id).await?;
            let now = context.store.revoke_credential(old.id, context.author()).await?;
            let state = if now { "revoked" } else { "was revoked before" };
            table::print_one(context.json, &[("id", id.into()), ("state", state.into())]);
            Ok(())
        }
    }
}

/// The secret and the record to store.
fn new_credential(
    context: &CommandContext,
    kind: CredentialKind,
    choice: CredentialChoice,
    scopes: Scopes,
) -> anyhow::Result<(String, NewCredential)> {
    let scopes = match choice.scopes {
        Some(_) if kind == CredentialKind::Key => bail!("only tokens have scopes, not keys"),
        Some(names) => parse_scopes(&names)?,
        None => scopes,
    };
    let secret = match file::given(choice.secret, choice.secret_file.as_deref())? {
        Some(secret) => secrets::chosen(kind.as_str(), secret)?,
        None => {
            secrets::random(if kind == CredentialKind::Key { prefix::KEY } else { prefix::TOKEN })?
        }
    };
    let end = choice.expires_in.map(|text| from_now(context, "--expires-in", &text)).transpose()?;
    let name = choice.name.map(checked_name).transpose()?.unwrap_or_default();
    let new = NewCredential { kind, hash: SecretHash::of(&secret), scopes, expires_at: end, name };
    Ok((secret, new))
}

/// The key and the token of a new account. Their names tell them from others in lists and events.
pub(super) fn first_pair(key: &str, token: &str) -> Vec<NewCredential> {
    let named = |kind: CredentialKind, secret| NewCredential {
        name: format!("first {}", kind.as_str()),
        ..NewCredential::unrestricted(kind, secret)
    };
    vec![named(CredentialKind::Key, key), named(CredentialKind::Token, token)]
}

/// The originator of a change, as tables show it.
pub(super) fn shown_actor(actor: Actor) -> String {
    match actor {
        Actor::Token(id) => format!("token {id}"),
        Actor::Operator | Actor::Service => actor.to_string(),
    }
}

/// Checks the name of a credential.
pub(super) fn checked_name(name: String) -> anyhow::Result<String> {
    account::check_credential_name(&name).map_err(|error| anyhow::anyhow!("--name {error}"))?;
    Ok(name)
}

/// Parses the names of scopes.
pub(super) fn parse_scopes(names: &str) -> anyhow::Result<Scopes> {
    Scopes::parse(names).map_err(|unknown| {
        let known: Vec<_> = Scope::ALL.iter().map(|it| it.as_str()).collect();
        anyhow::anyhow!("there is no scope {unknown:?}; use one of {}", known.join(", "))
    })
}

fn from_now(context: &CommandContext, flag: &str, text: &str) -> anyhow::Result<Timestamp> {
    let time = settings::duration(text)
        .with_context(|| format!("{flag} must be a duration such as 90d or 12h, not {text:?}"))?;
    let end = context.now.checked_add(time);
    // The precision of the store.
    end.and_then(|end| Timestamp::from_millisecond(end.as_millisecond()))
        .with_context(|| format!("{flag} is too long"))
}

fn report(
    context: &CommandContext,
    kind: CredentialKind,
    addition: AddCredentialOutcome,
    secret: String,
) -> anyhow::Result<()> {
    let id = match addition {
        AddCredentialOutcome::Added(id) => id,
        AddCredentialOutcome::SecretTaken => bail!("this {} is already in use", kind.as_str()),
        AddCredentialOutcome::NotFound => bail!("the account no longer exists"),
    };
    table::print_one(context.json, &[("id", id.0.into()), (kind.as_str(), secret.into())]);
    if !context.json {
        table::print_line(&format!("\nThe {} is shown only once.", kind.as_str()));
    }
    Ok(())
}

fn report_rotation(
    context: &CommandContext,
    old: &Credential,
    rotation: RotateCredentialOutcome,
    secret: String,
) -> anyhow::Result<()> {
    let (kind, old_id) = (old.kind.as_str(), old.id);
    let create = || {
        let scopes = match old.kind {
            CredentialKind::Key => String::new(),
            CredentialKind::Token => format!(" --scopes {}", old.scopes),
        };
        format!("create a new one with `galley {kind} create {}{scopes}`", old.account)
    };
    let (id, expires_at, old_ends_at) = match rotation {
        RotateCredentialOutcome::Rotated { id, expires_at, old_ends_at } => {
            (id, expires_at, old_ends_at)
        }
        RotateCredentialOutcome::Expired(at) => {
            bail!("the {kind} {old_id} expired at {at:.3} and cannot be rotated; {}", create())
        }
        RotateCredentialOutcome::Revoked(at) => {
            bail!("the {kind} {old_id} was revoked at {at:.3} and cannot be rotated; {}", create())
        }
        RotateCredentialOutcome::SecretTaken => bail!("this {kind} is already in use"),
        RotateCredentialOutcome::NotFound => bail!("the {kind} {old_id} no longer exists"),
    };
    let members = [
        ("id", id.0.into()),
        (kind, secret.into()),
        ("expires_at", timestamp(expires_at)),
        ("old_id", old_id.0.into()),
        ("old_ends_at", timestamp(Some(old_ends_at))),
    ];
    table::print_one(context.json, &members);
    if !context.json {
        table::print_line(&format!("\nThe {kind} is shown only once."));
        table::print_line(&format!("The old {kind} {old_id} ends at {old_ends_at:.3}."));
        if let Some(end) = expires_at {
            table::print_line(&format!(
                "The new {kind} expires at {end:.3}; --expires-in chooses another time."
            ));
        }
    }
    Ok(())
}

async fn find(
    context: &CommandContext,
    kind: CredentialKind,
    id: u64,
) -> anyhow::Result<Credential> {
    for account in context.store.accounts().await? {
        let all = context.store.credentials(account.id).await?;
        if let Some(found) = all.into_iter().find(|it| it.id == CredentialId(id) && it.kind == kind)
        {
            return Ok(found);
        }
    }
    bail!("there is no {kind} {id}; run `galley {kind} list ACCOUNT`", kind = kind.as_str())
}

async fn list(context: &CommandContext, kind: CredentialKind, account: &str) -> anyhow::Result<()> {
    let account = context.account(account).await?;
    let all = context.store.credentials(account.id).await?.into_iter();
    let state = |it: &Credential| match (it.revoked_at, it.expires_at) {
        (Some(_), _) => "revoked",
        (None, Some(end)) if end <= context.now => "expired",
        _ => "good",
    };
    let rows = all.filter(|it| it.kind == kind).map(|it| {
        let scopes =
            if kind == CredentialKind::Token { it.scopes.to_string().into() } else { Value::Null };
        vec![
            it.id.0.into(),
            it.name.clone().into(),
            state(&it).into(),
            scopes,
            timestamp(Some(it.created_at)),
            timestamp(it.last_used_at),
            timestamp(it.expires_at),
            timestamp(it.revoked_at),
        ]
    });
    let columns =
        ["id", "name", "state", "scopes", "created_at", "last_used_at", "expires_at", "revoked_at"];
    table::print(context.json, &columns, rows.collect());
    Ok(())
}

/// A timestamp in a table, always with milliseconds, as on the API.
pub(super) fn timestamp(at: Option<Timestamp>) -> Value {
    at.map_or(Value::Null, |at| format!("{at:.3}").into())
}
