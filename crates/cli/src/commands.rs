//! The commands and what they share: settings, the store, looking up an account.

mod accounts;
mod audit;
mod backup;
mod clock;
mod completions;
mod config;
mod console;
mod convert;
mod credentials;
mod doctor;
mod emulator;
mod events;
mod first_run;
mod lint;
mod migrate;
mod plain_secrets;
mod progress;
mod restore;
mod serve;
mod templates;
mod upstream;
mod webhooks;

use std::{io::Write as _, path::PathBuf, pin::Pin, process::ExitCode, sync::Arc, time::Duration};

use anyhow::{Context as _, bail};
use galley_server::{Clock as _, LogFormat, LogWriter};
use galley_store::{
    Account, Actor, Author, CredentialKind, SchemaPolicy, SqliteStore, Store, StoredTemplate,
    TemplateChange,
    postgres::{PostgresOptions, PostgresStore},
    sqlite::SqliteOptions,
};
use jiff::Timestamp;
use tokio::signal::unix::{SignalKind, signal};

use crate::{
    arguments::{AccountCommand, Arguments, Command, Common, WebhookCommand},
    clock::SystemClock,
    diagnostics,
    settings::{RawSettings, Settings, StoreUrl},
    terminal,
};

/// How long the exit of the service waits for the reader of its log.
const LOG_FLUSH_TIMEOUT: Duration = Duration::from_secs(1);

/// Runs the command.
pub(crate) fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    let Arguments { command, common } = arguments;
    // These commands need neither settings nor a store.
    if let Command::Lint(options) = &command {
        return Ok(lint::run(options, common.json));
    }
    if let Command::Convert(options) = &command {
        return Ok(convert::run(options, common.json));
    }
    if let Command::Completions { shell } = command {
        completions::print(shell);
        return Ok(ExitCode::SUCCESS);
    }
    if let Command::Config { default: true } = command {
        config::print_defaults();
        return Ok(ExitCode::SUCCESS);
    }
    // Settings are UTF-8; ignore other variables.
    let variables = std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
    if let Command::Emulator(options) = &command {
        return emulator::run(options, common, variables);
    }
    let flags = match &command {
        Command::Serve { listen, log_format, .. } => {
            vec![("listen", listen.clone()), ("log_format", log_format.clone())]
        }
        _ => Vec::new(),
    };
    let raw = RawSettings::gather(&common, &flags, variables)?;
    if let Command::Serve { new_store, .. } = command {
        return serve_with_log(&raw, new_store);
    }
    print_warnings(&raw);
    if matches!(command, Command::Config { .. }) {
        config::show(&raw, common.json);
        raw.settings()?;
        return Ok(ExitCode::SUCCESS);
    }
    let settings = raw.settings()?;
    run_async(async {
        match command {
            Command::Doctor { accept_clock, count_bytes } => {
                doctor::check(&settings, accept_clock, count_bytes, common.json).await
            }
            Command::Backup(options) => backup::backup(&settings, &options, common.json).await,
            Command::Restore(options) => restore::restore(&settings, &options, common.json),
            Command::Migrate(options) => migrate::migrate(&settings, &options, common.json).await,
            Command::Webhook(WebhookCommand::Listen(options)) => {
                webhooks::listen(options, &raw, common.json).await?;
                Ok(ExitCode::SUCCESS)
            }
            Command::Upstream(command) => upstream::run(&settings, &common, command).await,
            other => {
                let context = CommandContext::open(&settings, &common, &other).await?;
                match other {
                    Command::Account(command) => accounts::account(&context, command).await?,
                    Command::Console { account, scopes, name } => {
                        let scopes = scopes.as_deref();
                        console::link(&context, &settings, &account, scopes, name).await?;
                    }
                    Command::Clock(options) => clock::clock(&context, &options).await?,
                    Command::Phone(command) => accounts::phone(&context, command).await?,
                    Command::Template(command) => templates::template(&context, command).await?,
                    Command::Review(command) => templates::review(&context, command).await?,
                    Command::Events(options) => events::events(&context, options).await?,
                    Command::Audit(options) => audit::audit(&context, &options).await?,
                    Command::Webhook(WebhookCommand::Test(endpoint)) => {
                        return webhooks::test(&context, &settings.webhooks, &endpoint).await;
                    }
                    Command::Webhook(command) => {
                        webhooks::webhook(&context, &settings.webhooks, command).await?;
                    }
                    Command::Key(command) => {
                        credentials::run(&context, CredentialKind::Key, command).await?;
                    }
                    Command::Token(command) => {
                        credentials::run(&context, CredentialKind::Token, command).await?;
                    }
                    _ => {}
                }
                Ok(ExitCode::SUCCESS)
            }
        }
    })
}

fn print_warnings(raw: &RawSettings) {
    for warning in raw.warnings() {
        terminal::print_warning(warning);
    }
}

/// Runs the service. Its messages, the last one included, go through the log writer.
fn serve_with_log(raw: &RawSettings, new_store: bool) -> anyhow::Result<ExitCode> {
    let settings = raw.settings().inspect_err(|_| print_warnings(raw))?;
    run_logged(raw, &settings, |log| serve::serve(&settings, raw, new_store, log))
}

