//! The routes of the service, read from its source, because a router does not list them.

use std::{collections::BTreeSet, fs, path::Path};

/// The pattern of every `.route(…)` in `src/router.rs` and `src/api`: a literal, or a constant of the
/// same file.
pub(crate) fn in_source() -> BTreeSet<String> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut files = vec![source.join("router.rs"), source.join("api.rs")];
    let mut folders = vec![source.join("api")];
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
            assert!(!text.contains(other), "{}: this test does not find {other}", file.display());
        }
        for call in text.split(".route(").skip(1) {
            let argument = call.split([',', ')']).next().unwrap().trim();
            // A call of API v1.0, which the console has at another base path.
            let argument = argument.strip_prefix("&base.at(").unwrap_or(argument);
            if argument.is_empty() {
                continue; // the getter of a request's route
            }
            let pattern = match argument.strip_prefix('"') {
                Some(literal) => literal.trim_end_matches('"'),
                None => constant(&text, argument),
            };
            routes.insert(pattern.to_owned());
        }
    }
    routes
}

fn constant<'t>(text: &'t str, name: &str) -> &'t str {
    let declared = text.split_once(&format!("const {name}: &str =")).map(|(_, rest)| rest);
    declared
        .and_then(|rest| rest.split('"').nth(1))
        .unwrap_or_else(|| panic!("the constant {name} was not found"))
}
