//! The secrets of a connection, which only the key of the service opens.

use std::fmt::{self, Display, Formatter};

use galley_domain::{id::AccountId, upstream::ProviderError};
use galley_store::{StoredSecret, UpstreamConnection};
use thiserror::Error;

use crate::delivery::{DecryptError, Keyring};

/// A secret of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SealedSecret {
    /// The token of calls.
    Token,
    /// The secret of the app, which proves calls and verifies webhooks.
    AppSecret,
}

impl SealedSecret {
    /// Opens a stored secret.
    pub(super) fn open(
        self,
        keyring: &Keyring,
        account: AccountId,
        stored: &StoredSecret,
    ) -> Result<String, SecretError> {
        let opened = keyring.unseal(account.get(), stored);
        opened.map_err(|error| SecretError { secret: self, error })
    }

    /// The command that replaces it.
    fn command(self) -> &'static str {
        match self {
            Self::Token => "galley upstream token",
            Self::AppSecret => "galley upstream app-secret",
        }
    }
}

impl Display for SealedSecret {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Token => "token",
            Self::AppSecret => "app secret",
        })
    }
}

/// A secret of a connection cannot be opened.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[error("{}", self.message())]
pub struct SecretError {
    /// The secret.
    pub secret: SealedSecret,
    /// Why.
    pub error: DecryptError,
}

impl SecretError {
    fn message(self) -> String {
        let secret = self.secret;
        match self.error {
            DecryptError::MissingKey => format!(
                "The {secret} of the connection is encrypted, and no key is set: set \
                 GALLEY_SECRET_KEY to the key with which it was stored, the same for the service and \
                 the command line."
            ),
            DecryptError::WrongKey => format!(
                "The {secret} of the connection cannot be opened with this GALLEY_SECRET_KEY, \
                 because it was encrypted with another key: set that key, the same for the service \
                 and the command line, or replace the app secret, if there is one, and then the \
                 token, with `galley upstream app-secret` and `galley upstream token`."
            ),
            DecryptError::Corrupt => format!(
                "The stored {secret} of the connection is corrupt: replace it with `{}`.",
                secret.command()
            ),
        }
    }

    /// The error as the connection shows it. Its code is 0, because it is not the provider's.
    pub(super) fn shown(self) -> ProviderError {
        ProviderError { code: 0, subcode: None, title: None, message: self.message() }
    }
}

/// Checks that the key opens the secrets of a connection.
pub fn check_secrets(
    keyring: &Keyring,
    connection: &UpstreamConnection,
) -> Result<(), SecretError> {
    let account = connection.account;
    if let Some(sealed) = &connection.app_secret {
        SealedSecret::AppSecret.open(keyring, account, sealed)?;
    }
    SealedSecret::Token.open(keyring, account, &connection.token).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_error_names_the_secret_and_what_to_do() {
        let account = AccountId::new(7).unwrap();
        let key = |key| Keyring::new(Some(key)).unwrap();
        let sealed = key("sixteen letters!").seal(7, "secret", [1; 24]).unwrap();
        let open = |secret: SealedSecret, keyring: Keyring, stored: &StoredSecret| {
            secret.open(&keyring, account, stored).map_err(|error| error.to_string())
        };
        let right = key("sixteen letters!");
        assert_eq!(open(SealedSecret::Token, right, &sealed).as_deref(), Ok("secret"));
        for (secret, keyring, stored, expected) in [
            (SealedSecret::Token, Keyring::new(None).unwrap(), &sealed, "no key is set"),
            (SealedSecret::Token, key("another key of 16"), &sealed, "galley upstream token"),
            (SealedSecret::AppSecret, key("another key of 16"), &sealed, "app-secret"),
            (
                SealedSecret::AppSecret,
                key("another key of 16"),
                &StoredSecret(vec![9]),
                "replace it with `galley upstream app-secret`",
            ),
        ] {
            let error = open(secret, keyring, stored).unwrap_err();
            assert!(error.contains(expected), "{expected:?} in {error}");
            assert!(error.contains(&format!("{secret} of the connection")), "{error}");
            assert!(!error.contains("webhook") && !error.contains("signing"), "{error}");
        }
    }
}
