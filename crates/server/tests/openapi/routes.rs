//! The routes of the service, read from its source: a router does not tell them.

use std::{collections::BTreeSet, fs, path::Path};

/// The pattern of every `.route(…)` under `src/http` and `src/graph`, written there or as a constant of the file.
pub(crate) fn in_the_source() -> BTreeSet<String> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut files = vec![source.join("http.rs"), source.join("graph.rs")];
    let mut folders = vec![source.join("http"), source.join("graph")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() { folders.push(path) } else { files.push(path) }
        }
    }
    let mut routes = BTreeSet::new();
    for file in files {
        let text = fs::read_to_string(&file).unwrap();
        for other in [".nest(", ".nest_service(", ".route_service(", ".fallback_service("] {
            assert!(!text.contains(other), "{} adds routes that are not seen here", file.display());
        }
        for call in text.split(".route(").skip(1) {
            let written = call.split([',', ')']).next().unwrap().trim();
            if written.is_empty() {
                continue; // a trace's route is asked for, none is added
            }
            let pattern = match written.strip_prefix('"') {
                Some(literal) => literal.trim_end_matches('"'),
                None => constant(&text, written),
            };
            routes.insert(pattern.to_owned());
        }
    }
    routes
}

fn constant<'t>(text: &'t str, name: &str) -> &'t str {
    let declared = text.split_once(&format!("const {name}: &str =")).map(|(_, rest)| rest);
    declared.and_then(|rest| rest.split('"').nth(1)).unwrap_or_else(|| panic!("{name} is not here"))
}
