//! `galley upstream connect`, `token` and `disconnect`.

use std::{
    io::{self, IsTerminal as _, Write as _},
    path::Path,
};

use anyhow::{Context as _, bail};
use galley_domain::{account::prefix, rulebook::WHATSAPP};
use galley_server::{
    CHANGES_KNOWN_WITHIN,
    delivery::{Random as _, UrlError},
    upstream::{Dialect, SyncError, check_secrets, check_token, name_provider_setting},
};
use galley_store::{
    Account, ConnectOutcome, ConnectionChange, NewConnection, SecretHash, StoredSecret,
    UpstreamConnection,
};

use super::{UpstreamCommands, status};
use crate::{
    arguments::{ConnectOptions, Connected},
    secrets::{self, SystemRandom, file},
    table, terminal,
};

impl UpstreamCommands<'_> {
    pub(super) async fn connect(&self, options: &ConnectOptions) -> anyhow::Result<()> {
        let account = self.context.account(&options.account).await?;
        if account.rulebook != WHATSAPP.name {
            bail!(refusal(ConnectOutcome::NotWhatsapp, &account));
        }
        if account.emulator.is_some() {
            bail!(refusal(ConnectOutcome::Emulator, &account));
        }
        if self.context.store.connection(account.id).await?.is_some() {
            bail!(refusal(ConnectOutcome::Exists, &account));
        }
        self.require_key()?;
        let dialect = Dialect::new(&options.base_url, &options.waba)?;
        let base_url = dialect.base_url().as_str().trim_end_matches('/');
        let guard = self.settings.upstream.guard();
        guard.check_url(base_url).map_err(|error| address_error(&error))?;
        let (token_file, secret_file) =
            (Some(options.token_file.clone()), options.app_secret_file.clone());
        let flags = ["--token-file", "--app-secret-file"];
        file::require_one_from_standard_input([&token_file, &secret_file], flags)?;
        let token = self.read_secret(&account, &options.token_file)?.0;
        let app_secret = secret_file.map(|path| self.read_secret(&account, &path)).transpose()?;
        let hook_token = secrets::random(prefix::HOOK)?;
        let new = NewConnection {
            account: account.id,
            base_url: base_url.to_owned(),
            waba: dialect.waba().to_owned(),
            app_id: options.app_id.clone(),
            token,
            token_expires_at: None,
            app_secret: app_secret.map(|(sealed, _)| sealed),
            hook_hash: SecretHash::of(&hook_token),
            by: self.context.author(),
        };
        match self.context.store.connect_upstream(new).await? {
            ConnectOutcome::Connected => {}
            refused => bail!(refusal(refused, &account)),
        }
        if !dialect.has_version() {
            terminal::print_warning(version_missing(base_url, &account));
        }
        self.print_hook(&hook_token, &status::import_steps(&account));
        // Until then, a running service would approve templates itself, which the provider never gets.
        tokio::time::sleep(CHANGES_KNOWN_WITHIN).await;
        Ok(())
    }

    pub(super) async fn replace_token(
        &self,
        connected: &Connected,
        path: &Path,
    ) -> anyhow::Result<()> {
        let (account, connection) = self.connected(connected).await?;
        self.require_key()?;
        let (sealed, token) = self.read_secret(&account, path)?;
        let checked = check_token(&self.provider(), &connection, token).await;
        let checked = checked.map_err(|error| match error {
            // Each call has a proof that needs the app secret.
            SyncError::Secret(error) => anyhow::Error::from(error)
                .context("the new token was not stored; run `galley upstream app-secret` first"),
            error => anyhow::Error::from(error).context("the new token was not stored"),
        })?;
        let expires_at = checked.token.and_then(|token| token.expires_at);
        self.change(connected, ConnectionChange::Token(sealed, expires_at)).await
    }

    pub(super) async fn replace_app_secret(
        &self,
        connected: &Connected,
        path: &Path,
    ) -> anyhow::Result<()> {
        let (account, connection) = self.connected(connected).await?;
        self.require_key()?;
        let (sealed, _) = self.read_secret(&account, path)?;
        self.change(connected, ConnectionChange::AppSecret(Some(sealed.clone()))).await?;
        // Both secrets are replaced, one after the other, if the key is another one.
        let connection = UpstreamConnection { app_secret: Some(sealed), ..connection };
        if check_secrets(&self.settings.webhooks.keyring, &connection).is_err() {
            terminal::print_warning(format_args!(
                "the token of the connection cannot be opened with this GALLEY_SECRET_KEY; replace \
                 it as well: `galley upstream token --token-file FILE {}`",
                account.id
            ));
        }
        Ok(())
    }

    pub(super) async fn replace_hook(&self, connected: &Connected) -> anyhow::Result<()> {
        let (account, _) = self.connected(connected).await?;
        let hook_token = secrets::random(prefix::HOOK)?;
        let change = ConnectionChange::Hook(SecretHash::of(&hook_token));
        let by = self.context.author();
        if !self.context.store.change_connection(account.id, change, by).await? {
            bail!(super::not_connected(&account));
        }
        self.print_hook(&hook_token, "The old path no longer works.");
        Ok(())
    }

    /// Prints the path of the webhook, and a sentence for people.
    fn print_hook(&self, hook_token: &str, next: &str) {
        let hook_path = format!("/upstream/{hook_token}");
        table::print_one(self.context.json, &[("hook_path", hook_path.into())]);
        if !self.context.json {
            table::print_line(&format!("\nThe path is shown only once. {next}"));
        }
    }

    pub(super) async fn disconnect(
        &self,
        connected: &Connected,
        is_confirmed: bool,
    ) -> anyhow::Result<()> {
        let (account, _) = self.connected(connected).await?;
        if !is_confirmed {
            confirm(&account.name)?;
        }
        let by = self.context.author();
        if !self.context.store.disconnect_upstream(account.id, by).await? {
            bail!(super::not_connected(&account));
        }
        let members = [("account", account.name.into()), ("state", status::DISCONNECTED.into())];
        table::print_one(self.context.json, &members);
        Ok(())
    }

    fn require_key(&self) -> anyhow::Result<()> {
        if !self.settings.webhooks.keyring.has_key() {
            bail!(
                "the token of a provider is only stored encrypted: set GALLEY_SECRET_KEY, or \
                 GALLEY_SECRET_KEY_FILE, to the same key as the service; `openssl rand -base64 32` \
                 makes a new one"
            );
        }
        Ok(())
    }

    /// A secret in a file or on standard input, sealed for the store and as it is.
    fn read_secret(
        &self,
        account: &Account,
        path: &Path,
    ) -> anyhow::Result<(StoredSecret, String)> {
        let text = file::given(None, Some(path))?.context("no secret is given")?;
        let mut nonce = [0; 24];
        SystemRandom.fill(&mut nonce);
        let sealed = self.settings.webhooks.keyring.seal(account.id.get(), &text, nonce);
        Ok((sealed.context("GALLEY_SECRET_KEY is not set")?, text))
    }
}

