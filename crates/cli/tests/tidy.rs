//! The architecture, as tests: which way dependencies point, how files look, and that documents
//! name only what exists.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::{
    fs,
    path::{Path, PathBuf},
};

/// Lowest first. A crate may depend on any crate to its left, never to its right.
const LAYERS: [&str; 4] = ["galley-domain", "galley-store", "galley-server", "galley"];

/// Libraries that exactly one crate may name.
const OWNERS: [(&str, &str); 5] = [
    ("rusqlite", "galley-store"),
    ("axum", "galley-server"),
    ("hyper", "galley-server"),
    ("clap", "galley"),
    ("anyhow", "galley"),
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

#[test]
fn dependencies_point_one_way() {
    let metadata = cargo_metadata::MetadataCommand::new().no_deps().exec().unwrap();
    let layer = |name: &str| LAYERS.iter().position(|it| *it == name);
    assert_eq!(metadata.packages.len(), LAYERS.len());
    for package in &metadata.packages {
        let here = layer(&package.name).expect("every crate has a layer");
        for dependency in &package.dependencies {
            let name = dependency.name.as_str();
            let upward = layer(name).is_some_and(|there| here < there);
            assert!(!upward, "{} must not depend on {name}", package.name);
            let owner =
                OWNERS.iter().find(|(library, _)| *library == name).map(|(_, owner)| *owner);
            let tested = dependency.kind == cargo_metadata::DependencyKind::Development;
            let stolen = owner.is_some_and(|owner| owner != package.name.as_str()) && !tested;
            assert!(!stolen, "{} must not name {name}", package.name);
        }
    }
}

#[test]
fn files_are_short_and_say_what_they_are() {
    for (path, text) in files(&["rs", "js", "css", "html"]) {
        let lines = text.lines().count();
        assert!(lines <= 500, "{} has {lines} lines", path.display());
        let rust = path.extension().is_some_and(|it| it == "rs");
        assert!(!rust || text.starts_with("//!"), "{} does not say what it is", path.display());
    }
}

#[test]
fn no_test_sleeps_and_none_is_ignored() {
    // As whole words, so that `use` and shell commands count as well.
    let naps = [["sle", "ep"], ["sle", "ep_until"], ["sle", "ep_ms"], ["park", "_timeout"]];
    let naps = naps.map(|halves| halves.concat());
    let ignore = ["#[", "ignore"].concat();
    for (path, text) in files(&["rs"]) {
        let tests = path.components().any(|it| it.as_os_str() == "tests");
        let mut words = text.split(|it: char| !it.is_alphanumeric() && it != '_');
        let nap = words.find(|word| naps.iter().any(|nap| nap == word));
        assert!(!tests || nap.is_none(), "{} sleeps: {nap:?}", path.display());
        assert!(!text.contains(&ignore), "{} ignores a test", path.display());
    }
}

#[test]
fn every_crate_of_ours_forbids_unsafe_code() {
    let workspace = fs::read_to_string(root().join("Cargo.toml")).unwrap();
    assert!(workspace.contains("unsafe_code = \"forbid\""));
    for name in ["domain", "store", "server", "cli"] {
        let manifest =
            fs::read_to_string(root().join(format!("crates/{name}/Cargo.toml"))).unwrap();
        assert!(manifest.contains("[lints]\nworkspace = true"), "{name} leaves the lints");
    }
    for name in ["bench", "fuzz"] {
        let manifest = fs::read_to_string(root().join(format!("{name}/Cargo.toml"))).unwrap();
        assert!(manifest.contains("unsafe_code = \"forbid\""), "{name} allows unsafe code");
    }
}

#[test]
fn every_direct_dependency_has_its_reason() {
    let workspace = fs::read_to_string(root().join("Cargo.toml")).unwrap();
    let table = workspace.split("[workspace.dependencies]").nth(1).unwrap();
    let table = table.split("\n[").next().unwrap();
    for line in table.lines().filter(|line| line.contains(" = ") && !line.starts_with("galley-")) {
        assert!(line.contains(" # "), "no reason beside: {line}");
    }
}

#[test]
fn the_specification_page_names_only_rules_and_tests_that_exist() {
    let page = fs::read_to_string(root().join("docs/specification.md")).unwrap();
    let rules: Vec<&str> =
        galley_domain::violation::Rule::ALL.iter().map(|rule| rule.id()).collect();
    let api = galley_server::openapi::document();
    let (mut rules_named, mut routes_named) = (0, 0);
    for row in page.lines().filter(|line| line.starts_with('|')) {
        let cells: Vec<&str> = row.trim_matches('|').split('|').map(str::trim).collect();
        let [subject, _, kept, tests] = cells[..] else { panic!("not four columns: {row}") };
        if subject == "row" || subject.starts_with("---") {
            continue;
        }
        for word in quoted(kept) {
            if let Some((method, path)) = word.split_once(' ') {
                let path = path.replace("{base}", "/api/v1.0/{phone_number_id}/{key}");
                let operation = &api["paths"][&path][method.to_ascii_lowercase()];
                assert!(operation.is_object(), "{subject}: there is no route `{word}`");
                routes_named += 1;
            } else {
                assert!(rules.contains(&word), "{subject}: there is no rule `{word}`");
                rules_named += 1;
            }
        }
        assert!(quoted(tests).next().is_some(), "{subject}: no test is named");
        for test in quoted(tests) {
            let (file, name) = test.split_once("::").unwrap_or_default();
            let text = fs::read_to_string(root().join("crates").join(file)).unwrap_or_default();
            assert!(text.contains(&format!("fn {name}(")), "{subject}: {test} does not exist");
        }
    }
    assert!(rules_named > 0 && routes_named > 0, "{rules_named} rules, {routes_named} routes");
}

/// What stands in backticks.
fn quoted(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

#[test]
fn no_document_carries_marks_of_a_generator_that_is_gone() {
    for (path, text) in files(&["md"]) {
        assert!(!text.contains("<!-- bench"), "{} has a bench mark", path.display());
    }
}

#[test]
fn links_between_documents_lead_somewhere() {
    for (path, text) in files(&["md"]) {
        for target in text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            let file = target.split('#').next().unwrap();
            let outside = target.contains("://") || target.starts_with('/') || file.is_empty();
            let there = path.parent().unwrap().join(file);
            assert!(outside || there.exists(), "{} links to {target}", path.display());
        }
    }
}

/// Every file of the repository with one of these endings, and its text.
fn files(endings: &[&str]) -> Vec<(PathBuf, String)> {
    let mut found = Vec::new();
    let mut left = vec![root()];
    while let Some(dir) = left.pop() {
        for path in fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()) {
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            if path.is_dir() {
                if !name.starts_with('.') && name != "target" && name != "node_modules" {
                    left.push(path);
                }
            } else if path.extension().is_some_and(|it| endings.iter().any(|ending| it == *ending))
            {
                found.push((path.clone(), fs::read_to_string(&path).unwrap()));
            }
        }
    }
    assert!(!found.is_empty());
    found
}
