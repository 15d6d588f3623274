//! Signatures as Standard Webhooks 1.0 has them: an HMAC over id, time and body, so that a receiver
//! can tell our messages from anybody else's, and a new one from one that was kept and sent again.

use std::fmt;

use base64::{
    Engine as _, alphabet,
    engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig},
};
use hmac::{Hmac, KeyInit as _, Mac as _};
use jiff::{SignedDuration, Timestamp};
use sha2::Sha256;
use thiserror::Error;

/// The header with the id of the message: the same for every attempt to deliver it.
pub const ID_HEADER: &str = "webhook-id";
/// The header with the time of the attempt, in seconds since 1970.
pub const TIMESTAMP_HEADER: &str = "webhook-timestamp";
/// The header with the signatures.
pub const SIGNATURE_HEADER: &str = "webhook-signature";

const PREFIX: &str = "whsec_";
const VERSION: &str = "v1,";

/// How far a message's time may be from the receiver's.
const TOLERANCE: SignedDuration = SignedDuration::from_mins(5);

/// Written with padding, read with or without.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// What a receiver shares with us: 24 to 64 random bytes, or an app secret as Meta has them.
#[derive(Clone)]
pub struct Secret(Vec<u8>);

/// The text is not a signing secret. It is not repeated here: it may be nearly one.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[error(
    "A signing secret is whsec_ and 24 to 64 bytes in Base64; or, for the format whatsapp, 16 to 256 \
     printable characters. Copy it as it was shown."
)]
pub struct NotASecret;

/// What the headers of a message say.
#[derive(Clone, Copy, Debug)]
pub struct Signed<'a> {
    /// `webhook-id`.
    pub id: &'a str,
    /// `webhook-timestamp`.
    pub timestamp: &'a str,
    /// `webhook-signature`.
    pub signature: &'a str,
}

/// Why a message should not be believed.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum NotVerified {
    /// The time cannot be read.
    #[error("The header webhook-timestamp is not a number of seconds since 1970.")]
    Timestamp,
    /// The message was sent before the last five minutes.
    #[error("The message is more than five minutes old; or one of the two clocks is wrong.")]
    TooOld,
    /// The message is from the future.
    #[error("The message is more than five minutes ahead; one of the two clocks is wrong.")]
    TooNew,
    /// No signature fits.
    #[error(
        "No signature fits: the secret is another one, or the id, the time or the body was \
         changed on the way."
    )]
    Signature,
}

impl Secret {
    /// A new secret of 32 bytes, which `fill` takes from a random source.
    pub fn generate(fill: impl FnOnce(&mut [u8])) -> Self {
        let mut bytes = vec![0; 32];
        fill(&mut bytes);
        Self(bytes)
    }

    /// The secret from how [`Secret::reveal`] writes it.
    pub fn parse(text: &str) -> Result<Self, NotASecret> {
        let encoded = text.strip_prefix(PREFIX).ok_or(NotASecret)?;
        let bytes = BASE64.decode(encoded).map_err(|_| NotASecret)?;
        if (24..=64).contains(&bytes.len()) { Ok(Self(bytes)) } else { Err(NotASecret) }
    }

    /// A new app secret of 32 characters, made of 16 bytes from a random source.
    pub fn generate_app(fill: impl FnOnce(&mut [u8])) -> Self {
        let mut bytes = [0; 16];
        fill(&mut bytes);
        Self(format!("{:032x}", u128::from_be_bytes(bytes)).into_bytes())
    }

    /// An app secret: the text is the key.
    pub fn of_app(text: &str) -> Result<Self, NotASecret> {
        let plain = text.bytes().all(|byte| byte.is_ascii_graphic());
        if plain { Self::from_bytes(text.as_bytes().to_vec()) } else { Err(NotASecret) }
    }

    /// Either kind, as it was shown.
    pub fn read(text: &str) -> Result<Self, NotASecret> {
        if text.starts_with(PREFIX) { Self::parse(text) } else { Self::of_app(text) }
    }

    /// An app secret as its owner gets to see it, once.
    pub fn reveal_app(&self) -> String {
        String::from_utf8_lossy(&self.0).into_owned()
    }

    /// The secret as its owner gets to see it, once.
    pub fn reveal(&self) -> String {
        format!("{PREFIX}{}", BASE64.encode(&self.0))
    }

    pub(super) fn from_bytes(bytes: Vec<u8>) -> Result<Self, NotASecret> {
        if (16..=256).contains(&bytes.len()) { Ok(Self(bytes)) } else { Err(NotASecret) }
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.0
    }

    fn hmac(&self, id: &str, seconds: i64, body: &[u8]) -> Hmac<Sha256> {
        let mut hmac = Hmac::new_from_slice(&self.0).expect("HMAC takes keys of every length");
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

/// The value of `webhook-signature` for a message sent `at` this time. While a secret is being
/// changed there are two, and the receiver may know either.
pub fn sign(secrets: &[Secret], id: &str, at: Timestamp, body: &[u8]) -> String {
    let signed = secrets.iter().map(|secret| {
        let hmac = secret.hmac(id, at.as_second(), body).finalize().into_bytes();
        format!("{VERSION}{}", BASE64.encode(hmac))
    });
    signed.collect::<Vec<_>>().join(" ")
}

/// What a receiver does before it believes a message.
pub fn verify(
    secret: &Secret,
    signed: Signed<'_>,
    body: &[u8],
    now: Timestamp,
) -> Result<(), NotVerified> {
    let seconds: i64 = signed.timestamp.parse().map_err(|_| NotVerified::Timestamp)?;
    let at = Timestamp::from_second(seconds).map_err(|_| NotVerified::Timestamp)?;
    let age = now.duration_since(at);
    if age > TOLERANCE {
        return Err(NotVerified::TooOld);
    }
    if age < -TOLERANCE {
        return Err(NotVerified::TooNew);
    }
    let hmac = secret.hmac(signed.id, seconds, body);
    let fits = |signature: &str| {
        let encoded = signature.strip_prefix(VERSION).unwrap_or_default();
        // Compared in constant time, so that a forger learns nothing from how long it took.
        BASE64.decode(encoded).is_ok_and(|it| hmac.clone().verify_slice(&it).is_ok())
    };
    if signed.signature.split(' ').any(fits) { Ok(()) } else { Err(NotVerified::Signature) }
}
