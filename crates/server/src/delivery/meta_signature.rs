//! Signatures in Meta's format: one header with an HMAC-SHA256 of the body under the app secret.

use std::fmt::Write as _;

use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;

use super::signature::{Secret, SignatureError};

/// The header with the signature. It holds a single one.
pub const META_SIGNATURE_HEADER: &str = "x-hub-signature-256";

const PREFIX: &str = "sha256=";

/// Signs a body; returns the value of the header.
pub fn sign_meta(secret: &Secret, body: &[u8]) -> String {
    let mut out = String::from(PREFIX);
    for byte in hmac(secret, body).finalize().into_bytes() {
        let _ = write!(out, "{byte:02x}");
    }
    out
}

/// Verifies the signature of a body.
pub fn verify_meta(secret: &Secret, signature: &str, body: &[u8]) -> Result<(), SignatureError> {
    let bytes =
        signature.strip_prefix(PREFIX).and_then(decode_hex).ok_or(SignatureError::Mismatch)?;
    // `verify_slice` compares in constant time.
    hmac(secret, body).verify_slice(&bytes).map_err(|_| SignatureError::Mismatch)
}

fn hmac(secret: &Secret, body: &[u8]) -> Hmac<Sha256> {
    let hmac = Hmac::new_from_slice(secret.bytes()).expect("HMAC accepts keys of any length");
    hmac.chain_update(body)
}

/// Decodes hexadecimal digits.
fn decode_hex(hex: &str) -> Option<Vec<u8>> {
    let digits = |pair: &[u8]| {
        let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|it| u8::try_from(it).ok());
        match pair {
            [high, low] => Some(16 * digit(*high)? + digit(*low)?),
            _ => None,
        }
    };
    hex.as_bytes().chunks(2).map(digits).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signature_matches_an_independent_implementation() {
        let secret = Secret::from_app_secret("0123456789abcdef0123456789abcdef").unwrap();
        let body = r#"{"object":"whatsapp_business_account"}"#.as_bytes();
        // python3: hmac.new(secret, body, hashlib.sha256).hexdigest()
        let signature = "sha256=e3d59d231b02104529f72ed309769c75fdbc42fc9cb15257538b2012f031af65";
        assert_eq!(sign_meta(&secret, body), signature);
        assert_eq!(verify_meta(&secret, signature, body), Ok(()));
        for other in ["", "sha256=", "sha256=0", "sha256=xyz", &signature[..70], &signature[7..]] {
            assert_eq!(verify_meta(&secret, other, body), Err(SignatureError::Mismatch), "{other}");
        }
        assert!(verify_meta(&secret, signature, b"{}").is_err());
        let another = Secret::from_app_secret("fedcba9876543210fedcba9876543210").unwrap();
        assert!(verify_meta(&another, signature, body).is_err());
    }
}
