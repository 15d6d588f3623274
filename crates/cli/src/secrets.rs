//! Secrets: random ones from the system's random source, and those that the operator chose.

pub(crate) mod file;

use std::collections::BTreeSet;

use anyhow::{Context as _, bail};
use galley_domain::account;
use galley_server::delivery::Random;

use crate::terminal;

/// A new secret with this prefix.
pub(crate) fn random(prefix: &str) -> anyhow::Result<String> {
    Ok(account::new_secret(prefix, bytes()?))
}

/// A random phone number id, for an account that accepts any.
pub(crate) fn phone() -> anyhow::Result<String> {
    let digits = bytes::<14>()?.map(|byte| char::from(b'0' + byte % 10));
    Ok(std::iter::once('1').chain(digits).collect())
}

/// A random id of an app, for the clients of an emulator.
pub(crate) fn app_id() -> anyhow::Result<String> {
    phone()
}

/// A short random id of this process.
pub(crate) fn instance() -> anyhow::Result<String> {
    const LETTERS: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz012345";
    let letters = bytes::<6>()?.map(|byte| char::from(LETTERS[usize::from(byte & 31)]));
    Ok(letters.into_iter().collect())
}

/// The system's random source, for the other crates.
pub(crate) struct SystemRandom;

impl Random for SystemRandom {
    fn fill(&self, bytes: &mut [u8]) {
        getrandom::fill(bytes).expect("the system's random source is available once processes run");
    }
}

fn bytes<const N: usize>() -> anyhow::Result<[u8; N]> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).context("the system's random source failed")?;
    Ok(bytes)
}

/// Checks a secret that the operator chose, for clients that already have it.
pub(crate) fn chosen(what: &str, secret: String) -> anyhow::Result<String> {
    if !account::is_valid_secret(&secret) {
        bail!(
            "the {what} must have 1 to {} of the characters A-Z a-z 0-9 . _ ~ + -",
            account::MAX_SECRET_BYTES
        );
    }
    if is_weak(&secret) {
        terminal::print_warning(format_args!("the {what} is weak; {STRONG_SECRET}"));
    }
    Ok(secret)
}

/// How to choose a secret that is not weak.
pub(crate) const STRONG_SECRET: &str =
    "use 20 or more random characters, for example from `openssl rand -hex 24`";

/// Words that occur in examples and guesses. They do not count towards the length of a secret.
const WELL_KNOWN_WORDS: [&str; 10] = [
    "secret", "password", "changeme", "default", "example", "test", "admin", "galley", "token",
    "12345678",
];

/// Minimum length of a secret in bytes.
const MIN_STRONG_BYTES: usize = 20;
/// Minimum length of a secret without the well-known words.
const MIN_UNKNOWN_BYTES: usize = 12;
/// Minimum number of distinct bytes.
const MIN_DISTINCT_BYTES: usize = 8;

/// Whether a secret is short, repetitive, or made of well-known words.
pub(crate) fn is_weak(secret: &str) -> bool {
    let distinct: BTreeSet<u8> = secret.bytes().collect();
    let lower = secret.to_ascii_lowercase();
    let unknown = WELL_KNOWN_WORDS.into_iter().fold(lower, |rest, word| rest.replace(word, ""));
    secret.len() < MIN_STRONG_BYTES
        || distinct.len() < MIN_DISTINCT_BYTES
        || unknown.len() < MIN_UNKNOWN_BYTES
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_repetitive_and_well_known_secrets_are_weak() {
        for weak in [
            "",
            "secret",
            "changeme",
            "test",
            "8fQ2vZr61LxTn40pWdc",
            "abcabcabcabcabcabcabcabc",
            "changeme-changeme-changeme",
            "My-Secret-Password-Test-1",
            "default_galley_token_test",
        ] {
            assert!(is_weak(weak), "{weak}");
        }
        for strong in [
            "8fQ2vZr61LxTn40pWdcJ",
            "secret-4f0d9b3c77e1a6",
            &random(account::prefix::TOKEN).unwrap(),
        ] {
            assert!(!is_weak(strong), "{strong}");
        }
    }
}
