//! The values that cross the [`Store`](crate::Store) traits.

mod account;
mod template;
mod upload;
mod webhook;

pub use account::*;
pub use template::*;
pub use upload::*;
pub use webhook::*;
