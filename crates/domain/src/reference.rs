//! Reference documents generated from the tables: the JSON Schema of a rulebook, the rules page, the
//! lifecycle page and the reference of the emulator.

pub mod emulator_page;
pub mod json_schema;
pub mod lifecycle_page;
pub mod rules_page;
