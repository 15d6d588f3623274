//! Output as a table for people or as JSON for programs.

use std::io::{self, Write as _};

use comfy_table::{Table, presets};
use serde_json::Value;

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
    print_line(&table.trim_fmt());
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

fn object(columns: &[&str], row: Vec<Value>) -> Value {
    let members = columns.iter().map(|column| (*column).to_owned()).zip(row);
    Value::Object(members.filter(|(_, value)| !value.is_null()).collect())
}

fn plain(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        Value::Array(items) => items.iter().map(plain).collect::<Vec<_>>().join(", "),
        other => other.to_string(),
    }
}
