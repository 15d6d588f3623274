//! The values that [`Store`](crate::Store) methods take and return.

mod account;
mod template;
mod upload;
mod webhook;

pub use account::*;
pub use template::*;
pub use upload::*;
pub use webhook::*;
