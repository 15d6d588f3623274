//! The commands, and what they share: settings, the store, an account by its name.

mod accounts;
mod backup;
mod config;
mod convert;
mod credentials;
mod doctor;
mod events;
mod first_run;
mod lint;
mod migrate;
mod restore;
mod serve;
mod templates;
mod webhooks;

use std::{process::ExitCode, sync::Arc, time::Duration};

use anyhow::{Context as _, bail};
use galley_server::Clock as _;
use galley_store::{
    Account, CredentialKind, SqliteStore, Store,
    postgres::{PostgresOptions, PostgresStore},
    sqlite::{Acknowledge, SchemaPolicy, SqliteOptions},
};
use jiff::Timestamp;
use tokio::signal::unix::{SignalKind, signal};

use crate::{
    arguments::{AccountCommand, Arguments, Command, Common, WebhookCommand},
    clock::SystemClock,
    settings::{Settings, StoreUrl, Written},
};

/// Runs what was typed.
pub(crate) fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    let Arguments { command, common } = arguments;
    // Files are checked wherever they are, with neither settings nor a store.
    if let Command::Lint(options) = &command {
        return Ok(lint::run(options, common.json));
    }
    if let Command::Convert(options) = &command {
        return Ok(convert::run(options, common.json));
    }
    let flags = match &command {
        Command::Serve { listen, log_format } => {
            vec![("listen", listen.clone()), ("log_format", log_format.clone())]
        }
        _ => Vec::new(),
    };
    // What is not UTF-8 is no setting of ours.
    let variables = std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
    let written = Written::gather(&common, &flags, variables)?;
    if matches!(command, Command::Config) {
        config::show(&written, common.json);
        written.settings()?;
        return Ok(ExitCode::SUCCESS);
    }
    let settings = written.settings()?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let outcome = runtime.block_on(async {
        match command {
            Command::Serve { .. } => serve::serve(&settings, &written).await,
            Command::Doctor => doctor::check_integrity(&settings, common.json).await,
            Command::Backup { path } => backup::backup(&settings, &path, common.json).await,
            Command::Restore(options) => restore::restore(&settings, &options, common.json),
            Command::Migrate(options) => migrate::migrate(&settings, &options, common.json).await,
            Command::Config => Ok(ExitCode::SUCCESS),
            Command::Webhook(WebhookCommand::Listen(options)) => {
                webhooks::listen(options, &written, common.json).await?;
                Ok(ExitCode::SUCCESS)
            }
            other => {
                let desk = Desk::open(&settings, &common, &other).await?;
                match other {
                    Command::Account(command) => accounts::account(&desk, command).await?,
                    Command::Phone(command) => accounts::phone(&desk, command).await?,
                    Command::Template(command) => templates::template(&desk, command).await?,
                    Command::Review(command) => templates::review(&desk, command).await?,
                    Command::Events(options) => events::events(&desk, options).await?,
                    Command::Webhook(command) => {
                        webhooks::webhook(&desk, &settings.webhooks, command).await?;
                    }
                    Command::Key(command) => {
                        credentials::run(&desk, CredentialKind::Key, command).await?;
                    }
                    Command::Token(command) => {
                        credentials::run(&desk, CredentialKind::Token, command).await?;
                    }
                    _ => {}
                }
                Ok(ExitCode::SUCCESS)
            }
        }
    });
    // All that was acknowledged is on disk; what still hangs is not waited for long.
    runtime.shutdown_timeout(Duration::from_millis(1_500));
    outcome
}

/// What a command that looks after accounts works with.
struct Desk {
    store: Arc<dyn Store>,
    now: Timestamp,
    json: bool,
}

impl Desk {
    /// Only making an account makes a store: a mistyped path is not to become an empty one.
    async fn open(settings: &Settings, common: &Common, command: &Command) -> anyhow::Result<Self> {
        let store = match command {
            Command::Account(AccountCommand::Create { .. }) => {
                let SqliteOptions { queue, acknowledge, .. } = SqliteOptions::default();
                open(settings, queue, acknowledge, SchemaPolicy::RefusedUnlessEmpty).await?
            }
            _ => open_existing(settings, SchemaPolicy::Refused).await?,
        };
        Ok(Self { store, now: SystemClock::new().now(), json: common.json })
    }

    /// An account by its id or its name. An id is never taken for a name that looks like one.
    async fn account(&self, wanted: &str) -> anyhow::Result<Account> {
        let accounts = self.store.accounts().await?;
        let found = accounts.iter().find(|it| it.id.to_string() == wanted);
        let found = found.or_else(|| accounts.iter().find(|it| it.name == wanted)).cloned();
        found.with_context(|| {
            format!("there is no account {wanted:?}; `galley account list` shows them")
        })
    }
}

/// Opens the store, making it where there is none.
async fn open(
    settings: &Settings,
    queue: usize,
    acknowledge: Acknowledge,
    older_schema: SchemaPolicy,
) -> anyhow::Result<Arc<dyn Store>> {
    let store: Arc<dyn Store> = match &settings.store {
        StoreUrl::Sqlite(path) => {
            let options =
                SqliteOptions { queue, acknowledge, older_schema, ..SqliteOptions::default() };
            Arc::new(SqliteStore::open(path, &options).with_context(|| cannot_open(settings))?)
        }
        StoreUrl::Postgres(address) => {
            let options = PostgresOptions { queue, older_schema, ..PostgresOptions::default() };
            let store = PostgresStore::open(address, &options).await;
            Arc::new(store.with_context(|| cannot_open(settings))?)
        }
    };
    Ok(store)
}

fn cannot_open(settings: &Settings) -> String {
    format!("the store {} cannot be opened", settings.store)
}

/// Whether a file is there; a database always counts as there.
fn exists(settings: &Settings) -> bool {
    match &settings.store {
        StoreUrl::Sqlite(path) => path.exists(),
        StoreUrl::Postgres(_) => true,
    }
}

/// Opens a store that has to be there. Only the service itself brings an older one up to date.
async fn open_existing(
    settings: &Settings,
    older_schema: SchemaPolicy,
) -> anyhow::Result<Arc<dyn Store>> {
    if !exists(settings) {
        bail!("there is no store {}; --store names another", settings.store);
    }
    open(settings, SqliteOptions::default().queue, Acknowledge::AfterCommit, older_schema).await
}

/// Becomes ready when whoever started a command that goes on has had enough of it.
fn interrupted() -> anyhow::Result<impl Future<Output = ()>> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    Ok(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
    })
}
