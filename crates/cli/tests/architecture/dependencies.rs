//! Dependencies between crates, and on crates from outside.

use crate::read;

/// Lowest first. A crate may depend on crates of lower layers, never on one of its own layer.
const LAYERS: [&[&str]; 5] = [
    &["galley-test-macros"],
    &["galley-domain"],
    &["galley-store", "galley-upstream"],
    &["galley-server"],
    &["galley"],
];

/// Libraries that exactly one crate may name.
const OWNERS: [(&str, &str); 5] = [
    ("rusqlite", "galley-store"),
    ("axum", "galley-server"),
    ("hyper", "galley-server"),
    ("clap", "galley"),
    ("anyhow", "galley"),
];

#[test]
fn crates_depend_only_on_lower_layers_and_on_libraries_they_own() {
    let metadata = cargo_metadata::MetadataCommand::new().no_deps().exec().unwrap();
    let layer = |name: &str| LAYERS.iter().position(|layer| layer.contains(&name));
    assert_eq!(metadata.packages.len(), LAYERS.concat().len());
    for package in &metadata.packages {
        let own_layer = layer(&package.name).expect("every crate has a layer");
        for dependency in &package.dependencies {
            let name = dependency.name.as_str();
            let upward = name != package.name.as_str()
                && layer(name).is_some_and(|other| own_layer <= other);
            assert!(!upward, "{} must not depend on {name}", package.name);
            let owner =
                OWNERS.iter().find(|(library, _)| *library == name).map(|(_, owner)| *owner);
            let is_foreign = owner.is_some_and(|owner| owner != package.name.as_str());
            let for_tests = dependency.kind == cargo_metadata::DependencyKind::Development;
            assert!(!is_foreign || for_tests, "{} must not depend on {name}", package.name);
        }
    }
}

#[test]
fn every_crate_forbids_unsafe_code() {
    assert!(read("Cargo.toml").contains("unsafe_code = \"forbid\""));
    for name in ["domain", "store", "upstream", "server", "cli", "test-macros"] {
        let manifest = read(format!("crates/{name}/Cargo.toml"));
        assert!(manifest.contains("[lints]\nworkspace = true"), "{name} has lints of its own");
    }
    for name in ["bench", "fuzz"] {
        let manifest = read(format!("{name}/Cargo.toml"));
        assert!(manifest.contains("unsafe_code = \"forbid\""), "{name} allows unsafe code");
    }
}

#[test]
fn every_direct_dependency_states_its_reason() {
    let workspace = read("Cargo.toml");
    let decision = read("docs/decisions/0010-dependencies.md");
    let table = workspace.split("[workspace.dependencies]").nth(1).unwrap();
    let table = table.split("\n[").next().unwrap();
    for line in table.lines().filter(|line| line.contains(" = ") && !line.starts_with("galley-")) {
        assert!(line.contains(" # "), "no reason beside: {line}");
        let name = line.split(" = ").next().unwrap();
        assert!(decision.contains(&format!("`{name}`")), "decision 0010 does not list `{name}`");
    }
}
