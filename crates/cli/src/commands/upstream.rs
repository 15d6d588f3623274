//! `galley upstream …`: accounts that are connected to a provider.

mod actions;
mod connect;
mod import;
mod plan;
mod status;
mod sync;

use std::{process::ExitCode, sync::Arc, time::Duration};

use anyhow::{Context as _, bail};
use galley_domain::{
    rulebook::WHATSAPP,
    upstream::{RemoteId, RemoteTemplate, TemplateSource},
};
use galley_server::upstream::{Begun, Checked, Session, SweepPart, UpstreamContext};
use galley_store::{
    Account, ConnectionChange, DegradedReason, MirrorFilter, MirroredTemplate, StoredTemplate,
    UpstreamAction, UpstreamConnection,
};

use super::{CommandContext, credentials::timestamp, progress::ProgressLine, templates};
use crate::{
    arguments::{Common, Connected, ConnectedTemplate, TemplateFilter, UpstreamCommand},
    clock::SystemClock,
    settings::Settings,
    table, terminal,
};

/// Exit code of `plan`: the provider could not be asked.
const EXIT_NOT_ASKED: u8 = 2;

/// How often a command asks for a lease that another process has, and how long it waits between.
const LEASE_ATTEMPTS: u32 = 20;
const LEASE_PAUSE: Duration = Duration::from_millis(500);

/// The number of templates of the mirror that are read at a time.
const PAGE_SIZE: usize = 500;

pub(super) async fn run(
    settings: &Settings,
    common: &Common,
    command: UpstreamCommand,
) -> anyhow::Result<ExitCode> {
    let is_plan = matches!(command, UpstreamCommand::Plan(_));
    let outcome = match CommandContext::existing(settings, common).await {
        Ok(context) => UpstreamCommands { context, settings }.run(command).await,
        Err(error) => Err(error),
    };
    match outcome {
        // For a plan, 1 means that something differs.
        Err(error) if is_plan => {
            terminal::print_error(format_args!("{error:#}"));
            Ok(ExitCode::from(EXIT_NOT_ASKED))
        }
        outcome => outcome,
    }
}

/// What the commands share.
struct UpstreamCommands<'a> {
    context: CommandContext,
    settings: &'a Settings,
}

