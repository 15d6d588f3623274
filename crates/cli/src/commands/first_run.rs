//! The first account of an empty store: from the environment, or at random and shown once.

use galley_domain::{rulebook::V1, template::Review};
use galley_store::{CreateAccountOutcome, CredentialKind, NewAccount, NewCredential, Store};
use jiff::Timestamp;

use crate::{secrets, settings::Bootstrap};

/// The secrets of an account that was just made at random, for the one time they are shown.
pub(super) struct Welcome {
    key: String,
    token: String,
}

/// Makes the first account if there is none. Answers what has to be shown.
pub(super) async fn prepare(
    store: &dyn Store,
    bootstrap: Option<&Bootstrap>,
    at: Timestamp,
) -> anyhow::Result<Option<Welcome>> {
    if !store.accounts().await?.is_empty() {
        return Ok(None);
    }
    let (key, token, phones) = match bootstrap {
        Some(given) => {
            (given.key.clone(), given.token.clone(), given.phone.iter().cloned().collect())
        }
        None => (secrets::random("gk_")?, secrets::random("gt_")?, Vec::new()),
    };
    let new = NewAccount {
        name: "default".to_owned(),
        rulebook: V1.name,
        review: Review::Auto,
        phones,
        credentials: vec![
            NewCredential::lasting(CredentialKind::Key, &key),
            NewCredential::lasting(CredentialKind::Token, &token),
        ],
        // Of two processes that start together on an empty store, one makes the account.
        only_as_first: true,
        at,
    };
    let made = matches!(store.create_account(new).await?, CreateAccountOutcome::Created(..));
    Ok((made && bootstrap.is_none()).then_some(Welcome { key, token }))
}

impl Welcome {
    /// What is shown to whoever started the service for the first time.
    pub(super) fn text(&self, address: &str) -> String {
        let Self { key, token } = self;
        format!(
            r#"
This store was empty. It has an account now, named "default"; it takes any phone number id.
These are shown this once:

  API key       {key}
  Access token  {token}

Create a first template (paste it into a shell):

n=$(date +%s); curl -i http://{address}/api/v1.0/15550001111/{key}/message_templates \
  -H 'Authorization: Bearer {token}' -H 'Content-Type: application/json' \
  -H "Idempotency-Key: hello-$n" \
  -d '{{"name":"hello_'$n'","language":"en_US","category":"MARKETING","allow_category_change":true,
       "components":[{{"type":"BODY","text":"Hello {{{{1}}}}!","example":{{"body_text":[["Ada"]]}}}}]}}'

"#
        )
    }
}
