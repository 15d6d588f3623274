//! Files that deploy Galley: they name settings that exist, and workflows run what developers run.

use std::{collections::BTreeSet, fs};

use crate::{read, root};

/// Variables that are not settings: secrets, and the name of the settings file.
const OTHER_VARIABLES: [&str; 6] = [
    "CONFIG",
    "BOOTSTRAP_KEY",
    "BOOTSTRAP_TOKEN",
    "BOOTSTRAP_PHONE",
    "SECRET_KEY",
    "WEBHOOK_SECRET",
];

/// Variables with the prefix that belong to other programs: Caddy's site, and one that Kubernetes
/// would set for a service of this name.
const FOREIGN_VARIABLES: [&str; 2] = ["SITE", "PORT"];

fn settings() -> BTreeSet<String> {
    let names: BTreeSet<String> =
        settings_in(include_str!("../../galley.default.toml")).map(str::to_owned).collect();
    assert!(names.contains("listen"), "{names:?}");
    names
}

/// The settings that a text in TOML sets, also those that are commented out.
fn settings_in(text: &str) -> impl Iterator<Item = &str> {
    let lines = text.lines().map(|line| line.trim_start().trim_start_matches('#'));
    let names = lines.filter_map(|line| line.split_once(" = ")).map(|(name, _)| name);
    names.filter(|name| name.chars().all(|it| it.is_ascii_lowercase() || it == '_'))
}

#[test]
fn deployment_files_name_only_variables_that_exist() {
    let settings = settings();
    let mut named = 0;
    for path in [
        "deploy/Dockerfile",
        "deploy/README.md",
        "deploy/compose.yaml",
        "deploy/debian/galley.env",
        "deploy/galley.env.example",
        "deploy/galley.service",
        "deploy/galley.toml",
        "deploy/kubernetes/README.md",
        "deploy/kubernetes/configmap.yaml",
        "deploy/kubernetes/deployment.yaml",
        "docs/install.md",
    ] {
        let text = read(path);
        for rest in text.split("GALLEY_").skip(1) {
            let end = rest.find(|it: char| !it.is_ascii_uppercase() && it != '_');
            let name = rest[..end.unwrap_or(rest.len())].trim_end_matches("_FILE");
            let is_known = settings.contains(&name.to_lowercase())
                || OTHER_VARIABLES.contains(&name)
                || FOREIGN_VARIABLES.contains(&name)
                || name.trim_end_matches('_') == "BOOTSTRAP"
                || name.is_empty();
            assert!(is_known, "{path}: there is no variable GALLEY_{name}");
            named += 1;
        }
    }
    assert!(named > 20, "{named} variables");
}

#[test]
fn settings_files_contain_only_settings_that_exist() {
    let settings = settings();
    for path in ["deploy/galley.toml", "deploy/kubernetes/configmap.yaml"] {
        let text = read(path);
        let names: Vec<&str> = settings_in(&text).collect();
        assert!(names.contains(&"public_url"), "{path}: {names:?}");
        for name in names {
            assert!(settings.contains(name), "{path}: there is no setting `{name}`");
        }
    }
}

#[test]
fn workflows_run_only_scripts_of_the_repository_and_pin_their_actions() {
    let mut steps = 0;
    for entry in fs::read_dir(root().join(".github/workflows")).unwrap() {
        let path = entry.unwrap().path();
        let text = fs::read_to_string(&path).unwrap();
        for line in text.lines().map(|line| line.trim_start().trim_start_matches("- ")) {
            if let Some(command) = line.strip_prefix("run: ") {
                let script = command.split(' ').next().unwrap();
                let exists = root().join(script).is_file();
                let is_script = script.starts_with("scripts/") && exists;
                assert!(is_script, "{}: `{command}` is no script", path.display());
                steps += 1;
            } else if let Some(action) = line.strip_prefix("uses: ") {
                let (_, version) = action.split_once('@').unwrap_or_default();
                let commit = version.split(' ').next().unwrap();
                let is_pinned =
                    commit.len() == 40 && commit.chars().all(|it| it.is_ascii_hexdigit());
                assert!(is_pinned, "{}: `{action}` names no commit", path.display());
            }
        }
    }
    assert!(steps > 5, "{steps} steps");
}
