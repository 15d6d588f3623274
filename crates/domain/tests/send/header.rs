//! Parameters of headers that are not texts.

use serde_json::{Value, json};

use super::{component, details, lines, text, texts};
use crate::render_whatsapp::fixture::{button, header};

fn message(parameter: &Value) -> Value {
    json!([component("header", &json!([parameter]))])
}

#[test]
fn a_file_is_given_by_link_or_by_id() {
    let link = "https://cdn.example/a";
    for (format, kind) in
        [("IMAGE", "image"), ("VIDEO", "video"), ("DOCUMENT", "document"), ("GIF", "gif")]
    {
        for (file, shown) in [(json!({"link": link}), link), (json!({"id": "1234"}), "1234")] {
            let texts = texts(&header(format), &message(&json!({"type": kind, kind: file})));
            assert_eq!(texts, json!({"header": shown, "body": "b"}), "{format}");
        }
    }
    let named = json!({"type": "document", "document": {"id": "1", "filename": "Bill.pdf"}});
    assert_eq!(texts(&header("DOCUMENT"), &message(&named))["header"], "1");
}

#[test]
fn unknown_fields_of_a_parameter_are_ignored() {
    let image = json!({"type": "image", "text": 7,
        "image": {"id": "1", "caption": "c", "filename": 7, "provider": {"name": "p"}}});
    assert_eq!(texts(&header("IMAGE"), &message(&image))["header"], "1");
}

#[test]
fn a_file_of_another_type_is_refused_with_132012() {
    let image = json!({"type": "image", "image": {"id": "1"}});
    let expected = "header: Format mismatch, expected VIDEO, received IMAGE";
    assert_eq!(details(&header("VIDEO"), &message(&image)), (132_012, expected.to_owned()));
    let expected = "header: Format mismatch, expected VIDEO, received TEXT";
    assert_eq!(details(&header("VIDEO"), &message(&text("x"))), (132_012, expected.to_owned()));
    let link = json!({"type": "video", "video": {"link": "https://cdn.example/a.png"}});
    let expected = ["132012 /0/parameters/0/video/link"];
    assert_eq!(lines(&header("VIDEO"), &message(&link)), expected);
}

#[test]
fn a_missing_file_is_refused_with_132012() {
    let expected = "header: Format mismatch, expected IMAGE, received UNKNOWN";
    for components in [
        json!([]),
        json!([{"type": "header"}]),
        json!([component("header", &json!([]))]),
        json!([component("body", &json!([]))]),
    ] {
        assert_eq!(details(&header("IMAGE"), &components), (132_012, expected.to_owned()));
    }
}

#[test]
fn a_file_without_a_valid_link_or_id_is_refused() {
    let at = "/0/parameters/0/image";
    for (file, expected) in [
        (Value::Null, format!("131008 {at}")),
        (json!("https://cdn.example/a"), format!("131009 {at}")),
        (json!({}), format!("131008 {at}/link")),
        (json!({"link": "cdn.example/a"}), format!("131009 {at}/link")),
        (json!({"link": ""}), format!("131009 {at}/link")),
        (json!({"link": 7}), format!("131009 {at}/link")),
        (json!({"id": ""}), format!("131009 {at}/id")),
        (json!({"id": 7}), format!("131009 {at}/id")),
        (json!({"id": "1", "link": "https://cdn.example/a"}), format!("131009 {at}/id")),
    ] {
        let components = message(&json!({"type": "image", "image": file}));
        assert_eq!(lines(&header("IMAGE"), &components), [expected], "{file}");
    }
}

#[test]
fn a_second_parameter_is_refused_with_132000() {
    let image = json!({"type": "image", "image": {"id": "1"}});
    let components = json!([component("header", &json!([image, image]))]);
    let expected = "header: number of params (2) does not match the expected number of params (1)";
    assert_eq!(details(&header("IMAGE"), &components), (132_000, expected.to_owned()));
}

#[test]
fn a_location_has_coordinates_a_name_and_an_address() {
    let place = |location: Value| message(&json!({"type": "location", "location": location}));
    let whole =
        json!({"latitude": "52.5", "longitude": 13.25, "name": "Shop", "address": "Main St 1"});
    assert_eq!(texts(&header("LOCATION"), &place(whole))["header"], "Shop, Main St 1");
    let at = "/0/parameters/0/location";
    let invalid = json!({"latitude": 91, "longitude": "east", "name": "Shop"});
    assert_eq!(
        lines(&header("LOCATION"), &place(invalid)),
        [
            format!("131009 {at}/latitude"),
            format!("131009 {at}/longitude"),
            format!("131008 {at}/address"),
        ]
    );
    let expected = "header: `address` is missing: the address of the location";
    let invalid = json!({"latitude": 1, "longitude": 2, "name": "Shop"});
    assert_eq!(details(&header("LOCATION"), &place(invalid)), (131_008, expected.to_owned()));
}

#[test]
fn a_product_has_an_id_and_a_catalogue() {
    let template = button(&json!({"type": "SPM"}));
    let product = |product: Value| message(&json!({"type": "product", "product": product}));
    let whole = json!({"product_retailer_id": "k1", "catalog_id": "c"});
    assert_eq!(texts(&template, &product(whole))["header"], "k1");
    let expected = ["131008 /0/parameters/0/product/catalog_id"];
    assert_eq!(lines(&template, &product(json!({"product_retailer_id": "k1"}))), expected);
}
