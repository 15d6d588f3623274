//! `galley webhook …`: manages webhook endpoints.

mod deliveries;
mod listen;
mod test_event;

use anyhow::{Context as _, bail};
use galley_domain::{
    document::Document,
    id::{AccountId, WebhookId},
    violation::Violations,
    webhook::{Change, Registration},
};
use galley_server::delivery::{EndpointError, NewSecret, secret_overlap_end};
use galley_store::{
    CreateWebhookOutcome, MAX_WEBHOOKS, NewWebhook, RotateOutcome, Webhook, WebhookChange,
};
use serde_json::{Value, json};

use super::{CommandContext, credentials::timestamp, plain_secrets};
use crate::{
    arguments::{Endpoint, EndpointChange, EndpointSecrets, WebhookCommand},
    secrets::file,
    settings::WebhookSettings,
    table, terminal,
};

pub(super) use listen::listen;
pub(super) use test_event::test;

pub(super) async fn webhook(
    context: &CommandContext,
    settings: &WebhookSettings,
    command: WebhookCommand,
) -> anyhow::Result<()> {
    let switched =
        |disabled| WebhookChange { disabled: Some(disabled), ..WebhookChange::default() };
    match command {
        WebhookCommand::Add { account, url, events, format, secrets } => {
            let (verify_token, secret) = secrets.read()?;
            let account = context.account(&account).await?;
            let document = json!({
                "url": url, "format": format.as_str(), "verify_token": verify_token, "secret": secret,
            });
            let document = document.to_string();
            let read =
                Registration::read(&Document::parse(document.as_bytes())?, &account.rulebook);
            let request = read.map_err(|violations| refusal(&violations))?;
            let delivery = settings.context();
            let checked =
                delivery.check_endpoint(account.id, &url, request.verify_token.as_ref()).await;
            checked.map_err(with_hidden_cause)?;
            warn_of_undecryptable_secrets(context, settings, account.id, None).await?;
            let secret = delivery.new_secret(account.id, format, request.secret.as_ref());
            let new = NewWebhook {
                account: account.id,
                url,
                events,
                format,
                subscribed: account.is_app_callback(format),
                from_start: false,
                secret: secret.encrypted.clone(),
                by: context.author(),
            };
            match context.store.create_webhook(new).await? {
                CreateWebhookOutcome::Created(webhook) => {
                    print_with_secret(context, &webhook, &secret);
                    plain_secrets::warn_if_plain(&secret.encrypted);
                }
                CreateWebhookOutcome::Subscribed(id) => bail!(
                    "a faithful emulator account has one webhook of the format whatsapp, the callback \
                     of its app: change or remove the webhook {id}"
                ),
                CreateWebhookOutcome::TooMany => bail!(
                    "the account has {MAX_WEBHOOKS} webhooks, which is the maximum; delete one with \
                     `galley webhook remove`"
                ),
            }
        }
        WebhookCommand::List { account } => list(context, &account).await?,
        WebhookCommand::Show(endpoint) => {
            let (account, id) = endpoint.ids(context).await?;
            print(
                context,
                &context.store.webhook(account, id).await?.with_context(|| no_webhook(id))?,
            );
        }
        WebhookCommand::Change { endpoint, what } => {
            let EndpointChange { url, verify_token, verify_token_file, events, all_events } = what;
            let verify_token = file::given(verify_token, verify_token_file.as_deref())?;
            if url.is_some() || verify_token.is_some() {
                admit(context, settings, &endpoint, url.as_deref(), verify_token).await?;
            }
            let events = (all_events || !events.is_empty()).then_some(events);
            change(context, &endpoint, WebhookChange { url, events, disabled: None }).await?;
        }
        WebhookCommand::Enable(endpoint) => change(context, &endpoint, switched(false)).await?,
        WebhookCommand::Disable(endpoint) => change(context, &endpoint, switched(true)).await?,
        WebhookCommand::Remove(endpoint) => {
            let (account, id) = endpoint.ids(context).await?;
            if !context.store.delete_webhook(account, id, context.author()).await? {
                bail!(no_webhook(id));
            }
            let members = [("id", id.to_string().into()), ("state", "removed".into())];
            table::print_one(context.json, &members);
        }
        WebhookCommand::Rotate { endpoint, force } => {
            rotate(context, settings, &endpoint, force).await?;
        }
        WebhookCommand::Deliveries { endpoint, status, before, limit } => {
            deliveries::list(context, &endpoint, status, before, limit).await?;
        }
        WebhookCommand::Replay { endpoint, what } => {
            deliveries::replay(context, &endpoint, what).await?;
        }
        WebhookCommand::Listen(_) | WebhookCommand::Test(_) => {}
    }
    Ok(())
}

