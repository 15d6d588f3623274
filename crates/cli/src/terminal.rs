//! Colours and messages on a terminal.

use std::{
    fmt::Display,
    io::{IsTerminal, Write as _, stderr},
};

use clap::builder::{
    Styles,
    styling::{AnsiColor, Style},
};

pub(crate) const BOLD: Style = Style::new().bold();
pub(crate) const GREEN: Style = AnsiColor::Green.on_default();
pub(crate) const YELLOW: Style = AnsiColor::Yellow.on_default().bold();
pub(crate) const RED: Style = AnsiColor::Red.on_default().bold();

/// The styles of the help. The argument parser respects `NO_COLOR`, too, and `CLICOLOR_FORCE`.
pub(crate) const HELP: Styles = Styles::styled()
    .header(AnsiColor::Green.on_default().bold())
    .usage(AnsiColor::Green.on_default().bold())
    .literal(AnsiColor::Cyan.on_default().bold())
    .placeholder(AnsiColor::Cyan.on_default())
    .error(RED)
    .valid(GREEN)
    .invalid(YELLOW);

/// Whether to use colour: on a terminal, unless `NO_COLOR` is set.
pub(crate) fn use_colour(to: &impl IsTerminal) -> bool {
    let no_colour = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    can_redraw(to) && !no_colour
}

/// Whether this is a terminal that can draw a line again.
pub(crate) fn can_redraw(to: &impl IsTerminal) -> bool {
    to.is_terminal() && std::env::var_os("TERM").is_some_and(|term| term != "dumb")
}

/// Prints why a command failed.
pub(crate) fn print_error(error: impl Display) {
    print("galley:", RED, error);
}

/// Prints what the operator should know, although the command goes on.
pub(crate) fn print_warning(warning: impl Display) {
    print("warning:", YELLOW, warning);
}

/// Prints a message to standard error, which may be closed.
fn print(label: &str, style: Style, message: impl Display) {
    let style = if use_colour(&stderr()) { style } else { Style::new() };
    let _ = writeln!(stderr(), "{style}{label}{style:#} {message}");
}
