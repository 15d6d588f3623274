//! Encryption of signing secrets at rest, so that a stolen database or backup does not reveal them.
//!
//! Unlike API keys and tokens, they cannot be stored as hashes: every delivery is signed with them.

use std::fmt;

use chacha20poly1305::{
    XChaCha20Poly1305, XNonce,
    aead::{Aead as _, KeyInit as _, Payload},
};
use galley_store::StoredSecret;
use sha2::{Digest as _, Sha256};
use thiserror::Error;

use super::signature::Secret;

/// Minimum length of the key in characters.
const MIN_KEY_CHARS: usize = 16;

const NONCE_BYTES: usize = 24;

/// First byte of a stored secret in plain text. The secret follows.
const PLAIN: u8 = 0;
/// First byte of an encrypted stored secret. The nonce follows, then the ciphertext.
const ENCRYPTED: u8 = 1;

/// The key that encrypts signing secrets, if one is set.
#[derive(Clone)]
pub struct Keyring(Option<XChaCha20Poly1305>);

/// The key is too short to protect anything.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[error(
    "GALLEY_SECRET_KEY is shorter than {MIN_KEY_CHARS} characters. Use a long random string, \
     for example from `openssl rand -base64 32`."
)]
pub struct InvalidKeyLength;

/// Why a stored secret cannot be decrypted.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum DecryptError {
    /// The secret is encrypted, and no key is set.
    #[error(
        "A stored secret is encrypted, but no key is set. Start with the same GALLEY_SECRET_KEY \
         as before."
    )]
    MissingKey,
    /// The key or the account is another one, or the ciphertext was modified. The cipher cannot
    /// tell these apart.
    #[error(
        "A signing secret was encrypted with another key or has been modified. Start with the same \
         GALLEY_SECRET_KEY as before, or rotate the secret of the webhook."
    )]
    WrongKey,
    /// The stored bytes have an unknown format.
    #[error("A stored signing secret is corrupt. Rotate the secret of the webhook.")]
    Corrupt,
}

impl Keyring {
    /// Creates a keyring with the key from `GALLEY_SECRET_KEY`. Without a key, secrets are stored in
    /// plain text.
    pub fn new(key: Option<&str>) -> Result<Self, InvalidKeyLength> {
        let Some(key) = key else { return Ok(Self(None)) };
        if key.chars().count() < MIN_KEY_CHARS {
            return Err(InvalidKeyLength);
        }
        Ok(Self(Some(XChaCha20Poly1305::new(&Sha256::digest(key)))))
    }

    /// Whether a key is set, so that new secrets are encrypted.
    pub fn has_key(&self) -> bool {
        self.0.is_some()
    }

    /// Whether a stored secret is in plain text.
    pub fn is_plain(stored: &StoredSecret) -> bool {
        stored.0.first() == Some(&PLAIN)
    }

    /// Encrypts a secret for the store. It is bound to the account: copied to another account's row,
    /// it cannot be decrypted. `nonce` must be random and unique.
    pub fn encrypt(&self, account: u64, secret: &Secret, nonce: [u8; NONCE_BYTES]) -> StoredSecret {
        let Some(cipher) = &self.0 else {
            return StoredSecret([&[PLAIN], secret.bytes()].concat());
        };
        let payload = Payload { msg: secret.bytes(), aad: &account.to_be_bytes() };
        let ciphertext = cipher.encrypt(&XNonce::from(nonce), payload).expect("a secret is short");
        StoredSecret([&[ENCRYPTED], &nonce[..], &ciphertext].concat())
    }

    /// Decrypts a stored secret. Also reads secrets stored in plain text before a key was set.
    pub fn decrypt(&self, account: u64, stored: &StoredSecret) -> Result<Secret, DecryptError> {
        let bytes = match stored.0.split_first() {
            Some((&PLAIN, plain)) => plain.to_vec(),
            Some((&ENCRYPTED, rest)) => self.decrypt_bytes(account, rest)?,
            _ => return Err(DecryptError::Corrupt),
        };
        Secret::from_bytes(bytes).map_err(|_| DecryptError::Corrupt)
    }

    /// Encrypts the token or the app secret of a provider for the store; `None` without a key, because
    /// they are never stored in plain text. `nonce` must be random and unique.
    pub fn seal(&self, account: u64, text: &str, nonce: [u8; NONCE_BYTES]) -> Option<StoredSecret> {
        let cipher = self.0.as_ref()?;
        let payload = Payload { msg: text.as_bytes(), aad: &provider_data(account) };
        let ciphertext = cipher.encrypt(&XNonce::from(nonce), payload).ok()?;
        Some(StoredSecret([&[ENCRYPTED], &nonce[..], &ciphertext].concat()))
    }

    /// Decrypts what [`Keyring::seal`] has encrypted.
    pub fn unseal(&self, account: u64, stored: &StoredSecret) -> Result<String, DecryptError> {
        let Some((&ENCRYPTED, rest)) = stored.0.split_first() else {
            return Err(DecryptError::Corrupt);
        };
        let (nonce, msg) = rest.split_first_chunk::<NONCE_BYTES>().ok_or(DecryptError::Corrupt)?;
        let cipher = self.0.as_ref().ok_or(DecryptError::MissingKey)?;
        let payload = Payload { msg, aad: &provider_data(account) };
        let text = cipher.decrypt(&XNonce::from(*nonce), payload);
        let text = text.map_err(|_| DecryptError::WrongKey)?;
        String::from_utf8(text).map_err(|_| DecryptError::Corrupt)
    }