impl EndpointSecrets {
    /// The verify token and the app secret, if they are given.
    fn read(self) -> anyhow::Result<(Option<String>, Option<String>)> {
        let Self { verify_token, verify_token_file, secret, secret_file } = self;
        let flags = ["--verify-token-file", "--secret-file"];
        file::require_one_from_standard_input([&verify_token_file, &secret_file], flags)?;
        let verify_token = file::given(verify_token, verify_token_file.as_deref())?;
        Ok((verify_token, file::given(secret, secret_file.as_deref())?))
    }
}

impl Endpoint {
    /// The ids of the account and the webhook. Does not check that the webhook exists.
    async fn ids(&self, context: &CommandContext) -> anyhow::Result<(AccountId, WebhookId)> {
        let account = context.account(&self.account).await?.id;
        let id = self.id.parse().ok().with_context(|| no_webhook(&self.id))?;
        Ok((account, id))
    }
}

fn no_webhook(id: impl std::fmt::Display) -> String {
    format!("the account has no webhook {id}; run `galley webhook list ACCOUNT`")
}

/// Applies the checks of the API to a new URL, or to a verify token for the current one.
async fn admit(
    context: &CommandContext,
    settings: &WebhookSettings,
    endpoint: &Endpoint,
    url: Option<&str>,
    verify_token: Option<String>,
) -> anyhow::Result<()> {
    let (account, id) = endpoint.ids(context).await?;
    let webhook = context.store.webhook(account, id).await?.with_context(|| no_webhook(id))?;
    let document = json!({"url": url, "verify_token": verify_token}).to_string();
    let read = Change::read(&Document::parse(document.as_bytes())?, webhook.format);
    let request = read.map_err(|violations| refusal(&violations))?;
    settings
        .context()
        .check_endpoint(account, url.unwrap_or(&webhook.url), request.verify_token.as_ref())
        .await
        .map_err(with_hidden_cause)
}

/// The error with the cause that the API hides from clients.
fn with_hidden_cause(error: EndpointError) -> anyhow::Error {
    match error.hidden_cause() {
        Some(cause) => anyhow::anyhow!("{error} Here, {cause}."),
        None => error.into(),
    }
}

/// Violations as an error that names the command-line arguments.
fn refusal(violations: &Violations) -> anyhow::Error {
    let messages = violations.listed().iter().map(|it| {
        let what = match &*it.pointer {
            "/url" => "the URL",
            "/verify_token" => "--verify-token",
            "/secret" => "--secret",
            _ => "--format",
        };
        format!("{what} {}", it.message)
    });
    anyhow::anyhow!(messages.collect::<Vec<_>>().join(", and "))
}

/// Warns if another endpoint has a secret that this `GALLEY_SECRET_KEY` does not decrypt.
async fn warn_of_undecryptable_secrets(
    context: &CommandContext,
    settings: &WebhookSettings,
    account: AccountId,
    except: Option<WebhookId>,
) -> anyhow::Result<()> {
    let all = context.store.webhooks(account).await?;
    let cannot_decrypt = |it: &&Webhook| {
        Some(it.id) != except && settings.keyring.decrypt(account.get(), &it.secret).is_err()
    };
    if let Some(webhook) = all.iter().find(cannot_decrypt) {
        terminal::print_warning(format_args!(
            "the secret of webhook {} cannot be opened with the current GALLEY_SECRET_KEY: set the \
             same key as the service",
            webhook.id
        ));
    }
    Ok(())
}

