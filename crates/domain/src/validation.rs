//! Validation: reads a document against a rulebook's table and reports every violation.

pub(crate) mod formats;
pub(crate) mod formatting;
pub(crate) mod languages;
pub(crate) mod placeholder_context;
pub(crate) mod placeholders;
pub(crate) mod reader;
pub mod timestamp;
pub(crate) mod warnings;
pub(crate) mod whatsapp_name;
