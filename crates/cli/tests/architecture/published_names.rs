//! The names that clients depend on, compared with a committed list. A name may be added; to remove
//! or rename one breaks clients.

use std::{collections::BTreeSet, fmt::Write as _, process::Command};

use galley_domain::{
    account::Scope,
    convert::Issue,
    reference::json_schema,
    rulebook::{Category, Rulebook},
    template::{
        Review, Status,
        lifecycle::{EventType, Trigger},
    },
    upstream::PlanState,
    violation::{Rule, WarningRule},
    webhook::{
        Format,
        delivery::{DeliveryStatus, DisableReason},
    },
};
use galley_store::{
    AuditKind,
    sqlite::{SqliteOptions, SqliteStore},
};
use serde_json::Value;

use crate::{assert_up_to_date, files_below, read, root};

#[test]
fn published_names_are_those_of_the_committed_list() {
    let api = [galley_server::openapi::document(), galley_server::openapi::graph_document()];
    let mut found = ApiNames::default();
    for document in &api {
        found.collect(document);
    }
    for rulebook in Rulebook::ALL {
        found.collect(&json_schema::template_document(rulebook, ""));
    }
    let values = [
        ("status", Status::VALUES),
        ("category", Category::VALUES),
        ("review", Review::STORED),
        ("decision", Trigger::VALUES),
        ("webhook format", Format::VALUES),
        ("delivery status", DeliveryStatus::VALUES),
        ("disabled_because", DisableReason::VALUES),
        ("plan state", PlanState::VALUES),
    ];
    let values = values
        .iter()
        .flat_map(|(name, values)| values.iter().map(move |value| format!("{name} {value}")));
    let audit = AuditKind::ALL.iter().map(|kind| format!("audit type {}", kind.as_str()));
    let scopes = Scope::ALL.iter().map(|scope| format!("scope {}", scope.as_str()));
    let metrics = metrics(&found.fields);
    let sections: [(&str, BTreeSet<String>); 14] = [
        ("rules", Rule::ALL.iter().map(|it| it.id().to_owned()).collect()),
        ("warnings", WarningRule::ALL.iter().map(|it| it.id().to_owned()).collect()),
        ("conversion notes", Issue::ALL.iter().map(|it| it.id().to_owned()).collect()),
        ("problems", found.problems),
        ("operations", api.iter().flat_map(operations).collect()),
        ("parameters and headers", found.parameters),
        ("fields", found.fields),
        ("event types", EventType::VALUES.iter().map(|it| (*it).to_owned()).collect()),
        ("values", values.chain(scopes).chain(audit).collect()),
        ("settings", settings()),
        ("environment variables", environment_variables()),
        ("metrics", metrics),
        ("commands", commands()),
        ("columns", sqlite_columns().into_iter().chain(postgres_columns()).collect()),
    ];
    let mut list =
        String::from("# Names that clients depend on. Add names; do not remove or rename them.\n");
    for (title, names) in sections {
        assert!(!names.is_empty(), "no names for {title}");
        let _ = writeln!(list, "\n[{title}]");
        for name in &names {
            list.extend([name, "\n"]);
        }
    }
    assert_up_to_date("crates/cli/tests/published-names.txt", &list);
}

/// Names in the OpenAPI documents and the JSON Schemas.
#[derive(Default)]
struct ApiNames {
    problems: BTreeSet<String>,
    parameters: BTreeSet<String>,
    fields: BTreeSet<String>,
}

impl ApiNames {
    fn collect(&mut self, value: &Value) {
        match value {
            Value::Object(members) => {
                if let (Some(Value::String(name)), Some(Value::String(location))) =
                    (members.get("name"), members.get("in"))
                {
                    self.parameters.insert(format!("{location} {name}"));
                }
                for (key, value) in members {
                    match (key.as_str(), value) {
                        ("properties", Value::Object(fields)) => {
                            self.fields.extend(fields.keys().cloned());
                        }
                        // The headers among the components have names of schemas.
                        ("headers", Value::Object(headers)) if !members.contains_key("schemas") => {
                            let names = headers.keys().map(|name| format!("response {name}"));
                            self.parameters.extend(names);
                        }
                        _ => {}
                    }
                    self.collect(value);
                }
            }
            Value::Array(items) => items.iter().for_each(|item| self.collect(item)),
            Value::String(text) => {
                if let Some(slug) = text.strip_prefix("/problems/")
                    && slug.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-')
                {
                    self.problems.insert(slug.to_owned());
                }
            }
            _ => {}
        }
    }
}

fn operations(api: &Value) -> BTreeSet<String> {
    let paths = api["paths"].as_object().unwrap();
    let operations = paths.iter().flat_map(|(path, methods)| {
        let path = graph_route(path);
        let methods = methods.as_object().unwrap().iter();
        let methods = methods.filter(|(_, operation)| operation.get("responses").is_some());
        methods.map(move |(method, _)| format!("{path} {}", method.to_uppercase()))
    });
    operations.collect()
}

