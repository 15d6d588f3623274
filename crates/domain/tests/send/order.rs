//! All violations at once, in document order.

use serde_json::json;

use super::{button, component, lines, message, named_text, refusal, text, try_message};
use crate::render_whatsapp::fixture::{named, numbered, stored};
use galley_domain::rulebook::Category;

#[test]
fn all_violations_are_listed_in_document_order() {
    let components = json!([
        button("url", 1, &json!([text("a b")])),
        component("body", &json!([
            named_text("order", "a\nb"), {"type": "text", "text": "x"}, named_text("x", "1")])),
        {"type": "poll"},
        component("header", &json!([named_text("who", &"x".repeat(70))])),
    ]);
    assert_eq!(
        lines(&named(), &components),
        [
            "131009 /0/parameters/0/text",
            "132000 /1/parameters",
            "132018 /1/parameters/0/text",
            "132012 /1/parameters/1/parameter_name",
            "132012 /1/parameters/2/parameter_name",
            "131009 /2/type",
            "132005 /3/parameters",
            "131008 ",
        ]
    );
    assert_eq!(refusal(&named(), &components).code.number(), 131_009);
}

#[test]
fn a_violation_is_an_object_with_pointer_code_and_message() {
    let refusal = refusal(&numbered(), &json!([component("header", &json!([text("1")]))]));
    let json = serde_json::to_value(&refusal.violations).unwrap();
    let message = "body: number of localizable_params (0) does not match the expected number of params (2); missing: {{1}}, {{2}}";
    let expected =
        json!([{"pointer": "/template/components", "code": 132_000, "message": message}]);
    assert_eq!(json, expected);
}

#[test]
fn a_hundred_violations_are_listed_and_the_others_counted() {
    let components = json!(vec![json!({"type": "poll"}); 150]);
    let refusal = refusal(&named(), &components);
    assert_eq!(refusal.violations.len(), 100);
    // The header, the body and two buttons are missing, too.
    assert_eq!(refusal.omitted, 54);
    assert_eq!(refusal.violations[99].pointer, "/template/components/99/type");
}

#[test]
fn a_stored_template_that_cannot_be_rendered_is_refused() {
    for content in ["", "7", r#"{"components":[{"type":"POLL"}]}"#] {
        let template = stored(Category::Utility, content);
        let refusal = try_message(&template, &message(&json!([]))).unwrap_err();
        assert_eq!(refusal.code.number(), 132_012, "{refusal:?}");
        assert_eq!(refusal.violations[0].pointer, "/template");
    }
}
