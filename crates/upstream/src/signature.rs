//! Signatures of webhooks and the proof of the app secret.

use std::fmt::Write as _;

use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;

use crate::secret::Secret;

/// Whether the header `X-Hub-Signature-256` is the signature of this body under the app secret. The
/// time that the comparison takes does not depend on the signature.
pub fn verify_hook(app_secret: &Secret, body: &[u8], signature: &str) -> bool {
    let Some(expected) = signature.strip_prefix("sha256=").and_then(decode_hex) else {
        return false;
    };
    hmac(app_secret, body).verify_slice(&expected).is_ok()
}

/// The parameter `appsecret_proof`, which shows that the sender of a token knows the app secret.
pub(crate) fn app_secret_proof(app_secret: &Secret, token: &Secret) -> String {
    let mut proof = String::with_capacity(64);
    for byte in hmac(app_secret, token.expose().as_bytes()).finalize().into_bytes() {
        let _ = write!(proof, "{byte:02x}");
    }
    proof
}

fn hmac(key: &Secret, message: &[u8]) -> Hmac<Sha256> {
    let hmac = Hmac::<Sha256>::new_from_slice(key.expose().as_bytes());
    hmac.expect("HMAC accepts keys of any length").chain_update(message)
}

/// Decodes hexadecimal digits.
fn decode_hex(hex: &str) -> Option<Vec<u8>> {
    let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|it| u8::try_from(it).ok());
    let byte = |pair: &[u8]| match pair {
        [high, low] => Some(16 * digit(*high)? + digit(*low)?),
        _ => None,
    };
    hex.as_bytes().chunks(2).map(byte).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signature_matches_an_independent_implementation() {
        let secret = Secret::new("0123456789abcdef0123456789abcdef");
        let body = br#"{"object":"whatsapp_business_account"}"#;
        // python3: hmac.new(secret, body, hashlib.sha256).hexdigest()
        let signature = "sha256=e3d59d231b02104529f72ed309769c75fdbc42fc9cb15257538b2012f031af65";
        assert!(verify_hook(&secret, body, signature));
        assert!(verify_hook(&secret, body, &signature.to_uppercase().replace("SHA", "sha")));
        let (odd, short) = (&signature[..70], &signature[..69]);
        for other in ["", "sha256=", "sha256=0", "sha256=xyz", odd, short, &signature[7..]] {
            assert!(!verify_hook(&secret, body, other), "{other}");
        }
        assert!(!verify_hook(&secret, b"{}", signature));
        assert!(!verify_hook(&Secret::new("another"), body, signature));
    }

    #[test]
    fn a_proof_matches_an_independent_implementation() {
        // python3: hmac.new(b"app-secret", b"token", hashlib.sha256).hexdigest()
        let proof = app_secret_proof(&Secret::new("app-secret"), &Secret::new("token"));
        assert_eq!(proof, "4b062935fec529e51d39e89ee371a452c231b1e0c5549ac72d83fc4f3a0b0471");
    }
}
