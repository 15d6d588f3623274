//! Faults: which one strikes a call, and what that changes.

use galley_domain::emulator::faults::{self, Call, CountedFault, Fault, FaultEffect};

use crate::{
    StoreError, StoredFault,
    stored_row::{Row, StoredRow as _},
};

/// The fault that strikes a call, and the faults that have counted it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct FaultDecision {
    pub(crate) effect: Option<FaultEffect>,
    pub(crate) counted: Vec<StoredFault>,
}

/// Decides which of the faults, oldest first, strikes a call.
pub(crate) fn decide(stored: Vec<StoredFault>, call: Call, name: Option<&str>) -> FaultDecision {
    let mut after: Vec<CountedFault> = stored.iter().map(|it| it.counted.clone()).collect();
    let struck = faults::decide(&mut after, call, name);
    let effect = struck.map(|index| after[index].fault.effect);
    let counted = stored.into_iter().zip(after).filter(|(before, after)| before.counted != *after);
    let counted = counted.map(|(before, counted)| StoredFault { counted, ..before }).collect();
    FaultDecision { effect, counted }
}

impl StoredFault {
    /// Whether it never strikes again.
    pub(crate) fn is_spent(&self) -> bool {
        self.counted.fault.is_spent(self.counted.matched)
    }
}

/// The fault in a row.
pub(crate) fn fault(row: &Row<'_>) -> Result<StoredFault, StoreError> {
    let (fault, matched) = (row.parsed("document", Fault::restore)?, row.number("matched")?);
    Ok(StoredFault {
        number: row.number("number")?,
        counted: CountedFault { fault, matched },
        created_at: row.timestamp("created_at")?,
    })
}

#[cfg(test)]
mod tests {
    use galley_domain::document::Document;
    use jiff::Timestamp;

    use super::*;

    fn stored(number: u64, document: &str) -> StoredFault {
        let fault = Fault::read(&Document::parse(document.as_bytes()).unwrap()).unwrap();
        let counted = CountedFault { fault, matched: 0 };
        StoredFault { number, counted, created_at: Timestamp::UNIX_EPOCH }
    }

    #[test]
    fn only_the_faults_that_counted_the_call_are_written() {
        let faults = vec![
            stored(1, r#"{"call":"edit","kind":"truncate","times":1}"#),
            stored(2, r#"{"call":"create","kind":"truncate","share":0.5}"#),
            stored(3, r#"{"call":"create","kind":"close_before","times":1}"#),
            stored(4, r#"{"call":"create","kind":"truncate","times":1}"#),
        ];
        let FaultDecision { effect, counted } = decide(faults.clone(), Call::Create, Some("a"));
        assert_eq!(effect, Some(FaultEffect::CloseBefore));
        let counted: Vec<_> =
            counted.iter().map(|it| (it.number, it.counted.matched, it.is_spent())).collect();
        assert_eq!(counted, [(2, 1, false), (3, 1, true)]);
        let none = FaultDecision { effect: None, counted: Vec::new() };
        assert_eq!(decide(faults, Call::Delete, None), none);
    }
}
