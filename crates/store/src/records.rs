//! The values that [`Store`](crate::Store) methods take and return.

mod account;
mod audit;
mod due_work;
mod emulator;
mod ended_approval;
mod event;
mod finding;
mod list;
mod mirror;
mod operation;
mod sample_link;
mod session;
mod statistics;
mod template;
mod trace_context;
mod upload;
mod upstream;
mod webhook;

pub use account::*;
pub use audit::*;
pub use due_work::*;
pub use emulator::*;
pub use ended_approval::*;
pub use event::*;
pub use finding::*;
pub use list::*;
pub use mirror::*;
pub use operation::*;
pub use sample_link::*;
pub use session::*;
pub use statistics::*;
pub use template::*;
pub use trace_context::*;
pub use upload::*;
pub use upstream::*;
pub use webhook::*;
