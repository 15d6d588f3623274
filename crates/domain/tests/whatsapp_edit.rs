//! Edits of templates of the `whatsapp` rulebook, and warnings about such templates.

use galley_domain::{
    document::Document,
    rulebook::{Category, WHATSAPP},
    template::{Template, edit::Edit},
};

const TEMPLATE: &str = r#"{"name":"n","language":"en_US","category":"UTILITY","parameter_format":"NAMED",
    "sub_category":"ORDER_STATUS","message_send_ttl_seconds":60,"components":[{"type":"BODY","text":"Hi {{a}} and bye",
    "example":{"body_text_named_params":[{"param_name":"a","example":"x"}]}}]}"#;

fn read(edit: &str) -> Result<(Option<String>, Option<Category>), Vec<String>> {
    let template =
        Template::read(&Document::parse(TEMPLATE.as_bytes()).unwrap(), &WHATSAPP).unwrap();
    match Edit::read(&Document::parse(edit.as_bytes()).unwrap(), &WHATSAPP, &template) {
        Ok(Edit::Replace { content, category }) => Ok((content, category)),
        Ok(Edit::Restore(version)) => panic!("{version}"),
        Err(violations) => Err(violations
            .listed()
            .iter()
            .map(|it| format!("{} {}", it.pointer, it.rule.id()))
            .collect()),
    }
}

fn assert_rejected(edit: &str, lines: &[&str]) {
    assert_eq!(read(edit), Err(lines.iter().map(|it| (*it).to_owned()).collect()), "{edit}");
}

#[test]
fn absent_fields_keep_their_value_and_immutable_fields_are_ignored() {
    let components = r#""components":[{"type":"BODY","text":"Hi {{a}} and bye","example":{"body_text_named_params":[{"param_name":"a","example":"x"}]}}]}"#;
    let begin = r#"{"parameter_format":"NAMED","sub_category":"ORDER_STATUS","#;
    assert_eq!(
        read(
            r#"{"name":"other","language":7,"sub_category":"CUSTOM","message_send_ttl_seconds":-1}"#
        ),
        Ok((Some(format!(r#"{begin}"message_send_ttl_seconds":-1,{components}"#)), None))
    );
    let text = r#"{"components":[{"type":"body","text":"b"}],"category":"utility"}"#;
    let content = format!(
        r#"{begin}"message_send_ttl_seconds":60,"components":[{{"type":"BODY","text":"b"}}]}}"#
    );
    assert_eq!(read(text), Ok((Some(content), Some(Category::Utility))));
    assert_eq!(read(r#"{"category":"utility"}"#), Ok((None, Some(Category::Utility))));
}

#[test]
fn an_edit_is_validated_as_the_resulting_template() {
    assert_rejected(r#"{"category":"MARKETING"}"#, &["/message_send_ttl_seconds number-range"]);
    assert_rejected(
        r#"{"parameter_format":"positional"}"#,
        &["/components/0/text placeholder-syntax"],
    );
    assert_rejected(
        r#"{"components":[{"type":"BODY","text":"Hi {{1}} and bye"},{"type":"FOOTER","text":"*f*"}],"category":"X"}"#,
        &[
            "/category not-a-choice",
            "/components/0/text placeholder-name",
            "/components/0/example required",
            "/components/1/text formatting",
        ],
    );
}

#[test]
fn an_edit_without_changes_is_rejected() {
    assert_rejected("{}", &[" nothing-to-edit"]);
    assert_rejected(r#"{"name":"m","components":null,"restore_version":1}"#, &[" nothing-to-edit"]);
    assert_rejected("[]", &[" wrong-type"]);
    assert_rejected(r#"{"category":"UTILITY","category":"UTILITY"}"#, &["/category duplicate-key"]);
}

#[test]
fn content_that_only_a_review_rejects_is_a_warning() {
    let document = r#"{"name":"n","language":"en","category":"UTILITY","colour":1,"components":[
        {"type":"BODY","text":"See {{1}} {{2}} at bit.ly/x or wa.me/1 now","example":{"body_text":[["a","b"]]}},
        {"type":"BUTTONS","buttons":[
            {"type":"URL","text":"Go","url":"https://tinyurl.com/x"},
            {"type":"QUICK_REPLY","text":"Yes","url":"x"}]}]}"#;
    let checked = Template::check(&Document::parse(document.as_bytes()).unwrap(), &WHATSAPP);
    assert!(checked.template.is_ok());
    let found: Vec<String> = checked
        .warnings
        .listed()
        .iter()
        .map(|it| format!("{} {}", it.pointer, it.rule.id()))
        .collect();
    assert_eq!(
        found,
        [
            "/components/0/text placeholders-side-by-side",
            "/components/0/text link-shortener",
            "/components/0/text link-shortener",
            "/components/1/buttons/0/url link-shortener",
            "/components/1/buttons/1/url unused-field",
            "/colour unknown-field",
        ]
    );
    // Violations do not also cause warnings.
    let document = r#"{"name":"n","language":"en","category":"UTILITY","components":[
        {"type":"BODY","text":"{{1}} one two three","example":{"body_text":"a"}},
        {"type":"BUTTONS","buttons":[{"type":"URL","text":"Go","url":"https://wa.me/1"}]}]}"#;
    let checked = Template::check(&Document::parse(document.as_bytes()).unwrap(), &WHATSAPP);
    assert_eq!((checked.template.is_err(), checked.warnings.listed()), (true, &[][..]));
}
