//! The binary `galley`: parses the command line, runs a command, sets the exit code.

mod arguments;
mod clock;
mod commands;
mod diagnostics;
mod secrets;
mod settings;
mod table;
mod terminal;

use std::process::ExitCode;

use clap::Parser as _;

use arguments::Arguments;

/// A request is read on one thread, stored by another and answered by a third. This allocator
/// handles memory that crosses threads well (measured: docs/decisions/0005-write-path.md).
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    match commands::run(Arguments::parse()) {
        Ok(code) => code,
        Err(error) => {
            terminal::print_error(format_args!("{error:#}"));
            ExitCode::FAILURE
        }
    }
}
