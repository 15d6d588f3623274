//! The first account of an empty store: with secrets from the environment, or random and shown once.
//!
//! Random secrets are shown before the account is created. If they cannot be shown, there is no
//! account that no client can use; if the process dies in between, the next start shows new ones.

use std::{
    fs::{self, File},
    io::{self, Write as _},
    os::{
        fd::AsFd as _,
        unix::fs::{FileTypeExt as _, MetadataExt as _},
    },
    time::Duration,
};

use galley_domain::{account::prefix, rulebook::V1, template::Review};
use galley_store::{
    Author, CreateAccountOutcome, Credential, CredentialKind, NewAccount, SecretHash, Store,
};
use jiff::Timestamp;

use super::credentials::first_pair;
use crate::{
    secrets,
    settings::{Bootstrap, BootstrapSecrets, Settings},
};

/// Time for the reader of standard output to take the credentials.
const SHOW_TIMEOUT: Duration = Duration::from_secs(5);

/// Creates the first account if the store has none, as the settings say. `address` is where the
/// service listens.
pub(super) async fn prepare(
    store: &Store,
    Settings { bootstrap, console, .. }: &Settings,
    address: &str,
    at: Timestamp,
) -> anyhow::Result<()> {
    let is_empty = store.accounts().await?.is_empty();
    // A store whose accounts were all deleted is not new: the operator creates the next one.
    let is_new = is_empty && !store.has_had_accounts().await?;
    match bootstrap {
        Bootstrap::Given(given) => {
            let is_created = is_new && create_given(store, given, at).await?;
            if is_created { Ok(()) } else { warn_of_ignored(store, given, at).await }
        }
        Bootstrap::Print if is_new => create_and_show(store, address, *console, at).await,
        Bootstrap::Print | Bootstrap::Off if is_empty => {
            tracing::warn!("the store has no account: {CREATE_ACCOUNT}");
            Ok(())
        }
        Bootstrap::Print | Bootstrap::Off => Ok(()),
    }
}

const CREATE_ACCOUNT: &str = "create one with `galley account create NAME`, with the same store";

/// Creates the first account with the given credentials. Returns `false` if another process was
/// faster.
async fn create_given(
    store: &Store,
    given: &BootstrapSecrets,
    at: Timestamp,
) -> anyhow::Result<bool> {
    for (variable, _, secret) in variables(given) {
        if secrets::is_weak(secret) {
            tracing::warn!("{variable} is weak: {}", secrets::STRONG_SECRET);
        }
    }
    create(store, &given.key, &given.token, given.phone.iter().cloned().collect(), at).await
}

