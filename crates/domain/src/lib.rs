//! The rules of message templates. Everything in this crate is pure: no I/O, no clock, no
//! randomness.
//!
//! A request body becomes a [`document::Document`]. [`template::Template::read`] checks it against a
//! [`rulebook::Rulebook`] and returns a [`template::Template`] or every
//! [`violation::Violation`].
//!
//! Imports between these modules form no cycle; a test enforces this. ARCHITECTURE.md lists them from
//! the lowest to the highest.

pub mod account;
pub mod convert;
pub mod document;
pub mod emulator;
pub mod id;
mod id_catalogue;
pub mod proof;
pub mod reference;
pub mod render;
pub mod rulebook;
pub mod send;
mod string_enum;
pub mod template;
pub mod token;
pub mod upstream;
mod validation;
pub mod violation;
pub mod webhook;

pub use validation::timestamp;
