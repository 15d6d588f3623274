//! Rendering templates of the `whatsapp` rulebook: the results for each type of template, and a
//! minimal violation and the closest valid values for each rule.

pub(crate) mod fixture;
mod kinds;
mod limits;
mod messages;
mod payloads;
mod table;
