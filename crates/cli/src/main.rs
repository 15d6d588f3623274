//! `galley`, the one binary: arguments in, exit code out.

mod arguments;
mod clock;
mod commands;
mod secrets;
mod settings;
mod table;

use std::process::ExitCode;

use clap::Parser as _;

use arguments::Arguments;

/// Requests are read on one thread, kept on another and answered on a third; this allocator takes
/// that well (measured: docs/decisions/0005-write-path.md).
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    match commands::run(Arguments::parse()) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("galley: {error:#}");
            ExitCode::FAILURE
        }
    }
}
