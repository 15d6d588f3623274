//! Magic recipients: numbers that provoke a failure of a sandbox send, like the numbers of test
//! cards.

/// What happens to a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delivery {
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
    pub delivery: Delivery,
}

/// All magic recipients.
pub static MAGIC_RECIPIENTS: &[MagicRecipient] = &[
    MagicRecipient { number: "1555010131026", delivery: Delivery::Fails(131_026) },
    MagicRecipient { number: "1555010131049", delivery: Delivery::Fails(131_049) },
    MagicRecipient { number: "1555010131056", delivery: Delivery::Refused(131_056) },
    MagicRecipient { number: "1555010130429", delivery: Delivery::Refused(130_429) },
];

/// The digits of a phone number, without `+` and separators: the `wa_id` of the recipient.
pub fn wa_id(to: &str) -> String {
    to.chars().filter(char::is_ascii_digit).collect()
}

/// What happens to a message to this number.
pub fn delivery(to: &str) -> Delivery {
    let number = wa_id(to);
    let magic = MAGIC_RECIPIENTS.iter().find(|it| it.number == number);
    magic.map_or(Delivery::Read, |it| it.delivery)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::emulator::failures;

    #[test]
    fn a_magic_number_is_recognised_in_every_spelling() {
        for number in ["1555010131026", "+1555010131026", "+1 (555) 010-131026"] {
            assert_eq!(delivery(number), Delivery::Fails(131_026), "{number}");
        }
        assert_eq!(delivery("15550101310"), Delivery::Read);
        assert_eq!(wa_id("+1 (555) 010-0001"), "15550100001");
    }

    #[test]
    fn a_number_ends_in_the_code_that_it_provokes() {
        for MagicRecipient { number, delivery } in MAGIC_RECIPIENTS {
            let (Delivery::Fails(code) | Delivery::Refused(code)) = *delivery else {
                panic!("{number}")
            };
            assert_eq!(*number, format!("1555010{code}"));
            assert!(number.len() <= 15 && failures::find(code).is_some(), "{number}");
        }
    }
}
