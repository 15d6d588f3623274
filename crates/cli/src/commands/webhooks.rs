//! `galley webhook …`: endpoints that events are delivered to, and their deliveries.

mod deliveries;
mod listen;

use anyhow::{Context as _, bail};
use galley_domain::{
    document::Document,
    id::{AccountId, WebhookId},
    violation::Violations,
    webhook::{Change, Registration},
};
use galley_server::delivery::{NewSecret, both_secrets_until};
use galley_store::{
    CreateWebhookOutcome, MAX_WEBHOOKS, NewWebhook, Rotation, Webhook, WebhookChange,
};
use serde_json::{Value, json};

use super::{Desk, credentials::moment};
use crate::{
    arguments::{Endpoint, EndpointChange, WebhookCommand},
    settings::WebhookSettings,
    table,
};

pub(super) use listen::listen;

pub(super) async fn webhook(
    desk: &Desk,
    settings: &WebhookSettings,
    command: WebhookCommand,
) -> anyhow::Result<()> {
    let switched =
        |disabled| WebhookChange { disabled: Some(disabled), ..WebhookChange::default() };
    match command {
        WebhookCommand::Add { account, url, events, format, verify_token, secret } => {
            let account = desk.account(&account).await?;
            let document = json!({
                "url": url, "format": format.as_str(), "verify_token": verify_token, "secret": secret,
            });
            let document = document.to_string();
            let read =
                Registration::read(&Document::parse(document.as_bytes())?, &account.rulebook);
            let asked = read.map_err(|violations| refusal(&violations))?;
            let setup = settings.setup();
            setup.admit(&url, asked.verify_token.as_ref()).await?;
            warn_of_other_keys(desk, settings, account.id, None).await?;
            let secret = setup.new_secret(account.id, format, asked.secret.as_ref());
            let new = NewWebhook {
                account: account.id,
                url,
                events,
                format,
                subscribed: false,
                secret: secret.sealed.clone(),
                at: desk.now,
            };
            match desk.store.create_webhook(new).await? {
                CreateWebhookOutcome::Created(webhook) => {
                    print_with_secret(desk, &webhook, &secret)
                }
                _ => bail!(
                    "the account has {MAX_WEBHOOKS} webhooks, and that is the most; `galley \
                     webhook remove` makes room"
                ),
            }
        }
        WebhookCommand::List { account } => list(desk, &account).await?,
        WebhookCommand::Show(endpoint) => {
            let (account, id) = endpoint.find(desk).await?;
            print(desk, &desk.store.webhook(account, id).await?.with_context(|| gone(id))?);
        }
        WebhookCommand::Change { endpoint, what } => {
            let EndpointChange { url, verify_token, events, all_events } = what;
            if url.is_some() || verify_token.is_some() {
                admit(desk, settings, &endpoint, url.as_deref(), verify_token).await?;
            }
            let events = (all_events || !events.is_empty()).then_some(events);
            change(desk, &endpoint, WebhookChange { url, events, disabled: None }).await?;
        }
        WebhookCommand::Enable(endpoint) => change(desk, &endpoint, switched(false)).await?,
        WebhookCommand::Disable(endpoint) => change(desk, &endpoint, switched(true)).await?,
        WebhookCommand::Remove(endpoint) => {
            let (account, id) = endpoint.find(desk).await?;
            if !desk.store.delete_webhook(account, id).await? {
                bail!(gone(id));
            }
            let members = [("id", id.to_string().into()), ("state", "removed".into())];
            table::print_one(desk.json, &members);
        }
        WebhookCommand::Rotate { endpoint, force } => {
            rotate(desk, settings, &endpoint, force).await?;
        }
        WebhookCommand::Deliveries { endpoint, status, before, limit } => {
            deliveries::list(desk, &endpoint, status, before, limit).await?;
        }
        WebhookCommand::Replay { endpoint, what } => {
            deliveries::replay(desk, &endpoint, what).await?;
        }
        WebhookCommand::Listen(_) => {}
    }
    Ok(())
}

impl Endpoint {
    /// The account and the webhook that are meant. Whether there is such a webhook is not known
    /// yet.
    async fn find(&self, desk: &Desk) -> anyhow::Result<(AccountId, WebhookId)> {
        let account = desk.account(&self.account).await?.id;
        let id = self.id.parse().ok().with_context(|| gone(&self.id))?;
        Ok((account, id))
    }
}

fn gone(id: impl std::fmt::Display) -> String {
    format!("the account has no webhook {id}; `galley webhook list ACCOUNT` shows them")
}

/// Refuses another address, or a token for the present one, where the API would.
async fn admit(
    desk: &Desk,
    settings: &WebhookSettings,
    endpoint: &Endpoint,
    url: Option<&str>,
    verify_token: Option<String>,
) -> anyhow::Result<()> {
    let (account, id) = endpoint.find(desk).await?;
    let webhook = desk.store.webhook(account, id).await?.with_context(|| gone(id))?;
    let document = json!({"url": url, "verify_token": verify_token}).to_string();
    let read = Change::read(&Document::parse(document.as_bytes())?, webhook.format);
    let asked = read.map_err(|violations| refusal(&violations))?;
    settings.setup().admit(url.unwrap_or(&webhook.url), asked.verify_token.as_ref()).await?;
    Ok(())
}

