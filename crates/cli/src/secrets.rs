//! Random secrets and ids from the system's random source.

use anyhow::{Context as _, bail};
use galley_domain::account;
use galley_server::delivery::Random;

/// URL-safe characters. Their number is a power of two, so that all are equally likely.
const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/// A new secret: the prefix followed by 192 random bits.
pub(crate) fn random(prefix: &str) -> anyhow::Result<String> {
    let letters = bytes::<32>()?.map(|byte| char::from(ALPHABET[usize::from(byte & 63)]));
    Ok(prefix.chars().chain(letters).collect())
}

/// A random phone number id, for an account that accepts any.
pub(crate) fn phone() -> anyhow::Result<String> {
    let digits = bytes::<14>()?.map(|byte| char::from(b'0' + byte % 10));
    Ok(std::iter::once('1').chain(digits).collect())
}

/// A short random id of this process.
pub(crate) fn instance() -> anyhow::Result<String> {
    let letters = bytes::<6>()?.map(|byte| char::from(ALPHABET[usize::from(byte & 31) + 26]));
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
        eprintln!("warning: the {what} is weak; use 20 or more random characters");
    }
    Ok(secret)
}

fn is_weak(secret: &str) -> bool {
    let mut letters: Vec<u8> = secret.bytes().collect();
    letters.sort_unstable();
    letters.dedup();
    secret.len() < 20 || letters.len() < 8
}
