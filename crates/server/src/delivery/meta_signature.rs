//! Signatures as Meta has them, in one header: an HMAC over the body with the app secret.

use std::fmt::Write as _;

use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;

use super::signature::{NotVerified, Secret};

/// The header with the signature. It has room for one.
pub const HUB_HEADER: &str = "x-hub-signature-256";

const PREFIX: &str = "sha256=";

/// The value of the header for a body.
pub fn sign_hub(secret: &Secret, body: &[u8]) -> String {
    let mut out = String::from(PREFIX);
    for byte in hmac(secret, body).finalize().into_bytes() {
        let _ = write!(out, "{byte:02x}");
    }
    out
}

/// What a receiver does before it believes a message.
pub fn verify_hub(secret: &Secret, signature: &str, body: &[u8]) -> Result<(), NotVerified> {
    let bytes = signature.strip_prefix(PREFIX).and_then(bytes).ok_or(NotVerified::Signature)?;
    // Compared in constant time, so that a forger learns nothing from how long it took.
    hmac(secret, body).verify_slice(&bytes).map_err(|_| NotVerified::Signature)
}

fn hmac(secret: &Secret, body: &[u8]) -> Hmac<Sha256> {
    let hmac = Hmac::new_from_slice(secret.bytes()).expect("HMAC takes keys of every length");
    hmac.chain_update(body)
}

/// The bytes that are written as two digits each.
fn bytes(hex: &str) -> Option<Vec<u8>> {
    let digits = |pair: &[u8]| {
        let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|it| u8::try_from(it).ok());
        match pair {
            [high, low] => Some(digit(*high)? << 4 | digit(*low)?),
            _ => None,
        }
    };
    hex.as_bytes().chunks(2).map(digits).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signature_is_what_others_make_of_the_same_secret_and_body() {
        let secret = Secret::of_app("0123456789abcdef0123456789abcdef").unwrap();
        let body = r#"{"object":"whatsapp_business_account"}"#.as_bytes();
        // python3: hmac.new(secret, body, hashlib.sha256).hexdigest()
        let signature = "sha256=e3d59d231b02104529f72ed309769c75fdbc42fc9cb15257538b2012f031af65";
        assert_eq!(sign_hub(&secret, body), signature);
        assert_eq!(verify_hub(&secret, signature, body), Ok(()));
        for other in ["", "sha256=", "sha256=0", "sha256=xyz", &signature[..70], &signature[7..]] {
            assert_eq!(verify_hub(&secret, other, body), Err(NotVerified::Signature), "{other}");
        }
        assert!(verify_hub(&secret, signature, b"{}").is_err());
        let another = Secret::of_app("fedcba9876543210fedcba9876543210").unwrap();
        assert!(verify_hub(&another, signature, body).is_err());
    }
}
