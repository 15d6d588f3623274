//! What a change writes to the row of a template.

mod state;

pub(crate) use self::state::{ChangedTemplate, ChangedText, NewDecision};
