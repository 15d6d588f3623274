//! Generated documentation: the file in the repository is what the program would write today.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::{fs, path::Path};

use galley_domain::reference::{lifecycle_page, rules_page};

fn is_up_to_date(name: &str, written: &str) {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(name);
    if std::env::var_os("UPDATE_DOCS").is_some() {
        fs::write(&page, written).unwrap();
    }
    let kept = fs::read_to_string(&page).unwrap_or_default();
    assert_eq!(kept, written, "renew it with UPDATE_DOCS=1");
}

#[test]
fn the_rules_page_is_what_the_rulebook_says() {
    is_up_to_date("rules.md", &rules_page::markdown());
}

#[test]
fn the_lifecycle_page_is_what_the_table_of_moves_says() {
    is_up_to_date("lifecycle.md", &lifecycle_page::markdown());
}