/// The path with the names of the route. The document of the Graph surface says more precisely which
/// node a call takes.
pub(crate) fn graph_route(path: &str) -> String {
    let nodes = ["{account_id}", "{template_id}", "{app_id}", "upload:{upload}"];
    nodes.iter().fold(path.to_owned(), |path, node| path.replace(node, "{node}"))
}

fn settings() -> BTreeSet<String> {
    let file = include_str!("../../galley.default.toml");
    let settings = file.lines().filter(|line| !line.starts_with('#'));
    settings.filter_map(|line| Some(line.split_once(" = ")?.0.to_owned())).collect()
}

/// Variables that the command line reads beside the settings.
fn environment_variables() -> BTreeSet<String> {
    quoted_names("cli", "GALLEY_", |letter| letter.is_ascii_uppercase() || letter == '_')
}

/// The metrics. The Graph surface has fields with the same prefix, which are not metrics.
fn metrics(fields: &BTreeSet<String>) -> BTreeSet<String> {
    let is_part = |letter: char| letter.is_ascii_lowercase() || letter == '_';
    let names = ["galley_", "process_"].map(|prefix| quoted_names("server", prefix, is_part));
    names.into_iter().flatten().filter(|name| !fields.contains(name)).collect()
}

/// String literals in a crate's sources that begin with a prefix and consist of such characters.
fn quoted_names(name: &str, prefix: &str, is_part: fn(char) -> bool) -> BTreeSet<String> {
    let sources = files_below(&root().join("crates").join(name).join("src"), &["rs"]);
    let literals = sources.iter().flat_map(|(_, text)| text.split('"').skip(1));
    let names = literals.filter(|it| it.starts_with(prefix) && it.len() > prefix.len());
    names.filter(|it| it.chars().all(is_part)).map(str::to_owned).collect()
}

/// Every command with its flags, from `--help`.
fn commands() -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut left = vec![Vec::new()];
    while let Some(command) = left.pop() {
        let output = Command::new(env!("CARGO_BIN_EXE_galley"))
            .args(&command)
            .arg("--help")
            .output()
            .unwrap();
        let help = String::from_utf8(output.stdout).unwrap();
        let name = ["galley"].into_iter().chain(command.iter().map(String::as_str));
        let name = name.collect::<Vec<_>>().join(" ");
        found.insert(name.clone());
        let mut section = "";
        for line in help.lines() {
            if !line.starts_with(' ') {
                section = line;
                continue;
            }
            let first = line.split_whitespace().next().unwrap_or_default();
            let is_entry = line.starts_with("  ") && !line.starts_with("          ");
            if section == "Commands:" && is_entry && line.starts_with("  ") && first != "help" {
                if line.as_bytes().get(2).is_some_and(u8::is_ascii_lowercase) {
                    left.push(command.iter().cloned().chain([first.to_owned()]).collect());
                }
            } else if matches!(section, "Options:" | "Global options:") && is_entry {
                let flags = line.split_whitespace().filter(|word| word.starts_with('-'));
                let flags = flags.map(|flag| flag.trim_end_matches(','));
                found.extend(flags.map(|flag| format!("{name} {flag}")));
            } else if section == "Arguments:" && is_entry {
                found.insert(format!("{name} {first}"));
            }
        }
    }
    found
}

fn sqlite_columns() -> BTreeSet<String> {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("galley.db");
    drop(SqliteStore::open(&path, &SqliteOptions::default()).unwrap());
    let connection = rusqlite::Connection::open(&path).unwrap();
    let mut statement = connection
        .prepare(
            "SELECT 'sqlite ' || t.name || '.' || c.name
             FROM sqlite_master t, pragma_table_info(t.name) c
             WHERE t.type = 'table' AND t.name NOT LIKE 'sqlite_%'",
        )
        .unwrap();
    let columns = statement.query_map([], |row| row.get(0)).unwrap();
    columns.map(Result::unwrap).collect()
}

fn postgres_columns() -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let directory = root().join("crates/store/migrations/postgres");
    for (path, _) in files_below(&directory, &["sql"]) {
        let text = read(path);
        for table in text.split("CREATE TABLE ").skip(1) {
            let (name, columns) = table.split_once(" (\n").unwrap();
            let columns = columns.lines().take_while(|line| !line.starts_with(')'));
            let columns = columns.filter_map(|line| line.split_whitespace().next());
            let columns = columns.filter(|it| it.starts_with(|it: char| it.is_ascii_lowercase()));
            found.extend(columns.map(|column| format!("postgres {name}.{column}")));
        }
        for change in text.split("ALTER TABLE ").skip(1) {
            let (change, _) = change.split_once(';').unwrap();
            let name = change.split_whitespace().next().unwrap();
            for column in change.split("ADD COLUMN ").skip(1) {
                let column = column.split_whitespace().next().unwrap();
                found.insert(format!("postgres {name}.{column}"));
            }
        }
    }
    found
}
