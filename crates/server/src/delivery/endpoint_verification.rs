//! Meta's endpoint verification: before Galley sends events to a URL, the endpoint must echo a
//! challenge and know the verify token. This proves that its owner registered it.

use thiserror::Error;
use url::Url;

use super::{
    context::Random,
    http_client::{Failure, WebhookClient},
    ssrf::ResolvedTarget,
};

/// Why the verification of an endpoint failed. Contains nothing of the response body, which may be
/// from any server.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum VerificationError {
    /// The endpoint did not respond.
    #[error("The endpoint did not respond to the `hub.challenge` request: {0}")]
    NoResponse(Failure),
    /// The status is not 200.
    #[error(
        "The endpoint responded to the `hub.challenge` request with {0} instead of 200; 403 often \
         means that it expects another `verify_token`"
    )]
    Status(u16),
    /// The body, of this many bytes, is not the challenge.
    #[error(
        "The endpoint responded to the `hub.challenge` request with 200, but the body is not the \
         challenge (body length in bytes: {0})"
    )]
    WrongBody(usize),
}

/// Sends the verification request and checks the response.
pub(super) async fn verify_endpoint(
    client: &dyn WebhookClient,
    random: &dyn Random,
    mut target: ResolvedTarget,
    token: &str,
) -> Result<(), VerificationError> {
    let challenge = challenge(random);
    add_query(&mut target.url, token, &challenge);
    let response = client.get(target).await.map_err(VerificationError::NoResponse)?;
    if response.status != 200 {
        return Err(VerificationError::Status(response.status));
    }
    if response.body.trim_ascii() != challenge.as_bytes() {
        return Err(VerificationError::WrongBody(response.body.len()));
    }
    Ok(())
}

/// Ten digits starting with 1, so that receivers can parse it as a string or as a number.
fn challenge(random: &dyn Random) -> String {
    let mut bytes = [0; 4];
    random.fill(&mut bytes);
    format!("1{:09}", u32::from_be_bytes(bytes) % 1_000_000_000)
}

/// Appends the verification parameters to the query of a URL.
fn add_query(url: &mut Url, token: &str, challenge: &str) {
    url.query_pairs_mut().extend_pairs([
        ("hub.mode", "subscribe"),
        ("hub.challenge", challenge),
        ("hub.verify_token", token),
    ]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parameters_are_appended_to_an_existing_query() {
        for (url, expected) in [
            (
                "https://a.b/hook",
                "https://a.b/hook?hub.mode=subscribe&hub.challenge=7&hub.verify_token=t+%26",
            ),
            (
                "https://a.b?x=%20y&z",
                "https://a.b/?x=%20y&z&hub.mode=subscribe&hub.challenge=7&hub.verify_token=t+%26",
            ),
        ] {
            let mut url = Url::parse(url).unwrap();
            add_query(&mut url, "t &", "7");
            assert_eq!(url.as_str(), expected);
        }
    }

    #[test]
    fn a_challenge_is_unchanged_when_parsed_as_a_number() {
        struct ConstantBytes(u8);
        impl Random for ConstantBytes {
            fn fill(&self, bytes: &mut [u8]) {
                bytes.fill(self.0);
            }
        }
        for byte in [0, 7, 255] {
            let text = challenge(&ConstantBytes(byte));
            assert_eq!(text.len(), 10);
            assert_eq!(text.parse::<i32>().unwrap().to_string(), text);
        }
    }
}