    fn decrypt_bytes(&self, account: u64, rest: &[u8]) -> Result<Vec<u8>, DecryptError> {
        let (nonce, msg) = rest.split_first_chunk::<NONCE_BYTES>().ok_or(DecryptError::Corrupt)?;
        let cipher = self.0.as_ref().ok_or(DecryptError::MissingKey)?;
        let payload = Payload { msg, aad: &account.to_be_bytes() };
        cipher.decrypt(&XNonce::from(*nonce), payload).map_err(|_| DecryptError::WrongKey)
    }
}

/// What a sealed secret of a provider is bound to: the account, and that it is not a signing secret.
fn provider_data(account: u64) -> Vec<u8> {
    [&account.to_be_bytes()[..], b"provider"].concat()
}

impl fmt::Debug for Keyring {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(if self.0.is_some() { "Keyring(…)" } else { "Keyring(none)" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEST_NONCE: [u8; NONCE_BYTES] = [9; NONCE_BYTES];

    fn secret() -> Secret {
        Secret::generate(|bytes| bytes.fill(7))
    }

    fn keyring(key: &str) -> Keyring {
        Keyring::new(Some(key)).unwrap()
    }

    #[test]
    fn an_encrypted_secret_decrypts_with_the_same_key_and_contains_no_plain_text() {
        let keyring = keyring("sixteen letters!");
        let stored = keyring.encrypt(1, &secret(), TEST_NONCE);
        assert_eq!(keyring.decrypt(1, &stored).unwrap().reveal(), secret().reveal());
        assert!(!stored.0.windows(4).any(|it| it == [7; 4]));
        assert_ne!(stored, keyring.encrypt(1, &secret(), [8; NONCE_BYTES]));
        assert!(keyring.has_key() && !Keyring::is_plain(&stored));
    }

    #[test]
    fn the_token_of_a_provider_is_sealed_for_its_account_and_purpose() {
        let keyring = keyring("sixteen letters!");
        let token = "EAAG".repeat(100);
        let sealed = keyring.seal(1, &token, TEST_NONCE).unwrap();
        assert_eq!(keyring.unseal(1, &sealed).unwrap(), token);
        assert!(!sealed.0.windows(4).any(|it| it == b"EAAG"));
        assert_eq!(keyring.unseal(2, &sealed), Err(DecryptError::WrongKey));
        let signing = keyring.encrypt(1, &secret(), TEST_NONCE);
        assert_eq!(keyring.unseal(1, &signing), Err(DecryptError::WrongKey));
        let none = Keyring::new(None).unwrap();
        assert_eq!(none.seal(1, &token, TEST_NONCE), None, "never in plain text");
        assert_eq!(none.unseal(1, &sealed), Err(DecryptError::MissingKey));
        let plain = none.encrypt(1, &secret(), TEST_NONCE);
        assert_eq!(keyring.unseal(1, &plain), Err(DecryptError::Corrupt));
    }

    #[test]
    fn secrets_stored_without_a_key_can_still_be_read_after_a_key_is_set() {
        let none = Keyring::new(None).unwrap();
        let stored = none.encrypt(1, &secret(), TEST_NONCE);
        assert!(!none.has_key() && Keyring::is_plain(&stored));
        for keyring in [none, keyring("sixteen letters!")] {
            assert_eq!(keyring.decrypt(1, &stored).unwrap().reveal(), secret().reveal());
        }
    }

    #[test]
    fn a_secret_does_not_decrypt_with_another_key_or_account_or_without_a_key() {
        let stored = keyring("sixteen letters!").encrypt(1, &secret(), TEST_NONCE);
        let error = |keyring: Keyring, account| keyring.decrypt(account, &stored).unwrap_err();
        assert_eq!(error(keyring("sixteen letters?"), 1), DecryptError::WrongKey);
        assert_eq!(error(keyring("sixteen letters!"), 2), DecryptError::WrongKey);
        assert_eq!(error(Keyring::new(None).unwrap(), 1), DecryptError::MissingKey);
        for error in [DecryptError::WrongKey, DecryptError::MissingKey] {
            assert!(error.to_string().contains("GALLEY_SECRET_KEY"));
        }
    }

    #[test]
    fn a_modified_or_truncated_secret_does_not_decrypt() {
        let keyring = keyring("sixteen letters!");
        let stored = keyring.encrypt(1, &secret(), TEST_NONCE);
        for at in 1..stored.0.len() {
            let mut changed = stored.clone();
            changed.0[at] ^= 1;
            assert_eq!(
                keyring.decrypt(1, &changed).unwrap_err(),
                DecryptError::WrongKey,
                "byte {at}"
            );
        }
        for length in 0..stored.0.len() {
            let shorter = StoredSecret(stored.0[..length].to_vec());
            assert!(keyring.decrypt(1, &shorter).is_err(), "{length} bytes");
        }
        for unknown in [&[2, 1, 1][..], &[PLAIN, 1, 2, 3]] {
            let unknown = StoredSecret(unknown.to_vec());
            assert_eq!(keyring.decrypt(1, &unknown).unwrap_err(), DecryptError::Corrupt);
        }
    }

    #[test]
    fn a_short_key_is_rejected_and_debug_output_hides_the_key() {
        assert_eq!(Keyring::new(Some("fifteen letters")).unwrap_err(), InvalidKeyLength);
        assert_eq!(Keyring::new(Some("")).unwrap_err(), InvalidKeyLength);
        assert_eq!(format!("{:?}", keyring("sixteen letters!")), "Keyring(…)");
    }
}
