//! The first account of an empty store: with secrets from the environment, or random and shown once.

use galley_domain::{rulebook::V1, template::Review};
use galley_store::{CreateAccountOutcome, CredentialKind, NewAccount, NewCredential, Store};
use jiff::Timestamp;

use crate::{secrets, settings::Bootstrap};

/// The random secrets of the first account, to be shown once.
pub(super) struct Welcome {
    key: String,
    token: String,
}

/// Creates the first account if the store has none. Returns the secrets to show.
pub(super) async fn prepare(
    store: &dyn Store,
    bootstrap: Option<&Bootstrap>,
    at: Timestamp,
) -> anyhow::Result<Option<Welcome>> {
    if !store.accounts().await?.is_empty() {
        return Ok(None);
    }
    let (key, token, phones) = match bootstrap {
        Some(bootstrap) => (
            bootstrap.key.clone(),
            bootstrap.token.clone(),
            bootstrap.phone.iter().cloned().collect(),
        ),
        None => (secrets::random("gk_")?, secrets::random("gt_")?, Vec::new()),
    };
    let new = NewAccount {
        name: "default".to_owned(),
        rulebook: V1.name,
        review: Review::Auto,
        phones,
        credentials: vec![
            NewCredential::unrestricted(CredentialKind::Key, &key),
            NewCredential::unrestricted(CredentialKind::Token, &token),
        ],
        // If two processes start on an empty store, only one creates the account.
        only_if_first: true,
        at,
    };
    let created = matches!(store.create_account(new).await?, CreateAccountOutcome::Created(..));
    Ok((created && bootstrap.is_none()).then_some(Welcome { key, token }))
}

impl Welcome {
    /// The text printed at the first start.
    pub(super) fn text(&self, address: &str) -> String {
        let Self { key, token } = self;
        format!(
            r#"
Created the account "default" in an empty store. It accepts any phone number id.
Its credentials are shown only once:

  API key       {key}
  Access token  {token}

Create your first template (paste this into a shell):

n=$(date +%s); curl -i http://{address}/api/v1.0/15550001111/{key}/message_templates \
  -H 'Authorization: Bearer {token}' -H 'Content-Type: application/json' \
  -H "Idempotency-Key: hello-$n" \
  -d '{{"name":"hello_'$n'","language":"en_US","category":"MARKETING","allow_category_change":true,
       "components":[{{"type":"BODY","text":"Hello {{{{1}}}}!","example":{{"body_text":[["Ada"]]}}}}]}}'

"#
        )
    }
}
