//! Reference documents generated from the tables: the JSON Schema of a rulebook, the rules page and
//! the lifecycle page.

pub mod json_schema;
pub mod lifecycle_page;
pub mod rules_page;
