//! `galley emulator`: a throw-away service with one emulator account.

mod callback;
mod environment;
mod seed;
mod temporary;

use std::{net::SocketAddr, process::ExitCode, sync::Arc};

use anyhow::{Context as _, bail};
use galley_domain::{
    account::prefix, emulator::EmulatorKind, id::AccountId, rulebook::WHATSAPP, template::Review,
};
use galley_server::{Clock as _, LogWriter, delivery::Keyring};
use galley_store::{Author, CreateAccountOutcome, NewAccount, Store};
use jiff::Timestamp;
use serde_json::json;

use self::{callback::Callback, environment::ChosenAccount, temporary::TemporaryDirectory};
use super::{accounts, credentials::first_pair, run_logged, serve, serve::OpenService};
use crate::{
    arguments::{Common, EmulatorOptions},
    clock::SystemClock,
    secrets,
    settings::{RawSettings, Settings},
    table,
};

/// The name of the account.
const ACCOUNT: &str = "emulator";

/// Runs the service until a signal stops it, and removes its store.
pub(super) fn run(
    options: &EmulatorOptions,
    common: Common,
    variables: impl Iterator<Item = (String, String)>,
) -> anyhow::Result<ExitCode> {
    if common.store.is_some() {
        bail!(
            "`galley emulator` has a temporary store. For a lasting one, create an account with `galley account create NAME --rulebook whatsapp --emulator`, and start `galley serve --set emulator=true`"
        );
    }
    let directory = TemporaryDirectory::create()?;
    let json = common.json;
    let common = Common { store: Some(directory.store_url()), ..common };
    let on = || Some("true".to_owned());
    let flags = [
        ("listen", Some(options.listen.clone())),
        ("emulator", on()),
        // It is a tool for one machine or network: the receiver is usually beside it.
        ("webhooks_allow_private", on()),
        ("webhooks_deliver", on()),
        // No load balancer has to notice the end.
        ("drain_delay", Some("0s".to_owned())),
        // A real service beside it may have that address.
        ("health_listen", Some(String::new())),
    ];
    let raw = RawSettings::gather_for_emulator(&common, &flags, variables)?;
    let mut settings = raw.settings()?;
    let chosen = ChosenAccount::read(&raw)?;
    // Nothing outlives the process, so a key of its own is enough to encrypt the app secret.
    settings.webhooks.keyring = Keyring::new(Some(&secrets::random(prefix::TOKEN)?))?;
    if let Some(url) = &options.callback {
        settings.webhooks.context().guard.check_url(url).context("--callback")?;
    }
    run_logged(&raw, &settings, |log| serve(options, &settings, &raw, chosen, log, json))
}

async fn serve(
    options: &EmulatorOptions,
    settings: &Settings,
    raw: &RawSettings,
    chosen: ChosenAccount,
    log: LogWriter,
    json: bool,
) -> anyhow::Result<ExitCode> {
    let stop = serve::stop_signal()?;
    let service = OpenService::open(settings, raw, false).await?;
    let store = &service.store;
    let now = SystemClock::new().now();
    let kind = EmulatorKind { faithful: options.faithful };
    let app_secret = chosen.app_secret.clone();
    let account = Emulated::create(store, chosen, kind, now).await?;
    if let Some(directory) = &options.seed {
        let count = seed::create(store, account.id, directory, now).await?;
        tracing::info!("created {count} templates from {}", directory.display());
    }
    // After the seeds, which count towards no quota.
    if let Some(limits) = accounts::emulator_limits(kind).filter(|_| !options.no_limits) {
        store.set_account_limits(account.id, Some(limits), Author::operator(now)).await?;
    }
    let context = settings.webhooks.context();
    let callback =
        Callback::prepare(Arc::clone(store), context, account.id, options, app_secret).await?;
    let url = url(settings, service.address);
    print_ready(json, &account, &url, &callback.app_secret, now)?;
    tokio::spawn(callback.register());
    service.run(settings, log, stop).await
}

/// The account of the service, with its credentials.
struct Emulated {
    id: AccountId,
    phone: String,
    key: String,
    token: String,
    app_id: String,
}

impl Emulated {
    /// Creates the account without limits. What the environment does not choose is random.
    async fn create(
        store: &Store,
        chosen: ChosenAccount,
        kind: EmulatorKind,
        now: Timestamp,
    ) -> anyhow::Result<Self> {
        let key = chosen.key.map_or_else(|| secrets::random(prefix::KEY), Ok)?;
        let token = chosen.token.map_or_else(|| secrets::random(prefix::TOKEN), Ok)?;
        let phone = chosen.phone.map_or_else(secrets::phone, Ok)?;
        let mut new = NewAccount {
            id: chosen.waba_id,
            name: ACCOUNT.to_owned(),
            rulebook: WHATSAPP.name,
            review: Review::Scripted,
            emulator: None,
            limits: None,
            phones: vec![phone.clone()],
            credentials: first_pair(&key, &token),
            only_if_first: true,
            by: Author::operator(now),
        };
        accounts::become_emulator(&mut new, kind);
        let CreateAccountOutcome::Created(id, _) = store.create_account(new).await? else {
            bail!("the temporary store already has an account")
        };
        Ok(Self { id, phone, key, token, app_id: secrets::app_id()? })
    }
}

/// Where clients reach the service.
fn url(settings: &Settings, mut address: SocketAddr) -> String {
    if !settings.public_url.is_empty() {
        return settings.public_url.trim_end_matches('/').to_owned();
    }
    if address.ip().is_unspecified() {
        let local = if address.is_ipv4() { "127.0.0.1" } else { "::1" };
        address.set_ip(local.parse().unwrap_or(address.ip()));
    }
    format!("http://{address}")
}

/// Prints what a client needs: one line of JSON, or the variables that well-known clients read.
fn print_ready(
    json: bool,
    account: &Emulated,
    url: &str,
    app_secret: &str,
    now: Timestamp,
) -> anyhow::Result<()> {
    let Emulated { id, phone, key, token, app_id } = account;
    let text = if json {
        let ready = json!({
            "url": url, "account_id": id.to_string(), "waba_id": id.to_string(),
            "phone_number_id": phone, "key": key, "token": token, "app_id": app_id,
            "app_secret": app_secret, "now": format!("{now:.3}"),
        });
        ready.to_string()
    } else {
        let id = id.to_string();
        let base = format!("{url}/api/v1.0/{phone}/{key}");
        let variables = [
            ("WHATSAPP_API_URL", url),
            ("WHATSAPP_TOKEN", token),
            ("WHATSAPP_ACCESS_TOKEN", token),
            ("WHATSAPP_PHONE_NUMBER_ID", phone),
            ("WHATSAPP_BUSINESS_ACCOUNT_ID", &id),
            ("WHATSAPP_APP_ID", app_id),
            ("WHATSAPP_APP_SECRET", app_secret),
            ("CLOUD_API_ACCESS_TOKEN", token),
            ("WA_PHONE_NUMBER_ID", phone),
            ("WA_BUSINESS_ACCOUNT_ID", &id),
            ("GALLEY_BASE_URL", &base),
        ];
        variables.map(|(name, value)| format!("{name}={value}")).join("\n")
    };
    table::try_print_line(&text).context("the credentials cannot be printed to standard output")
}
