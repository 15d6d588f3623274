//! Secrets from the system's random source.

use anyhow::{Context as _, bail};
use galley_domain::account;
use galley_server::delivery::Random;

/// URL-safe, and a power of two, so that every letter is as likely as any other.
const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/// A new secret: the prefix and 192 random bits.
pub(crate) fn random(prefix: &str) -> anyhow::Result<String> {
    let letters = bytes::<32>()?.map(|byte| char::from(ALPHABET[usize::from(byte & 63)]));
    Ok(prefix.chars().chain(letters).collect())
}

/// A phone number id that nobody has, for an account that takes any.
pub(crate) fn phone() -> anyhow::Result<String> {
    let digits = bytes::<14>()?.map(|byte| char::from(b'0' + byte % 10));
    Ok(std::iter::once('1').chain(digits).collect())
}

/// A short word that tells this process from others.
pub(crate) fn instance() -> anyhow::Result<String> {
    let letters = bytes::<6>()?.map(|byte| char::from(ALPHABET[usize::from(byte & 31) + 26]));
    Ok(letters.into_iter().collect())
}

/// The random source for those who need it later.
pub(crate) struct SystemRandom;

impl Random for SystemRandom {
    fn fill(&self, bytes: &mut [u8]) {
        getrandom::fill(bytes).expect("a system that has started a process has random numbers");
    }
}

fn bytes<const N: usize>() -> anyhow::Result<[u8; N]> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).context("the system's random source does not answer")?;
    Ok(bytes)
}

/// Takes a secret that somebody gives, because their clients have it built in.
pub(crate) fn given(what: &str, secret: String) -> anyhow::Result<String> {
    if !account::is_secret(&secret) {
        bail!(
            "the {what} has to be 1 to {} of the characters A-Z a-z 0-9 . _ ~ + -",
            account::MAX_SECRET_BYTES
        );
    }
    if is_weak(&secret) {
        eprintln!("warning: the {what} is weak; 20 or more random characters are hard to guess");
    }
    Ok(secret)
}

fn is_weak(secret: &str) -> bool {
    let mut letters: Vec<u8> = secret.bytes().collect();
    letters.sort_unstable();
    letters.dedup();
    secret.len() < 20 || letters.len() < 8
}
