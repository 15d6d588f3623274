//! The load generator's parts: requests, answers, the event loop, and the figures that come out.

pub mod arguments;
pub mod request;
pub mod response;
pub mod summary;
pub mod worker;