/// Runs a command whose messages go through the log writer.
fn run_logged<F>(
    raw: &RawSettings,
    settings: &Settings,
    command: impl FnOnce(LogWriter) -> F,
) -> anyhow::Result<ExitCode>
where
    F: Future<Output = anyhow::Result<ExitCode>>,
{
    let mut log = diagnostics::start(settings)?;
    for warning in raw.warnings() {
        tracing::warn!("{warning}");
    }
    let outcome = run_async(command(log.clone()));
    let code = outcome.unwrap_or_else(|error| {
        match settings.log_format {
            LogFormat::Human => {
                let _ = log.write_all(format!("galley: {error:#}\n").as_bytes());
            }
            LogFormat::Json => tracing::error!("{error:#}"),
        }
        ExitCode::FAILURE
    });
    log.flush(LOG_FLUSH_TIMEOUT);
    Ok(code)
}

/// Runs a command to its end on a runtime of its own. The command is boxed, because each function of
/// the runtime that knows its type would be compiled with another copy of all commands.
fn run_async(command: impl Future<Output = anyhow::Result<ExitCode>>) -> anyhow::Result<ExitCode> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let command: Pin<Box<dyn Future<Output = _>>> = Box::pin(command);
    let outcome = runtime.block_on(command);
    // Every acknowledged write is on disk; do not wait long for the rest.
    runtime.shutdown_timeout(Duration::from_millis(1_500));
    outcome
}

/// What commands that work on a store need.
struct CommandContext {
    store: Arc<Store>,
    now: Timestamp,
    json: bool,
}

impl CommandContext {
    /// Only `account create` creates a store, so that a mistyped path does not become an empty one.
    async fn open(settings: &Settings, common: &Common, command: &Command) -> anyhow::Result<Self> {
        if !matches!(command, Command::Account(AccountCommand::Create { .. })) {
            return Self::existing(settings, common).await;
        }
        let schema_policy = SchemaPolicy::RefuseUnlessEmpty;
        let created = file_to_create(settings);
        let options = SqliteOptions { schema_policy, ..SqliteOptions::default() };
        let store = open(settings, options).await?;
        if let Some(file) = created {
            eprintln!("created the store {}", file.display());
        }
        Ok(Self::new(store, common))
    }

    /// Opens a store that exists.
    async fn existing(settings: &Settings, common: &Common) -> anyhow::Result<Self> {
        Ok(Self::new(open_existing(settings, SchemaPolicy::Refuse).await?, common))
    }

    fn new(store: Arc<Store>, common: &Common) -> Self {
        Self { store, now: SystemClock::new().now(), json: common.json }
    }

    /// The operator as the author of a change.
    fn author(&self) -> Author {
        Author::operator(self.now)
    }

    /// A change of a template by the operator, if the template is still as it was read.
    fn change(&self, account: &Account, stored: &StoredTemplate) -> TemplateChange {
        TemplateChange {
            account: account.id,
            id: stored.id,
            expected: Some(vec![stored.revision]),
            version: Some(stored.state.version),
            review: account.effective_review(),
            actor: Actor::Operator,
            trace: None,
            at: self.now,
        }
    }

    /// Finds an account by id, then by name.
    async fn account(&self, wanted: &str) -> anyhow::Result<Account> {
        let accounts = self.store.accounts().await?;
        let found = accounts.iter().find(|it| it.id.to_string() == wanted);
        let found = found.or_else(|| accounts.iter().find(|it| it.name == wanted)).cloned();
        found.with_context(|| format!("there is no account {wanted:?}; run `galley account list`"))
    }
}

/// Opens the store, and creates it if it does not exist. The options of a SQLite store include those
/// that both databases have.
async fn open(settings: &Settings, options: SqliteOptions) -> anyhow::Result<Arc<Store>> {
    let store = match &settings.store {
        StoreUrl::Sqlite(path) => {
            let options = SqliteOptions { min_free_bytes: settings.min_free_bytes, ..options };
            SqliteStore::open(path, &options).with_context(|| cannot_open(settings))?.into()
        }
        StoreUrl::Postgres(address) => {
            let SqliteOptions { queue_capacity, schema_policy, .. } = options;
            let options =
                PostgresOptions { queue_capacity, schema_policy, ..PostgresOptions::default() };
            let store = PostgresStore::open(address, &options).await;
            store.with_context(|| cannot_open(settings))?.into()
        }
    };
    Ok(Arc::new(store))
}

fn cannot_open(settings: &Settings) -> String {
    format!("the store {} cannot be opened", settings.store)
}

/// Whether the store file exists; a database counts as existing, and so does a file in a directory
/// that this process may not search: opening it says so.
fn exists(settings: &Settings) -> bool {
    match &settings.store {
        StoreUrl::Sqlite(path) => path.try_exists().unwrap_or(true),
        StoreUrl::Postgres(_) => true,
    }
}

/// The absolute path of the store file that opening the store creates.
fn file_to_create(settings: &Settings) -> Option<PathBuf> {
    let StoreUrl::Sqlite(path) = &settings.store else { return None };
    let is_store = path.metadata().is_ok_and(|file| file.len() > 0);
    std::path::absolute(path).ok().filter(|_| !is_store)
}

/// The files of the store that other users can read or change.
fn exposed_files(settings: &Settings) -> Vec<String> {
    match &settings.store {
        StoreUrl::Sqlite(path) => galley_store::sqlite::exposed_files(path),
        StoreUrl::Postgres(_) => Vec::new(),
    }
}

/// Opens an existing store. Only `serve` migrates an older schema.
async fn open_existing(
    settings: &Settings,
    schema_policy: SchemaPolicy,
) -> anyhow::Result<Arc<Store>> {
    if !exists(settings) {
        bail!("there is no store {}; check --store", settings.store);
    }
    open(settings, SqliteOptions { schema_policy, ..SqliteOptions::default() }).await
}

/// Completes on SIGTERM or SIGINT.
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
