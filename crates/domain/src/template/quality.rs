//! The quality of a template, which recipients' reactions determine, and its changes.

use std::fmt;

use crate::string_enum::string_enum;

string_enum!(
    /// The quality of a template. A template of any quality can be sent.
    Quality {
        /// Not rated yet.
        Unknown "UNKNOWN",
        /// High.
        Green "GREEN",
        /// Medium.
        Yellow "YELLOW",
        /// Low: the template may be paused.
        Red "RED",
    }
);

/// A change of the quality, the reason of the event `template.quality_changed`: `GREEN to RED`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QualityChange {
    /// The quality before.
    pub from: Quality,
    /// The quality since.
    pub to: Quality,
}

impl QualityChange {
    /// Parses what [`fmt::Display`] writes.
    pub fn parse(text: &str) -> Option<Self> {
        let (from, to) = text.split_once(" to ")?;
        Some(Self { from: Quality::parse(from)?, to: Quality::parse(to)? })
    }
}

impl fmt::Display for QualityChange {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} to {}", self.from.as_str(), self.to.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_is_parsed_as_it_is_displayed() {
        let change = QualityChange { from: Quality::Green, to: Quality::Red };
        assert_eq!(change.to_string(), "GREEN to RED");
        assert_eq!(QualityChange::parse("GREEN to RED"), Some(change));
        for other in ["", "GREEN", "GREEN to", "GREEN to BLUE", "to RED"] {
            assert_eq!(QualityChange::parse(other), None, "{other}");
        }
    }
}
