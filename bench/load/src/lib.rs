//! Library of the load generator: requests, responses, the event loop, result figures and tables.

pub mod arguments;
pub mod document_generator;
pub mod growth;
pub mod request;
pub mod response;
pub mod results;
pub mod schedule;
pub mod summary;
pub mod tail;
pub mod webhooks;
pub mod worker;