/// What is wrong, in the words of the command line.
fn refusal(violations: &Violations) -> anyhow::Error {
    let told = violations.listed().iter().map(|it| {
        let what = match &*it.pointer {
            "/url" => "the URL",
            "/verify_token" => "--verify-token",
            "/secret" => "--secret",
            _ => "--format",
        };
        format!("{what} {}", it.message)
    });
    anyhow::anyhow!(told.collect::<Vec<_>>().join(", and "))
}

/// Secrets that were sealed with another key can be no more than warned of.
async fn warn_of_other_keys(
    desk: &Desk,
    settings: &WebhookSettings,
    account: AccountId,
    besides: Option<WebhookId>,
) -> anyhow::Result<()> {
    let all = desk.store.webhooks(account).await?;
    let foreign = |it: &&Webhook| {
        Some(it.id) != besides && settings.keyring.open(account.get(), &it.secret).is_err()
    };
    if let Some(sealed) = all.iter().find(foreign) {
        eprintln!(
            "warning: the secret of webhook {} does not open with the GALLEY_SECRET_KEY that is \
             set here, or with none: set the one that the service is started with",
            sealed.id
        );
    }
    Ok(())
}

async fn change(desk: &Desk, endpoint: &Endpoint, what: WebhookChange) -> anyhow::Result<()> {
    let (account, id) = endpoint.find(desk).await?;
    let now = desk.store.change_webhook(account, id, what, desk.now).await?;
    print(desk, &now.with_context(|| gone(id))?);
    Ok(())
}

async fn rotate(
    desk: &Desk,
    settings: &WebhookSettings,
    endpoint: &Endpoint,
    force: bool,
) -> anyhow::Result<()> {
    let (account, id) = endpoint.find(desk).await?;
    let webhook = desk.store.webhook(account, id).await?.with_context(|| gone(id))?;
    warn_of_other_keys(desk, settings, account, Some(id)).await?;
    let secret = settings.setup().new_secret(account, webhook.format, None);
    let until = both_secrets_until(webhook.format, desk.now);
    let kept = secret.sealed.clone();
    match desk.store.rotate_webhook(account, id, kept, until, force, desk.now).await? {
        Rotation::Done(webhook) => print_with_secret(desk, &webhook, &secret),
        Rotation::Open(until) => bail!(
            "the secret was rotated a while ago, and the one before counts until {until}; --force \
             ends it now"
        ),
        Rotation::NoWebhook => bail!(gone(id)),
    }
    Ok(())
}

async fn list(desk: &Desk, account: &str) -> anyhow::Result<()> {
    let account = desk.account(account).await?;
    let rows = desk.store.webhooks(account.id).await?.into_iter().map(|it| {
        vec![
            it.id.to_string().into(),
            it.url.clone().into(),
            types(desk, &it),
            it.format.as_str().into(),
            state(&it).into(),
            it.behind.into(),
            it.created_at.to_string().into(),
        ]
    });
    let columns = ["id", "url", "events", "format", "state", "behind", "created_at"];
    table::print(desk.json, &columns, rows.collect());
    Ok(())
}

fn print(desk: &Desk, webhook: &Webhook) {
    table::print_one(desk.json, &members(desk, webhook));
}

fn print_with_secret(desk: &Desk, webhook: &Webhook, secret: &NewSecret) {
    let mut members = members(desk, webhook);
    members.push(("secret", secret.shown.clone().into()));
    table::print_one(desk.json, &members);
    if !desk.json {
        table::say("\nThe secret is shown this once.");
    }
}

/// Named like the members of the API's answer.
fn members(desk: &Desk, webhook: &Webhook) -> Vec<(&'static str, Value)> {
    let (disabled_at, because) = webhook.disabled.unzip();
    let former = webhook.former_secret.as_ref().map(|(_, until)| *until);
    vec![
        ("id", webhook.id.to_string().into()),
        ("url", webhook.url.clone().into()),
        ("events", types(desk, webhook)),
        ("format", webhook.format.as_str().into()),
        ("state", state(webhook).into()),
        ("behind", webhook.behind.into()),
        ("former_secret_until", moment(former.filter(|until| *until > desk.now))),
        ("failing_since", moment(webhook.failing_since)),
        ("resting_until", moment(webhook.resting_until)),
        ("disabled_at", moment(disabled_at)),
        ("disabled_because", because.map_or(Value::Null, |it| it.as_str().into())),
        ("created_at", moment(Some(webhook.created_at))),
        ("updated_at", moment(Some(webhook.updated_at))),
    ]
}

/// The chosen types; for people also a word for all of them.
fn types(desk: &Desk, webhook: &Webhook) -> Value {
    match (&*webhook.events, desk.json) {
        ([], true) => Value::Null,
        ([], false) => "all".into(),
        (some, _) => some.iter().map(|it| it.as_str()).collect(),
    }
}

fn state(webhook: &Webhook) -> &'static str {
    match (&webhook.disabled, webhook.failing_since) {
        (Some(_), _) => "disabled",
        (None, Some(_)) => "failing",
        (None, None) => "good",
    }
}
