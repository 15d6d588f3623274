//! The cost of rendering under both rulebooks: parsing the values, filling the template and writing
//! the message.

use galley_domain::{
    document::Document,
    render::render,
    rulebook::{V1, WHATSAPP},
    template::Template,
    violation::Violations,
};

static SAMPLE: &[u8] = include_bytes!("../../../bench/sample.json");
static VALUES: &[u8] = br#"{"header":["https://cdn.example.com/spring/lookbook-cover.jpg"],"body":["Alex","25%","May 31"],"buttons":{"3":"SPRING25"}}"#;
static INVALID_VALUES: &[u8] =
    br#"{"header":["cdn.example.com/cover"],"body":["Al\nex",25],"buttons":{"0":"x"}}"#;

/// A template with named placeholders, an image and two buttons.
static NAMED: &[u8] = br#"{"name":"order_sent","language":"en_US","category":"MARKETING","parameter_format":"NAMED","components":[
{"type":"HEADER","format":"IMAGE","example":{"header_handle":["4::aW1h"]}},
{"type":"BODY","text":"Hi {{first_name}}, good news: your order {{order}} has left our house\nand should reach you by {{day}}, {{first_name}} dear.","example":{"body_text_named_params":[{"param_name":"first_name","example":"Alex"},{"param_name":"order","example":"4711"},{"param_name":"day","example":"Friday"}]}},
{"type":"FOOTER","text":"Reply STOP to opt out"},
{"type":"BUTTONS","buttons":[{"type":"URL","text":"Track it","url":"https://shop.example/track/{{1}}","example":["4711"]},{"type":"COPY_CODE","example":"SAVE25"}]}]}"#;
static NAMED_VALUES: &[u8] = br#"{"header":"https://cdn.example.com/spring/lookbook-cover.jpg","body":{"first_name":"Alex","order":"4711","day":"May 31"},"buttons":{"0":"4711?from=mail","1":"SPRING25"}}"#;

fn main() {
    divan::main();
}

fn template() -> Template {
    let document = Document::parse(SAMPLE).expect("the sample is JSON");
    Template::read(&document, &V1).expect("the sample is valid")
}

fn parse(values: &[u8]) -> Document<'_> {
    Document::parse(divan::black_box(values)).expect("the values are JSON")
}

/// From the bytes of the values to the JSON of the message.
#[divan::bench]
fn values_to_answer(bencher: divan::Bencher) {
    let template = template();
    bencher.bench(|| {
        let values = parse(VALUES);
        let rendered =
            render(divan::black_box(&template), &V1, &values).expect("the values are valid");
        serde_json::to_vec(&rendered).expect("the message is JSON")
    });
}

/// Without parsing the values and without writing the message.
#[divan::bench]
fn fill(bencher: divan::Bencher) {
    let template = template();
    let values = parse(VALUES);
    bencher.bench(|| drop(divan::black_box(render(divan::black_box(&template), &V1, &values))));
}

#[divan::bench]
fn report_every_violation(bencher: divan::Bencher) {
    let template = template();
    bencher.bench(|| -> Violations {
        let values = parse(INVALID_VALUES);
        render(divan::black_box(&template), &V1, &values).expect_err("the values are invalid")
    });
}

/// From the bytes to the JSON under the `whatsapp` rulebook.
#[divan::bench]
fn named_values_to_answer(bencher: divan::Bencher) {
    let document = Document::parse(NAMED).expect("the template is JSON");
    let template = Template::read(&document, &WHATSAPP).expect("the template is valid");
    bencher.bench(|| {
        let values = parse(NAMED_VALUES);
        let rendered = render(divan::black_box(&template), &WHATSAPP, &values);
        serde_json::to_vec(&rendered.expect("the values are valid")).expect("the message is JSON")
    });
}
