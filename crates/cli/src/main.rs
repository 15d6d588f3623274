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

fn main() -> ExitCode {
    match commands::run(Arguments::parse()) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("galley: {error:#}");
            ExitCode::FAILURE
        }
    }
}
