//! Generated documentation: the file in the repository is what the program would write today.

use std::{fs, path::Path};

#[test]
fn the_rules_page_is_what_the_rulebook_says() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/rules.md");
    let written = galley_domain::rules_page::markdown();
    if std::env::var_os("UPDATE_DOCS").is_some() {
        fs::write(&page, &written).unwrap();
    }
    assert_eq!(
        fs::read_to_string(&page).unwrap_or_default(),
        written,
        "renew it with UPDATE_DOCS=1"
    );
}
