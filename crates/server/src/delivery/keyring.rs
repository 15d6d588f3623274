//! Sealing signing secrets at rest, so that a stolen database or backup does not give them away.
//!
//! Unlike keys and tokens they cannot be kept as hashes: every delivery is signed with them.

use std::fmt;

use chacha20poly1305::{
    XChaCha20Poly1305, XNonce,
    aead::{Aead as _, KeyInit as _, Payload},
};
use galley_store::StoredSecret;
use sha2::{Digest as _, Sha256};
use thiserror::Error;

use super::signature::Secret;

/// A key shorter than this could be guessed.
const FEWEST_CHARACTERS: usize = 16;

const NONCE: usize = 24;

/// The first byte of what is kept says how to read the rest.
const PLAIN: u8 = 0;
/// A nonce follows, then what was sealed with it.
const SEALED: u8 = 1;

/// The key of this service, if it was given one.
#[derive(Clone)]
pub struct Keyring(Option<XChaCha20Poly1305>);

/// The key would protect nothing.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[error(
    "GALLEY_SECRET_KEY is shorter than {FEWEST_CHARACTERS} characters. Use a long random text, \
     for instance from `openssl rand -base64 32`."
)]
pub struct KeyTooShort;

/// Why a kept secret cannot be read.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum CannotOpen {
    /// Sealed, and there is no key.
    #[error(
        "A signing secret was sealed with a key, and there is none now. Start with the same \
         GALLEY_SECRET_KEY as before."
    )]
    NoKey,
    /// Sealed for something else. Which of these it is cannot be told.
    #[error(
        "A signing secret was sealed with another key, or was changed since. Start with the same \
         GALLEY_SECRET_KEY as before, or rotate the secret of the webhook."
    )]
    NotOurs,
    /// Not something that a keyring has ever made.
    #[error("A kept signing secret is damaged. Rotate the secret of the webhook.")]
    Damaged,
}

impl Keyring {
    /// A keyring with the key from `GALLEY_SECRET_KEY`, or one that keeps secrets as they are.
    pub fn new(key: Option<&str>) -> Result<Self, KeyTooShort> {
        let Some(key) = key else { return Ok(Self(None)) };
        if key.chars().count() < FEWEST_CHARACTERS {
            return Err(KeyTooShort);
        }
        Ok(Self(Some(XChaCha20Poly1305::new(&Sha256::digest(key)))))
    }

    /// What to keep of a secret. It opens for this account only, so that a row moved to another
    /// one is of no use there. The nonce is random and new each time.
    pub fn seal(&self, account: u64, secret: &Secret, nonce: [u8; NONCE]) -> StoredSecret {
        let Some(cipher) = &self.0 else {
            return StoredSecret([&[PLAIN], secret.bytes()].concat());
        };
        let payload = Payload { msg: secret.bytes(), aad: &account.to_be_bytes() };
        let sealed = cipher.encrypt(&XNonce::from(nonce), payload).expect("a secret is short");
        StoredSecret([&[SEALED], &nonce[..], &sealed].concat())
    }

    /// The secret from what was kept of it. What was kept before there was a key still opens.
    pub fn open(&self, account: u64, kept: &StoredSecret) -> Result<Secret, CannotOpen> {
        let bytes = match kept.0.split_first() {
            Some((&PLAIN, plain)) => plain.to_vec(),
            Some((&SEALED, rest)) => self.unseal(account, rest)?,
            _ => return Err(CannotOpen::Damaged),
        };
        Secret::from_bytes(bytes).map_err(|_| CannotOpen::Damaged)
    }

    fn unseal(&self, account: u64, rest: &[u8]) -> Result<Vec<u8>, CannotOpen> {
        let (nonce, msg) = rest.split_first_chunk::<NONCE>().ok_or(CannotOpen::Damaged)?;
        let cipher = self.0.as_ref().ok_or(CannotOpen::NoKey)?;
        let payload = Payload { msg, aad: &account.to_be_bytes() };
        cipher.decrypt(&XNonce::from(*nonce), payload).map_err(|_| CannotOpen::NotOurs)
    }
}

impl fmt::Debug for Keyring {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(if self.0.is_some() { "Keyring(…)" } else { "Keyring(none)" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NONCE_OF_TEST: [u8; NONCE] = [9; NONCE];

    fn secret() -> Secret {
        Secret::generate(|bytes| bytes.fill(7))
    }

    fn keyring(key: &str) -> Keyring {
        Keyring::new(Some(key)).unwrap()
    }

    #[test]
    fn a_sealed_secret_opens_with_the_same_key_and_shows_nothing_of_itself() {
        let keyring = keyring("sixteen letters!");
        let kept = keyring.seal(1, &secret(), NONCE_OF_TEST);
        assert_eq!(keyring.open(1, &kept).unwrap().reveal(), secret().reveal());
        assert!(!kept.0.windows(4).any(|it| it == [7; 4]));
        assert_ne!(kept, keyring.seal(1, &secret(), [8; NONCE]));
    }

    #[test]
    fn without_a_key_secrets_are_kept_plain_and_open_also_when_there_is_one_later() {
        let none = Keyring::new(None).unwrap();
        let kept = none.seal(1, &secret(), NONCE_OF_TEST);
        for keyring in [none, keyring("sixteen letters!")] {
            assert_eq!(keyring.open(1, &kept).unwrap().reveal(), secret().reveal());
        }
    }

    #[test]
    fn another_key_another_account_and_no_key_open_nothing() {
        let kept = keyring("sixteen letters!").seal(1, &secret(), NONCE_OF_TEST);
        let refusal = |keyring: Keyring, account| keyring.open(account, &kept).unwrap_err();
        assert_eq!(refusal(keyring("sixteen letters?"), 1), CannotOpen::NotOurs);
        assert_eq!(refusal(keyring("sixteen letters!"), 2), CannotOpen::NotOurs);
        assert_eq!(refusal(Keyring::new(None).unwrap(), 1), CannotOpen::NoKey);
        for error in [CannotOpen::NotOurs, CannotOpen::NoKey] {
            assert!(error.to_string().contains("GALLEY_SECRET_KEY"));
        }
    }

    #[test]
    fn whatever_byte_is_changed_or_missing_it_does_not_open() {
        let keyring = keyring("sixteen letters!");
        let kept = keyring.seal(1, &secret(), NONCE_OF_TEST);
        for at in 1..kept.0.len() {
            let mut changed = kept.clone();
            changed.0[at] ^= 1;
            assert_eq!(keyring.open(1, &changed).unwrap_err(), CannotOpen::NotOurs, "byte {at}");
        }
        for length in 0..kept.0.len() {
            let shorter = StoredSecret(kept.0[..length].to_vec());
            assert!(keyring.open(1, &shorter).is_err(), "{length} bytes");
        }
        for unknown in [&[2, 1, 1][..], &[PLAIN, 1, 2, 3]] {
            let unknown = StoredSecret(unknown.to_vec());
            assert_eq!(keyring.open(1, &unknown).unwrap_err(), CannotOpen::Damaged);
        }
    }

    #[test]
    fn a_short_key_is_refused_and_no_key_is_shown() {
        assert_eq!(Keyring::new(Some("fifteen letters")).unwrap_err(), KeyTooShort);
        assert_eq!(Keyring::new(Some("")).unwrap_err(), KeyTooShort);
        assert_eq!(format!("{:?}", keyring("sixteen letters!")), "Keyring(…)");
    }
}
