//! `galley completions SHELL`: prints the script that completes the command line in a shell.

use clap::CommandFactory as _;
use clap_complete::Shell;

use crate::{arguments::Arguments, table};

pub(super) fn print(shell: Shell) {
    // The generator panics if it cannot write, and the reader may close the pipe.
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Arguments::command(), "galley", &mut script);
    table::print_line(String::from_utf8_lossy(&script).trim_end());
}