async fn change(
    context: &CommandContext,
    endpoint: &Endpoint,
    what: WebhookChange,
) -> anyhow::Result<()> {
    let (account, id) = endpoint.ids(context).await?;
    let now = context.store.change_webhook(account, id, what, context.author()).await?;
    print(context, &now.with_context(|| no_webhook(id))?);
    Ok(())
}

async fn rotate(
    context: &CommandContext,
    settings: &WebhookSettings,
    endpoint: &Endpoint,
    force: bool,
) -> anyhow::Result<()> {
    let (account, id) = endpoint.ids(context).await?;
    let webhook = context.store.webhook(account, id).await?.with_context(|| no_webhook(id))?;
    warn_of_undecryptable_secrets(context, settings, account, Some(id)).await?;
    let secret = settings.context().new_secret(account, webhook.format, None);
    let until = secret_overlap_end(webhook.format, context.now);
    let encrypted = secret.encrypted.clone();
    match context
        .store
        .rotate_webhook(account, id, encrypted, until, force, context.author())
        .await?
    {
        RotateOutcome::Done(webhook) => {
            print_with_secret(context, &webhook, &secret);
            plain_secrets::warn_if_plain(&secret.encrypted);
        }
        RotateOutcome::InProgress(until) => bail!(
            "the secret was rotated recently, and the former one is valid until {until:.3}; use --force to \
             end it now"
        ),
        RotateOutcome::NoWebhook => bail!(no_webhook(id)),
    }
    Ok(())
}

async fn list(context: &CommandContext, account: &str) -> anyhow::Result<()> {
    let account = context.account(account).await?;
    let rows = context.store.webhooks(account.id).await?.into_iter().map(|it| {
        vec![
            it.id.to_string().into(),
            it.url.clone().into(),
            types(context, &it),
            it.format.as_str().into(),
            state(&it).into(),
            it.behind.into(),
            timestamp(Some(it.created_at)),
        ]
    });
    let columns = ["id", "url", "events", "format", "state", "behind", "created_at"];
    table::print(context.json, &columns, rows.collect());
    Ok(())
}

fn print(context: &CommandContext, webhook: &Webhook) {
    table::print_one(context.json, &members(context, webhook));
}

fn print_with_secret(context: &CommandContext, webhook: &Webhook, secret: &NewSecret) {
    let mut members = members(context, webhook);
    members.push(("secret", secret.shown.clone().into()));
    table::print_one(context.json, &members);
    if !context.json {
        table::print_line("\nThe secret is shown only once.");
    }
}

/// The members, named as in the API's response.
fn members(context: &CommandContext, webhook: &Webhook) -> Vec<(&'static str, Value)> {
    let (disabled_at, reason) = webhook.disabled.unzip();
    let former = webhook.former_secret.as_ref().map(|(_, until)| *until);
    vec![
        ("id", webhook.id.to_string().into()),
        ("url", webhook.url.clone().into()),
        ("events", types(context, webhook)),
        ("format", webhook.format.as_str().into()),
        ("state", state(webhook).into()),
        ("behind", webhook.behind.into()),
        ("former_secret_until", timestamp(former.filter(|until| *until > context.now))),
        ("failing_since", timestamp(webhook.failing_since)),
        ("resting_until", timestamp(webhook.resting_until)),
        ("disabled_at", timestamp(disabled_at)),
        ("disabled_because", reason.map_or(Value::Null, |it| it.as_str().into())),
        ("created_at", timestamp(Some(webhook.created_at))),
        ("updated_at", timestamp(Some(webhook.updated_at))),
    ]
}

/// The event types of an endpoint; `all` for people if none are chosen.
fn types(context: &CommandContext, webhook: &Webhook) -> Value {
    match (&*webhook.events, context.json) {
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
