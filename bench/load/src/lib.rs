//! The load generator's parts: requests, answers, the event loop, the figures that come out, and the
//! tables that they are put in.

pub mod arguments;
pub mod growth;
pub mod request;
pub mod response;
pub mod results;
pub mod summary;
pub mod variety;
pub mod webhooks;
pub mod worker;
