//! What the console adds to the API: sessions, and the protection of its cookie.

pub(crate) mod cookie;
pub(crate) mod cross_site;
pub(crate) mod session;
