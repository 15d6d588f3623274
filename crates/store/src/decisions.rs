//! What both databases decide, as pure functions on loaded rows. A backend loads the rows, calls
//! the decision, and writes its result.

pub(crate) mod accounts;
mod clock_guard;
pub(crate) mod credentials;
pub(crate) mod events;
pub(crate) mod uploads;
