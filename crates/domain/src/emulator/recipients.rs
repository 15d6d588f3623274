//! Magic recipients: numbers that provoke a failure of a sandbox send, like the numbers of test
//! cards.

/// What happens to a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MessageFate {
    /// It is sent, delivered and read.
    Read,
    /// It is sent and then fails with this code.
    Fails(u32),
    /// The send is refused with this code.
    Refused(u32),
}

/// A number with its result.
#[derive(Debug)]
pub struct MagicRecipient {
    /// The number, in digits: `1555010` and the code.
    pub number: &'static str,
    /// What happens to a message to it.
    pub fate: MessageFate,
}

/// All magic recipients.
pub static MAGIC_RECIPIENTS: &[MagicRecipient] = &[
    MagicRecipient { number: "1555010131026", fate: MessageFate::Fails(131_026) },
    MagicRecipient { number: "1555010131049", fate: MessageFate::Fails(131_049) },
    MagicRecipient { number: "1555010131056", fate: MessageFate::Refused(131_056) },
    MagicRecipient { number: "1555010130429", fate: MessageFate::Refused(130_429) },
];

/// What happens to a message to this number: its digits, the `wa_id` of a
/// [`Message`](crate::send::Message).
pub fn fate(wa_id: &str) -> MessageFate {
    let magic = MAGIC_RECIPIENTS.iter().find(|it| it.number == wa_id);
    magic.map_or(MessageFate::Read, |it| it.fate)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::emulator::failures;

    #[test]
    fn a_message_to_any_other_number_is_read() {
        assert_eq!(fate("1555010131026"), MessageFate::Fails(131_026));
        assert_eq!(fate("1555010131056"), MessageFate::Refused(131_056));
        assert_eq!(fate("15550101310"), MessageFate::Read);
        assert_eq!(fate("15550100001"), MessageFate::Read);
    }

    #[test]
    fn a_number_ends_in_the_code_that_it_provokes() {
        for MagicRecipient { number, fate } in MAGIC_RECIPIENTS {
            let (MessageFate::Fails(code) | MessageFate::Refused(code)) = *fate else {
                panic!("{number}")
            };
            assert_eq!(*number, format!("1555010{code}"));
            assert!(number.len() <= 15 && failures::find(code).is_some(), "{number}");
        }
    }
}
