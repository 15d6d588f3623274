//! Documents that match the code: links, the specification page, generated pages.

use std::fmt::Write as _;

use super::published_names::graph_route;
use crate::{assert_up_to_date, files, read};

#[test]
fn the_specification_page_names_only_rules_routes_and_tests_that_exist() {
    let page = read("docs/specification.md");
    let rules: Vec<&str> =
        galley_domain::violation::Rule::ALL.iter().map(|rule| rule.id()).collect();
    let api = [galley_server::openapi::document(), galley_server::openapi::graph_document()];
    let (mut rules_named, mut routes_named) = (0, 0);
    for row in page.lines().filter(|line| line.starts_with('|')) {
        let cells: Vec<&str> = row.trim_matches('|').split('|').map(str::trim).collect();
        let [subject, _, implementation, tests] = cells[..] else {
            panic!("not four columns: {row}")
        };
        if subject == "row" || subject.starts_with("---") {
            continue;
        }
        for name in quoted(implementation) {
            if let Some((method, path)) = name.split_once(' ') {
                let path = path.replace("{base}", "/api/v1.0/{phone_number_id}/{key}");
                let method = method.to_ascii_lowercase();
                let mut paths = api.iter().flat_map(|it| it["paths"].as_object().unwrap());
                let exists = paths
                    .any(|(known, item)| graph_route(known) == path && item[&method].is_object());
                assert!(exists, "{subject}: there is no route `{name}`");
                routes_named += 1;
            } else {
                assert!(rules.contains(&name), "{subject}: there is no rule `{name}`");
                rules_named += 1;
            }
        }
        assert!(quoted(tests).next().is_some(), "{subject}: no test is named");
        for test in quoted(tests) {
            let (file, name) = test.split_once("::").unwrap_or_default();
            let text = read(format!("crates/{file}"));
            assert!(text.contains(&format!("fn {name}(")), "{subject}: {test} does not exist");
        }
    }
    assert!(rules_named > 0 && routes_named > 0, "{rules_named} rules, {routes_named} routes");
}

/// The parts of a text in backticks.
fn quoted(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

#[test]
fn links_between_documents_resolve() {
    for (path, text) in files(&["md"]) {
        for target in text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            let (file, anchor) = target.split_once('#').unwrap_or((target, ""));
            if target.contains("://") || target.starts_with('/') {
                continue;
            }
            let linked = if file.is_empty() { path.clone() } else { path.with_file_name(file) };
            assert!(linked.exists(), "{} links to {target}", path.display());
            if !anchor.is_empty() && linked.extension().is_some_and(|it| it == "md") {
                let linked = std::fs::read_to_string(&linked).unwrap();
                let known = anchors(&linked).any(|known| known == anchor);
                assert!(known, "{} links to {target}: no such heading", path.display());
            }
        }
    }
}

/// The anchors of a page's headings, as GitHub makes them.
fn anchors(page: &str) -> impl Iterator<Item = String> {
    let headings = page.lines().filter(|line| line.starts_with('#'));
    headings.map(|line| {
        let title = line.trim_start_matches('#').trim().to_lowercase();
        let kept = title.chars().filter(|it| it.is_alphanumeric() || matches!(it, ' ' | '-' | '_'));
        kept.map(|it| if it == ' ' { '-' } else { it }).collect()
    })
}

#[test]
fn the_configuration_page_lists_every_setting() {
    let settings = include_str!("../../galley.default.toml");
    let mut page = String::from(
        "# Configuration\n\nThis page is generated from `crates/cli/galley.default.toml`; do not edit it.\n",
    );
    let mut paragraph = Vec::new();
    let mut is_first = true;
    for line in settings.lines().chain([""]) {
        if let Some(comment) = line.strip_prefix('#') {
            paragraph.push(comment.strip_prefix(' ').unwrap_or(comment));
        } else if let Some((name, default)) = line.split_once(" = ") {
            let text = std::mem::take(&mut paragraph).join("\n");
            let variable = name.to_uppercase();
            let _ = write!(
                page,
                "\n### `{name}`\n\n{text}\n\nDefault: `{default}`. Environment variable: `GALLEY_{variable}`.\n"
            );
        } else if !paragraph.is_empty() {
            // Comments without a setting introduce the file or a group of settings.
            let text = std::mem::take(&mut paragraph).join("\n");
            let _ = write!(page, "\n{text}\n");
            if std::mem::take(&mut is_first) {
                page.push_str(ENVIRONMENT);
            }
        }
    }
    assert_up_to_date("docs/configuration.md", &page);
}

const ENVIRONMENT: &str = "\n\
    Five variables are not settings, because they are secrets or are used once: \
    `GALLEY_BOOTSTRAP_KEY`, `GALLEY_BOOTSTRAP_TOKEN`, `GALLEY_BOOTSTRAP_PHONE`, `GALLEY_SECRET_KEY`, \
    `GALLEY_WEBHOOK_SECRET`. Except for `GALLEY_BOOTSTRAP_PHONE`, each can be read from a file: \
    `GALLEY_SECRET_KEY_FILE` names the file with the value of `GALLEY_SECRET_KEY`, and so on. \
    [Running Galley](operations/running.md#settings) explains them. `galley emulator` reads \
    `GALLEY_EMULATOR_…` instead, and a settings file only with `--config` \
    ([The emulator](emulator.md#in-ci)).\n\
    \n## Settings\n";
