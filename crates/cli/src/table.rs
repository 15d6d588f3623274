//! Output as a table for people or as JSON for programs.

use std::io::{self, Write as _};

use clap::builder::styling::Style;
use comfy_table::{Table, presets};
use serde_json::Value;

use crate::terminal::{self, BOLD, GREEN, RED, YELLOW};

/// Words at the end of a row that have a colour.
const VERDICTS: [(&str, Style); 6] = [
    ("good", GREEN),
    ("same", GREEN),
    ("note", YELLOW),
    ("WARNING", YELLOW),
    ("BAD", RED),
    ("DIFFERENT", RED),
];

/// Prints rows as a table, or as a JSON list of objects.
pub(crate) fn print(json: bool, columns: &[&str], rows: Vec<Vec<Value>>) {
    if json {
        let objects: Vec<Value> = rows.into_iter().map(|row| object(columns, row)).collect();
        return print_line(&Value::from(objects).to_string());
    }
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    table.set_header(columns.iter().map(|column| column.to_uppercase().replace('_', " ")));
    for row in rows {
        table.add_row(row.iter().map(plain));
    }
    let table = table.trim_fmt();
    print_line(&if terminal::use_colour(&io::stdout()) { coloured(&table) } else { table });
}

/// Prints one record: a line per member, or a JSON object. Absent values are omitted.
pub(crate) fn print_one(json: bool, members: &[(&str, Value)]) {
    if json {
        let (columns, row): (Vec<&str>, Vec<Value>) = members.iter().cloned().unzip();
        return print_line(&object(&columns, row).to_string());
    }
    let width = members.iter().map(|(name, _)| name.len()).max().unwrap_or_default();
    for (name, value) in members.iter().filter(|(_, value)| !value.is_null()) {
        print_line(&format!("{:width$}  {}", name.replace('_', " "), plain(value)));
    }
}

/// Prints a line to standard output. A closed pipe is not an error.
pub(crate) fn print_line(line: &str) {
    let _ = try_print_line(line);
}

/// Prints a line, and reports a closed pipe so that a running command can stop.
pub(crate) fn try_print_line(line: &str) -> io::Result<()> {
    writeln!(io::stdout(), "{line}")
}

/// The table with its header and the verdicts of its rows in colour.
fn coloured(table: &str) -> String {
    let lines = table.lines().enumerate().map(|(index, line)| {
        if index == 0 {
            return format!("{BOLD}{line}{BOLD:#}");
        }
        let verdict = VERDICTS.iter().find_map(|(word, style)| {
            let rest = line.strip_suffix(word).filter(|rest| rest.ends_with("  "))?;
            Some(format!("{rest}{style}{word}{style:#}"))
        });
        verdict.unwrap_or_else(|| line.to_owned())
    });
    lines.collect::<Vec<_>>().join("\n")
}

fn object(columns: &[&str], row: Vec<Value>) -> Value {
    let members = columns.iter().map(|column| (*column).to_owned()).zip(row);
    Value::Object(members.filter(|(_, value)| !value.is_null()).collect())
}

fn plain(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => visible(text),
        Value::Array(items) => items.iter().map(plain).collect::<Vec<_>>().join(", "),
        other => other.to_string(),
    }
}

/// A text of a tenant as one cell: characters that break lines, reorder text or are invisible could
/// disguise a row.
pub(crate) fn visible(text: &str) -> String {
    let hides = |c: char| {
        c.is_control()
            || matches!(c, '\u{200B}'..='\u{200F}' | '\u{2028}'..='\u{202E}')
            || matches!(c, '\u{61C}' | '\u{2060}'..='\u{2069}' | '\u{FEFF}')
    };
    text.replace(hides, " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_that_disguise_a_row_are_shown_as_spaces() {
        assert_eq!(visible("a\nb\u{202E}c\u{2066}d\u{FEFF}e"), "a b c d e");
        assert_eq!(visible("Grüße עברית"), "Grüße עברית");
    }

    #[test]
    fn the_header_and_the_verdict_of_a_row_are_coloured() {
        let shown = coloured(" SUBJECT  VERDICT\n journal  good\n goods    BAD\n not good");
        assert_eq!(
            shown,
            "\u{1b}[1m SUBJECT  VERDICT\u{1b}[0m\n journal  \u{1b}[32mgood\u{1b}[0m\n \
             goods    \u{1b}[1m\u{1b}[31mBAD\u{1b}[0m\n not good"
        );
    }
}
