//! What reading and checking the sample document costs, beside `serde_json` into a plain struct.

use galley_domain::{json::Document, rulebook::V1, template::Template};
use serde::Deserialize;

static SAMPLE: &[u8] = include_bytes!("../../../bench/sample.json");

fn main() {
    divan::main();
}

#[divan::bench]
fn read_and_check() -> Template {
    let document = Document::parse(divan::black_box(SAMPLE)).expect("the sample is JSON");
    Template::read(&document, &V1).expect("the sample is valid")
}

#[divan::bench]
fn serde_json_into_a_plain_struct() -> Plain {
    serde_json::from_slice(divan::black_box(SAMPLE)).expect("the sample is JSON")
}

#[derive(Deserialize)]
#[expect(dead_code, reason = "only the cost of building it is of interest")]
struct Plain {
    name: String,
    language: String,
    category: String,
    allow_category_change: bool,
    components: Vec<Component>,
}

#[derive(Deserialize)]
#[expect(dead_code, reason = "only the cost of building it is of interest")]
struct Component {
    r#type: String,
    format: Option<String>,
    text: Option<String>,
    example: Option<Example>,
    buttons: Option<Vec<Button>>,
}

#[derive(Deserialize)]
#[expect(dead_code, reason = "only the cost of building it is of interest")]
struct Example {
    media_url: Option<String>,
    header_text: Option<Vec<String>>,
    body_text: Option<Vec<Vec<String>>>,
}

#[derive(Deserialize)]
#[expect(dead_code, reason = "only the cost of building it is of interest")]
struct Button {
    r#type: String,
    text: Option<String>,
    url: Option<String>,
    phone_number: Option<String>,
    example: Option<String>,
}
