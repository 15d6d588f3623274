//! What both databases decide, as pure functions on loaded rows, and how these rows are decoded. A
//! backend loads the rows, calls the decision, and writes its result.

pub(crate) mod audit;
pub(crate) mod stored_bytes;
