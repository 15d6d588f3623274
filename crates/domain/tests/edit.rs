//! Documents that edit a template: a minimal violation and the closest valid document for each rule,
//! and the resulting edits.

use galley_domain::{
    document::Document,
    rulebook::{Category, V1},
    template::{Template, edit::Edit},
    violation::{Rule, Violations},
};

const TEMPLATE: &str = r#"{"name":"n","language":"en_US","category":"UTILITY",
    "allow_category_change":true,"components":[{"type":"BODY","text":"b"}]}"#;

fn read(document: &str) -> Result<Edit, Violations> {
    let template = Template::read(&Document::parse(TEMPLATE.as_bytes()).unwrap(), &V1).unwrap();
    Edit::read(&Document::parse(document.as_bytes()).unwrap(), &V1, &template)
}

fn violations(document: &str) -> Vec<String> {
    match read(document) {
        Ok(_) => Vec::new(),
        Err(violations) => violations
            .listed()
            .iter()
            .map(|it| format!("{} {}", it.pointer, it.rule.id()))
            .collect(),
    }
}

/// A rule, a document that violates it, the reported violations, and the closest valid document.
const TABLE: &[(Rule, &str, &str, &str)] = &[
    (
        Rule::Unchangeable,
        r#"{"category":"UTILITY","name":"m"}"#,
        "/name unchangeable",
        r#"{"category":"UTILITY","name":"n"}"#,
    ),
    (
        Rule::Unchangeable,
        r#"{"category":"UTILITY","language":"en_GB"}"#,
        "/language unchangeable",
        r#"{"category":"UTILITY","language":"en_US"}"#,
    ),
    (
        Rule::Unchangeable,
        r#"{"category":"UTILITY","allow_category_change":false}"#,
        "/allow_category_change unchangeable",
        r#"{"category":"UTILITY","allow_category_change":true}"#,
    ),
    (
        Rule::NothingToEdit,
        r#"{"components":null}"#,
        " nothing-to-edit",
        r#"{"components":[{"type":"BODY","text":"c"}]}"#,
    ),
    (
        Rule::RestoreAlone,
        r#"{"restore_version":1,"category":"UTILITY"}"#,
        "/restore_version restore-alone",
        r#"{"restore_version":1,"category":null}"#,
    ),
];

#[test]
fn every_rule_rejects_a_minimal_violation_and_accepts_the_closest_valid_document() {
    for (rule, bad, line, good) in TABLE {
        assert_eq!(violations(bad), [*line], "{} should refuse {bad}", rule.id());
        assert_eq!(violations(good), [""; 0], "{} should take {good}", rule.id());
        assert!(line.ends_with(rule.id()));
    }
    assert!(Rule::EDIT.iter().all(|rule| TABLE.iter().any(|(row, ..)| row == rule)));
}

#[test]
fn an_edit_has_the_rules_of_a_creation_and_reports_all_violations() {
    let invalid =
        r#"{"name":7,"category":"UTILTY","components":[{"type":"FOOTER","text":"{{1}}"}]}"#;
    let lines = [
        "/category not-a-choice",
        "/components/0/text placeholder-not-allowed",
        "/components body-missing",
        "/name unchangeable",
    ];
    assert_eq!(violations(invalid), lines);
    assert_eq!(violations("[]"), [" wrong-type"]);
    for version in ["0", "-1", "1.5", "\"1\"", "9007199254740992"] {
        let restore = format!("{{\"restore_version\":{version}}}");
        assert_eq!(violations(&restore), ["/restore_version wrong-type"], "{version}");
    }
}

#[test]
fn omitted_fields_stay_unchanged() {
    let content = r#"{"components":[{"type":"BODY","text":"c"}]}"#.to_owned();
    let components = r#"{"components":[{"text":"c","type":"body","colour":"red"}]}"#;
    let replace = |content, category| Ok(Edit::Replace { content, category });
    assert_eq!(read(components), replace(Some(content), None));
    let marketing = Some(Category::Marketing);
    assert_eq!(read(r#"{"category":"marketing"}"#), replace(None, marketing));
    assert_eq!(read(r#"{"restore_version":3}"#), Ok(Edit::Restore(3)));
}