impl UpstreamCommands<'_> {
    async fn run(&self, command: UpstreamCommand) -> anyhow::Result<ExitCode> {
        match command {
            UpstreamCommand::Connect(options) => self.connect(&options).await?,
            UpstreamCommand::Check(connected) => self.check(&connected).await?,
            UpstreamCommand::Import { connected, dry_run: true, .. } => {
                self.dry_run(&connected).await?;
            }
            UpstreamCommand::Import { connected, dry_run: false, yes } => {
                self.import(&connected, yes).await?;
            }
            UpstreamCommand::Sync(connected) => self.sync(&connected).await?,
            UpstreamCommand::Status(connected) => self.status(&connected).await?,
            UpstreamCommand::Templates { connected, source } => {
                self.list(&connected, source.as_deref()).await?;
            }
            UpstreamCommand::Plan(connected) => return self.plan(&connected).await,
            UpstreamCommand::Accept(it) => self.act(&it, UpstreamAction::Accept).await?,
            UpstreamCommand::Submit { connected, name, language, all: _ } => {
                match name.zip(language) {
                    Some((name, language)) => {
                        let wanted = ConnectedTemplate { connected, name, language };
                        self.act(&wanted, UpstreamAction::Submit).await?;
                    }
                    None => self.submit_all(&connected).await?,
                }
            }
            UpstreamCommand::Push(it) => self.act(&it, UpstreamAction::Push).await?,
            UpstreamCommand::Adopt(it) => self.adopt(&it).await?,
            UpstreamCommand::Pause(it) => self.change(&it, ConnectionChange::Paused).await?,
            UpstreamCommand::Resume { connected, accept_missing: false } => {
                self.change(&connected, ConnectionChange::Resumed).await?;
            }
            UpstreamCommand::Resume { connected, accept_missing: true } => {
                self.change(&connected, ConnectionChange::MissingAccepted).await?;
            }
            UpstreamCommand::Token { connected, token_file } => {
                self.replace_token(&connected, &token_file).await?;
            }
            UpstreamCommand::AppSecret { connected, app_secret_file } => {
                self.replace_app_secret(&connected, &app_secret_file).await?;
            }
            UpstreamCommand::Hook(connected) => self.replace_hook(&connected).await?,
            UpstreamCommand::Disconnect { connected, yes } => {
                self.disconnect(&connected, yes).await?;
            }
        }
        Ok(ExitCode::SUCCESS)
    }

    fn provider(&self) -> UpstreamContext {
        let keyring = self.settings.webhooks.keyring.clone();
        let store = Arc::clone(&self.context.store);
        self.settings.upstream.context(store, Arc::new(SystemClock::new()), keyring)
    }

    /// An account and its connection.
    async fn connected(
        &self,
        connected: &Connected,
    ) -> anyhow::Result<(Account, UpstreamConnection)> {
        let account = self.context.account(&connected.account).await?;
        let connection = self.context.store.connection(account.id).await?;
        let connection = connection.with_context(|| not_connected(&account))?;
        Ok((account, connection))
    }

    async fn change(&self, connected: &Connected, change: ConnectionChange) -> anyhow::Result<()> {
        let (account, _) = self.connected(connected).await?;
        let store = &self.context.store;
        if !store.change_connection(account.id, change, self.context.author()).await? {
            bail!(not_connected(&account));
        }
        let (_, connection) = self.connected(connected).await?;
        let members =
            [("account", account.name.into()), ("state", connection.state().as_str().into())];
        table::print_one(self.context.json, &members);
        Ok(())
    }

    async fn check(&self, connected: &Connected) -> anyhow::Result<()> {
        let (account, _) = self.connected(connected).await?;
        let session = self.lease(&account).await?;
        let checked = session.check().await;
        session.end().await?;
        let Checked { report, token } = checked?;
        let expires_at = token.as_ref().and_then(|token| token.expires_at);
        let members = [
            ("name", report.name.into()),
            ("templates", report.templates.into()),
            ("template_limit", report.template_limit.into()),
            ("usage_percent", report.usage.map(|it| it.percent).into()),
            ("token_expires_at", timestamp(expires_at)),
            ("scopes", token.map(|token| token.scopes).into()),
        ];
        table::print_one(self.context.json, &members);
        Ok(())
    }

    /// Takes the lease of a connection whose calls neither a person nor the provider has stopped.
    async fn session(&self, account: &Account) -> anyhow::Result<Session> {
        let session = self.lease(account).await?;
        match held(&session.connection, account, self.context.now) {
            None => Ok(session),
            Some(reason) => {
                session.end().await?;
                bail!(reason)
            }
        }
    }

    /// Takes the lease of a connection, and waits if the service has it.
    async fn lease(&self, account: &Account) -> anyhow::Result<Session> {
        let provider = self.provider();
        for _ in 0..LEASE_ATTEMPTS {
            match Session::begin(&provider, account.id).await? {
                Begun::Session(session) => return Ok(*session),
                Begun::NotConnected => bail!(not_connected(account)),
                Begun::Leased => tokio::time::sleep(LEASE_PAUSE).await,
            }
        }
        bail!("another process works on the connection; try again in a few minutes")
    }

    /// The templates of the mirror.
    async fn mirror(
        &self,
        account: &Account,
        filter: MirrorFilter,
    ) -> anyhow::Result<Vec<MirroredTemplate>> {
        let mut rows: Vec<MirroredTemplate> = Vec::new();
        loop {
            let after: Option<RemoteId> = rows.last().map(|row| row.id.clone());
            let store = &self.context.store;
            let page = store.mirrored(account.id, filter.clone(), after, PAGE_SIZE).await?;
            let is_last = page.len() < PAGE_SIZE;
            rows.extend(page);
            if is_last {
                return Ok(rows);
            }
        }
    }

    /// Lists what the provider has, as the last sweeps and reads showed it.
    async fn list(&self, connected: &Connected, source: Option<&str>) -> anyhow::Result<()> {
        let (account, _) = self.connected(connected).await?;
        let source = source.map(TemplateSource::parse);
        let rows = self.mirror(&account, MirrorFilter::Present(source)).await?;
        let names = ["id", "name", "language", "status", "category", "source", "template_id"];
        let row = |row: MirroredTemplate| {
            vec![
                row.id.as_str().into(),
                row.name.into(),
                row.language.into(),
                row.status.as_str().into(),
                row.category.into(),
                row.source.map(|source| source.as_str().to_owned()).into(),
                row.template.map(|id| id.to_string()).into(),
            ]
        };
        table::print(self.context.json, &names, rows.into_iter().map(row).collect());
        Ok(())
    }

    /// All templates of the account.
    async fn templates(&self, account: &Account) -> anyhow::Result<Vec<StoredTemplate>> {
        let filter = TemplateFilter { limit: Some(usize::MAX), ..TemplateFilter::default() };
        templates::list(&self.context, account, &filter).await
    }
}

/// The key under which the account's template of this name and language is unique.
fn unique_key(account: &Account, name: &str, language: &str) -> String {
    (WHATSAPP.unique_key)(account.id, name, language)
}

fn remote_key(account: &Account, remote: &RemoteTemplate) -> String {
    unique_key(account, &remote.name, &remote.language)
}

/// Why no call should be made, unless a person insists.
fn held(
    connection: &UpstreamConnection,
    account: &Account,
    now: jiff::Timestamp,
) -> Option<String> {
    if connection.paused_at.is_some() {
        return Some(format!(
            "the connection is paused; run `galley upstream resume {}`",
            account.id
        ));
    }
    let degraded = connection.degraded.as_ref()?;
    let until = degraded.until.filter(|until| now < *until)?;
    // The next call shows whether the provider answers again.
    (degraded.reason != DegradedReason::Unreachable).then(|| {
        let error = degraded.error.as_ref().map(|error| format!(" ({error})"));
        format!(
            "calls rest until {until:.3} because of {}{}; `galley upstream check {}` asks the provider now",
            degraded.reason.as_str(),
            error.unwrap_or_default(),
            account.id
        )
    })
}

fn not_connected(account: &Account) -> String {
    format!("the account {:?} is not connected; run `galley upstream connect`", account.name)
}

/// Shows how far a walk over the templates is.
fn shown_progress(line: &ProgressLine) -> impl FnMut(SweepPart) + Send {
    |part: SweepPart| {
        let of = part.total.map(|total| format!(" of {total}")).unwrap_or_default();
        line.doing(&format!("reading templates at the provider: {}{of}", part.seen));
    }
}