fn refusal(outcome: ConnectOutcome, account: &Account) -> String {
    let name = &account.name;
    match outcome {
        ConnectOutcome::NotWhatsapp => format!(
            "the account {name:?} has the rulebook {}; only accounts with the rulebook {} can be \
             connected",
            account.rulebook, WHATSAPP.name
        ),
        ConnectOutcome::Emulator => {
            format!("the account {name:?} is an emulator, which stands in for a provider itself")
        }
        ConnectOutcome::Connected | ConnectOutcome::Exists => format!(
            "the account {name:?} is already connected; see `galley upstream status {}`, and \
             replace its token with `galley upstream token`",
            account.id
        ),
        ConnectOutcome::NoAccount => "the account no longer exists".to_owned(),
    }
}

/// An address that the guard refuses.
fn address_error(error: &UrlError) -> anyhow::Error {
    anyhow::anyhow!("--base-url: {}", name_provider_setting(&error.to_string()))
}

/// A base URL that Meta does not have. Another provider may have it.
fn version_missing(base_url: &str, account: &Account) -> String {
    let id = account.id;
    format!(
        "--base-url {base_url} does not end with a version. If the provider expects one, as Meta \
         does, run `galley upstream disconnect {id}` and connect again with a base URL like \
         {base_url}/v23.0"
    )
}

/// Asks for the name of the account, on a terminal.
fn confirm(name: &str) -> anyhow::Result<()> {
    if !io::stdin().is_terminal() {
        bail!("disconnecting an account needs a confirmation: pass --yes");
    }
    let _ = write!(
        io::stderr(),
        "This deletes the token and what is known of the provider's templates. The account's templates \
         stay.\nType the name of the account to confirm: "
    );
    let mut typed = String::new();
    io::stdin().read_line(&mut typed)?;
    if typed.trim_end_matches(['\r', '\n']) != name {
        bail!("this is not the name of the account; it stays connected");
    }
    Ok(())
}
