//! Signatures according to Standard Webhooks 1.0: an HMAC over id, timestamp and body. A receiver can
//! verify that a message is from Galley and detect replayed messages.

use std::fmt;

use base64::{
    Engine as _, alphabet,
    engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig},
};
use hmac::{Hmac, KeyInit as _, Mac as _};
use jiff::{SignedDuration, Timestamp};
use sha2::Sha256;
use thiserror::Error;

/// The header with the message id, the same in every delivery attempt.
pub const ID_HEADER: &str = "webhook-id";
/// The header with the time of the attempt, in seconds since the Unix epoch.
pub const TIMESTAMP_HEADER: &str = "webhook-timestamp";
/// The header with the signatures.
pub const SIGNATURE_HEADER: &str = "webhook-signature";

const PREFIX: &str = "whsec_";
const VERSION: &str = "v1,";

/// Maximum difference between the timestamp of a message and the receiver's clock.
const TOLERANCE: SignedDuration = SignedDuration::from_mins(5);

/// Encodes with padding; decodes with or without.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// A signing secret shared with a receiver: 24 to 64 random bytes, or an app secret in Meta's format.
#[derive(Clone)]
pub struct Secret(Vec<u8>);

/// The text is not a signing secret. The message does not repeat it, because it may be nearly one.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[error(
    "A signing secret is whsec_ followed by 24 to 64 bytes in Base64; or, for the format whatsapp, 16 to \
     256 printable characters. Copy it exactly as it was shown."
)]
pub struct InvalidSecret;

/// The signature headers of a message.
#[derive(Clone, Copy, Debug)]
pub struct SignatureHeaders<'a> {
    /// `webhook-id`.
    pub id: &'a str,
    /// `webhook-timestamp`.
    pub timestamp: &'a str,
    /// `webhook-signature`.
    pub signature: &'a str,
}

/// Why a signature is not valid.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum SignatureError {
    /// The timestamp cannot be parsed.
    #[error("The header webhook-timestamp is not a number of seconds since the Unix epoch.")]
    InvalidTimestamp,
    /// The timestamp is more than five minutes in the past.
    #[error("The message is more than five minutes old, or one of the two clocks is wrong.")]
    TooOld,
    /// The timestamp is more than five minutes in the future.
    #[error(
        "The timestamp of the message is more than five minutes in the future; one of the two \
         clocks is wrong."
    )]
    TooNew,
    /// No signature matches.
    #[error(
        "No signature matches: the secret is different, or the id, the timestamp or the body was \
         modified."
    )]
    Mismatch,
}

impl Secret {
    /// Generates a secret of 32 bytes. `fill` provides the random bytes.
    pub fn generate(fill: impl FnOnce(&mut [u8])) -> Self {
        let mut bytes = vec![0; 32];
        fill(&mut bytes);
        Self(bytes)
    }

    /// Parses the form that [`Secret::reveal`] returns.
    pub fn parse(text: &str) -> Result<Self, InvalidSecret> {
        let encoded = text.strip_prefix(PREFIX).ok_or(InvalidSecret)?;
        let bytes = BASE64.decode(encoded).map_err(|_| InvalidSecret)?;
        if (24..=64).contains(&bytes.len()) { Ok(Self(bytes)) } else { Err(InvalidSecret) }
    }

    /// Generates an app secret of 32 characters from 16 random bytes.
    pub fn generate_app_secret(fill: impl FnOnce(&mut [u8])) -> Self {
        let mut bytes = [0; 16];
        fill(&mut bytes);
        Self(format!("{:032x}", u128::from_be_bytes(bytes)).into_bytes())
    }

    /// Creates an app secret; the bytes of the text are the key.
    pub fn from_app_secret(text: &str) -> Result<Self, InvalidSecret> {
        let is_printable = text.bytes().all(|byte| byte.is_ascii_graphic());
        if is_printable { Self::from_bytes(text.as_bytes().to_vec()) } else { Err(InvalidSecret) }
    }

    /// Parses a secret of either kind.
    pub fn parse_any(text: &str) -> Result<Self, InvalidSecret> {
        if text.starts_with(PREFIX) { Self::parse(text) } else { Self::from_app_secret(text) }
    }

    /// An app secret in plain text. It is shown to its owner once.
    pub fn reveal_app_secret(&self) -> String {
        String::from_utf8_lossy(&self.0).into_owned()
    }

    /// The secret in plain text. It is shown to its owner once.
    pub fn reveal(&self) -> String {
        format!("{PREFIX}{}", BASE64.encode(&self.0))
    }

    pub(super) fn from_bytes(bytes: Vec<u8>) -> Result<Self, InvalidSecret> {
        if (16..=256).contains(&bytes.len()) { Ok(Self(bytes)) } else { Err(InvalidSecret) }
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.0
    }

    fn hmac(&self, id: &str, seconds: i64, body: &[u8]) -> Hmac<Sha256> {
        let mut hmac = Hmac::new_from_slice(&self.0).expect("HMAC accepts keys of any length");
        hmac.update(format!("{id}.{seconds}.").as_bytes());
        hmac.update(body);
        hmac
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Secret(…)")
    }
}

/// Signs a message; returns the value of `webhook-signature`. During a rotation there are two
/// secrets, and the receiver may know either.
pub fn sign(secrets: &[Secret], id: &str, at: Timestamp, body: &[u8]) -> String {
    let signatures = secrets.iter().map(|secret| {
        let hmac = secret.hmac(id, at.as_second(), body).finalize().into_bytes();
        format!("{VERSION}{}", BASE64.encode(hmac))
    });
    signatures.collect::<Vec<_>>().join(" ")
}

/// Verifies the signature of a message as a receiver does.
pub fn verify(
    secret: &Secret,
    headers: SignatureHeaders<'_>,
    body: &[u8],
    now: Timestamp,
) -> Result<(), SignatureError> {
    let seconds: i64 = headers.timestamp.parse().map_err(|_| SignatureError::InvalidTimestamp)?;
    let at = Timestamp::from_second(seconds).map_err(|_| SignatureError::InvalidTimestamp)?;
    let age = now.duration_since(at);
    if age > TOLERANCE {
        return Err(SignatureError::TooOld);
    }
    if age < -TOLERANCE {
        return Err(SignatureError::TooNew);
    }
    let hmac = secret.hmac(headers.id, seconds, body);
    let matches = |signature: &str| {
        let encoded = signature.strip_prefix(VERSION).unwrap_or_default();
        // `verify_slice` compares in constant time.
        BASE64.decode(encoded).is_ok_and(|it| hmac.clone().verify_slice(&it).is_ok())
    };
    if headers.signature.split(' ').any(matches) { Ok(()) } else { Err(SignatureError::Mismatch) }
}
