//! The question that an address is asked, as Meta does, before anything is sent to it: whether
//! whoever registers it is the one who answers there.

use thiserror::Error;
use url::Url;

use super::{
    context::Random,
    http_client::{Failure, Outgoing},
    ssrf::Admitted,
};

/// Why an address is not believed. What it sent is not repeated: it may be anybody's page.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum NoHandshake {
    /// There was no answer.
    #[error("The address was asked with `hub.challenge` and did not answer: {0}")]
    Silent(Failure),
    /// The answer was another one.
    #[error(
        "The address was asked with `hub.challenge` and answered {0} where 200 is needed; 403 often \
         means that it knows another `verify_token`"
    )]
    Status(u16),
    /// The answer was good but for what it said.
    #[error(
        "The address was asked with `hub.challenge` and answered 200, but with {0} other bytes in \
         the place of the challenge"
    )]
    Another(usize),
}

/// Asks an address for the challenge.
pub(super) async fn shake(
    outgoing: &dyn Outgoing,
    random: &dyn Random,
    mut address: Admitted,
    token: &str,
) -> Result<(), NoHandshake> {
    let challenge = challenge(random);
    ask(&mut address.url, token, &challenge);
    let page = outgoing.get(address).await.map_err(NoHandshake::Silent)?;
    if page.status != 200 {
        return Err(NoHandshake::Status(page.status));
    }
    if page.body.trim_ascii() != challenge.as_bytes() {
        return Err(NoHandshake::Another(page.body.len()));
    }
    Ok(())
}

/// Ten digits, the first of them 1: receivers read it as a text or as a number.
fn challenge(random: &dyn Random) -> String {
    let mut bytes = [0; 4];
    random.fill(&mut bytes);
    format!("1{:09}", u32::from_be_bytes(bytes) % 1_000_000_000)
}

/// Puts the question behind whatever the query of an address says already.
fn ask(url: &mut Url, token: &str, challenge: &str) {
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
    fn the_question_stands_behind_what_the_address_has() {
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
            ask(&mut url, "t &", "7");
            assert_eq!(url.as_str(), expected);
        }
    }

    #[test]
    fn a_challenge_is_a_number_that_is_written_like_the_text() {
        struct Bytes(u8);
        impl Random for Bytes {
            fn fill(&self, bytes: &mut [u8]) {
                bytes.fill(self.0);
            }
        }
        for byte in [0, 7, 255] {
            let text = challenge(&Bytes(byte));
            assert_eq!(text.len(), 10);
            assert_eq!(text.parse::<i32>().unwrap().to_string(), text);
        }
    }
}
