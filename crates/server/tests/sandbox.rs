//! Emulator accounts on the Graph surface: the sandbox for messages and their statuses, faults, and
//! what faithful accounts do.

mod archive;
pub(crate) mod emulator;
mod faithful;
mod faults;
mod sends;
mod status_sender;
mod statuses;
mod webhook_faults;
