//! The generated pages in `docs/` are up to date.

use std::{fs, path::Path};

use galley_domain::reference::{emulator_page, lifecycle_page, rules_page};

fn assert_up_to_date(name: &str, expected: &str) {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(name);
    if std::env::var_os("UPDATE_DOCS").is_some() {
        fs::write(&page, expected).unwrap();
    }
    let current = fs::read_to_string(&page).unwrap_or_default();
    assert_eq!(current, expected, "run with UPDATE_DOCS=1 to update it");
}

#[test]
fn the_rules_page_matches_the_rulebooks() {
    assert_up_to_date("rules.md", &rules_page::markdown());
}

#[test]
fn the_lifecycle_page_matches_the_transition_table() {
    assert_up_to_date("lifecycle.md", &lifecycle_page::markdown());
}

#[test]
fn the_emulator_reference_matches_its_tables() {
    assert_up_to_date("emulator-reference.md", &emulator_page::markdown());
}