/// The variables of the credentials, with the kind and the secret of each.
fn variables(given: &BootstrapSecrets) -> [(&'static str, CredentialKind, &str); 2] {
    [
        ("GALLEY_BOOTSTRAP_KEY", CredentialKind::Key, &given.key),
        ("GALLEY_BOOTSTRAP_TOKEN", CredentialKind::Token, &given.token),
    ]
}

/// Compares the given credentials with those of a store that has accounts. Warns if they have no
/// effect, and if they are valid but weak.
async fn warn_of_ignored(
    store: &Store,
    given: &BootstrapSecrets,
    at: Timestamp,
) -> anyhow::Result<()> {
    let mut ignored = Vec::new();
    for (variable, kind, secret) in variables(given) {
        match store.credential(kind, SecretHash::of(secret)).await? {
            Some(valid) if is_valid(&valid, at) => {
                if secrets::is_weak(secret) {
                    let (kind, id) = (kind.as_str(), valid.id);
                    tracing::warn!(
                        "{variable} is weak: replace it with `galley {kind} rotate {id}`"
                    );
                }
            }
            _ => ignored.push(variable),
        }
    }
    if !ignored.is_empty() {
        tracing::warn!(
            "ignored {}: the store already has accounts or had some, and this is not a valid credential of any \
             of them. Remove the variable, or add the credential with `galley key create ACCOUNT \
             --secret-file FILE` or `galley token create ACCOUNT --secret-file FILE`",
            ignored.join(" and ")
        );
    }
    Ok(())
}

fn is_valid(credential: &Credential, at: Timestamp) -> bool {
    credential.revoked_at.is_none() && credential.expires_at.is_none_or(|end| end > at)
}

/// Shows random credentials, then creates the account that has them.
async fn create_and_show(
    store: &Store,
    address: &str,
    console: bool,
    at: Timestamp,
) -> anyhow::Result<()> {
    let (key, token) = (secrets::random(prefix::KEY)?, secrets::random(prefix::TOKEN)?);
    if let Err(error) = show(credentials(&key, &token)).await {
        tracing::error!(
            "the first account was not created, because its credentials cannot be shown on standard \
             output ({error}): {CREATE_ACCOUNT}"
        );
        return Ok(());
    }
    let created = create(store, &key, &token, Vec::new(), at).await;
    let rest = match created {
        Ok(true) => instructions(&key, &token, address, console),
        Ok(false) => {
            tracing::warn!("another process created the first account; it has other credentials");
            NOT_CREATED.to_owned()
        }
        Err(_) => NOT_CREATED.to_owned(),
    };
    // The credentials have been shown, and the log has the outcome as well.
    let _ = show(rest).await;
    created.map(drop)
}

/// Refuses a standard output that is discarded. Rust replaces a closed one with `/dev/null`.
fn refuse_discarded(out: &io::Stdout) -> io::Result<()> {
    let out = File::from(out.as_fd().try_clone_to_owned()?).metadata()?;
    let is_null = out.file_type().is_char_device()
        && fs::metadata("/dev/null").is_ok_and(|null| null.rdev() == out.rdev());
    if is_null { Err(io::Error::other("it is closed or /dev/null")) } else { Ok(()) }
}

/// Writes to standard output. A reader that has stalled delays the service only for a while.
async fn show(text: String) -> io::Result<()> {
    let write = move || {
        let mut out = io::stdout();
        refuse_discarded(&out)?;
        out.write_all(text.as_bytes())?;
        out.flush()
    };
    match tokio::time::timeout(SHOW_TIMEOUT, tokio::task::spawn_blocking(write)).await {
        Ok(written) => written.unwrap_or_else(|error| Err(io::Error::other(error))),
        Err(_) => Err(io::ErrorKind::TimedOut.into()),
    }
}

/// Creates the account. Returns `false` if the store already has one.
async fn create(
    store: &Store,
    key: &str,
    token: &str,
    phones: Vec<String>,
    at: Timestamp,
) -> anyhow::Result<bool> {
    let new = NewAccount {
        id: None,
        name: "default".to_owned(),
        rulebook: V1.name,
        review: Review::Auto,
        emulator: None,
        limits: None,
        phones,
        credentials: first_pair(key, token),
        // If two processes start on an empty store, only one creates the account.
        only_if_first: true,
        by: Author::service(at),
    };
    Ok(matches!(store.create_account(new).await?, CreateAccountOutcome::Created(..)))
}

/// Printed before the account is created.
fn credentials(key: &str, token: &str) -> String {
    format!(
        "
The store is empty. The credentials of its first account are shown only once:

  API key       {key}
  Access token  {token}
"
    )
}

/// Printed if the account was not created.
const NOT_CREATED: &str = "
The account was NOT created: these credentials are not valid.

";

/// Printed after the account was created.
fn instructions(key: &str, token: &str, address: &str, console: bool) -> String {
    let console = if console {
        format!("The console is at http://{address}/console; sign in with the access token.\n")
    } else {
        String::new()
    };
    format!(
        r#"
Created the account "default". It accepts any phone number id.
{console}
Create your first template (paste this into a shell):

n=$(date +%s); curl -i http://{address}/api/v1.0/15550001111/{key}/message_templates \
  -H 'Authorization: Bearer {token}' -H 'Content-Type: application/json' \
  -H "Idempotency-Key: hello-$n" \
  -d '{{"name":"hello_'$n'","language":"en_US","category":"MARKETING","allow_category_change":true,
       "components":[{{"type":"BODY","text":"Hello {{{{1}}}}, welcome to our shop!","example":{{"body_text":[["Ada"]]}}}}]}}'

"#
    )
}
