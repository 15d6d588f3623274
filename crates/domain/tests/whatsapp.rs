//! Every rule of the `whatsapp` rulebook: a minimal document that breaks it, a similar valid one, and
//! the pointer of the violation. `rules.rs` tests the rules of `v1`.

mod at_once;
mod client_documents;
mod fixture;
mod formats;
mod limits;
mod placement;
mod recorded;
mod table;
mod warnings;
