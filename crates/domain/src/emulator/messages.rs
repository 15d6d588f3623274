//! Messages of the sandbox: their ids, and when their statuses happen.

use std::{fmt, str::FromStr};

use jiff::SignedDuration;

use super::recipients::MessageFate;
use crate::{
    id::{AccountId, ParseIdError},
    string_enum::string_enum,
};

/// How long messages are kept, in real time.
pub const RETENTION: SignedDuration = SignedDuration::from_secs(24 * 60 * 60);

/// The largest number of messages that are kept of an account.
pub const MAX_KEPT: u64 = 10_000;

/// The largest number of statuses in one webhook request.
pub const MAX_STATUSES_PER_REQUEST: usize = 100;

string_enum!(
    /// The status of a message.
    MessageStatus {
        /// The sandbox has taken it.
        Accepted "accepted",
        /// It left for the recipient.
        Sent "sent",
        /// It reached the recipient's device.
        Delivered "delivered",
        /// The recipient has read it.
        Read "read",
        /// It did not reach the recipient.
        Failed "failed",
    }
);

/// A status of a message and its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StatusStep {
    /// The time after the send, on the account's clock.
    pub after: SignedDuration,
    /// The status.
    pub status: MessageStatus,
    /// The code of a failure.
    pub code: Option<u32>,
}

/// The statuses of a message, in the order of their times. A refused send has none.
pub fn timeline(fate: MessageFate) -> Vec<StatusStep> {
    let step = |seconds, status| StatusStep {
        after: SignedDuration::from_secs(seconds),
        status,
        code: None,
    };
    let sent = step(0, MessageStatus::Sent);
    match fate {
        MessageFate::Read => {
            vec![sent, step(1, MessageStatus::Delivered), step(3, MessageStatus::Read)]
        }
        MessageFate::Fails(code) => {
            vec![sent, StatusStep { code: Some(code), ..step(1, MessageStatus::Failed) }]
        }
        MessageFate::Refused(_) => Vec::new(),
    }
}

/// The id of a message: the account and the number of the message in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct MessageId {
    /// The account.
    pub account: AccountId,
    /// The number of the message in the account, from 1.
    pub number: u64,
}

/// The beginning of every id.
const PREFIX: &str = "wamid.sandbox.";

/// The alphabet of base64url.
const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/// The letters of 16 bytes in base64url without padding. The last one has 2 bits, the others 6.
const LETTERS: u32 = 22;

impl fmt::Display for MessageId {
    /// `wamid.sandbox.` and the base64url of account and number, each as 8 bytes.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bits = u128::from(self.account.get()) << 64 | u128::from(self.number);
        let digit = |index: u32| match index {
            21 => bits << 4,
            _ => bits >> (122 - 6 * index),
        };
        let letters = (0..LETTERS).map(|index| {
            let digit = usize::try_from(digit(index) & 63).unwrap_or_default();
            char::from(ALPHABET[digit])
        });
        write!(out, "{PREFIX}{}", letters.collect::<String>())
    }
}

impl FromStr for MessageId {
    type Err = ParseIdError;

    /// Parses what [`fmt::Display`] writes.
    fn from_str(text: &str) -> Result<Self, ParseIdError> {
        let letters = text.strip_prefix(PREFIX).ok_or(ParseIdError)?;
        let mut bits = 0_u128;
        for letter in letters.bytes().take(21) {
            let digit = ALPHABET.iter().position(|it| *it == letter).ok_or(ParseIdError)?;
            bits = bits << 6 | digit as u128;
        }
        let last = *letters.as_bytes().get(21).ok_or(ParseIdError)?;
        let last = ALPHABET.iter().position(|it| *it == last).ok_or(ParseIdError)?;
        bits = bits << 2 | (last >> 4) as u128;
        let halves = [bits >> 64, bits & u128::from(u64::MAX)];
        let [account, number] = halves.map(|half| u64::try_from(half).unwrap_or_default());
        let id = Self { account: AccountId::new(account).ok_or(ParseIdError)?, number };
        if id.to_string() == text { Ok(id) } else { Err(ParseIdError) }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_message_is_sent_delivered_and_read_or_fails() {
        let line = |StatusStep { after, status, code }: &StatusStep| {
            format!("{} {} {}", after.as_secs(), status.as_str(), code.unwrap_or_default())
        };
        let lines = |fate| timeline(fate).iter().map(line).collect::<Vec<_>>();
        assert_eq!(lines(MessageFate::Read), ["0 sent 0", "1 delivered 0", "3 read 0"]);
        assert_eq!(lines(MessageFate::Fails(131_026)), ["0 sent 0", "1 failed 131026"]);
        assert_eq!(lines(MessageFate::Refused(131_056)), [""; 0]);
    }

    #[test]
    fn an_id_is_the_base64url_of_account_and_number() {
        let id = MessageId { account: AccountId::new(1).unwrap(), number: 2 };
        assert_eq!(id.to_string(), "wamid.sandbox.AAAAAAAAAAEAAAAAAAAAAg");
        for other in [
            "",
            "wamid.sandbox.",
            "wamid.AAAAAAAAAAEAAAAAAAAAAg",
            "wamid.sandbox.AAAAAAAAAAEAAAAAAAAAAg==",
            "wamid.sandbox.AAAAAAAAAAEAAAAAAAAAAh",
            "wamid.sandbox.AAAAAAAAAAAAAAAAAAAAAg",
            "wamid.sandbox.AAAAAAAAAAEAAAAAAAAAA!",
        ] {
            assert_eq!(other.parse::<MessageId>(), Err(ParseIdError), "{other}");
        }
    }

    proptest! {
        #[test]
        fn an_id_is_parsed_as_it_is_displayed(account in 1_u64..1 << 53, number: u64) {
            let id = MessageId { account: AccountId::new(account).unwrap(), number };
            let text = id.to_string();
            prop_assert!(text.len() == PREFIX.len() + 22 && text.is_ascii());
            prop_assert_eq!(text.parse(), Ok(id));
        }
    }
}
