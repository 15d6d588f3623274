//! What a message template is: how a document is read, which rules it has to meet, and what it
//! becomes once it has met them. Everything here is pure: no I/O, no clock, no randomness.
//!
//! The way of a document: bytes → [`json::Document`] → [`template::Template::read`] with a
//! [`rulebook::Rulebook`] → a [`template::Template`], or every [`violation::Violation`] at once.

pub mod advice;
pub mod convert;
pub mod credential;
pub mod delivery;
pub mod edit;
pub mod graph_codes;
pub mod id;
pub mod json;
mod language;
pub mod lifecycle;
pub mod lifecycle_page;
mod marks;
mod moment;
mod phrase;
mod placeholder;
mod reader;
pub mod render;
pub mod review;
pub mod rulebook;
pub mod rules_page;
pub mod sample;
pub mod schema;
pub mod search;
pub mod suggest;
pub mod template;
mod text;
pub mod violation;
pub mod webhook;
pub mod wording;
mod words;
