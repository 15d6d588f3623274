//! What rendering the sample template costs: reading its values, filling it, writing the answer.

use galley_domain::{
    json::Document, render::render, rulebook::V1, template::Template, violation::Violations,
};

static SAMPLE: &[u8] = include_bytes!("../../../bench/sample.json");
static VALUES: &[u8] = br#"{"header":["https://cdn.example.com/spring/lookbook-cover.jpg"],"body":["Alex","25%","May 31"],"buttons":{"3":"SPRING25"}}"#;
static FAULTY: &[u8] =
    br#"{"header":["cdn.example.com/cover"],"body":["Al\nex",25],"buttons":{"0":"x"}}"#;

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

/// The whole way: bytes of the values in, JSON text of the answer out.
#[divan::bench]
fn values_to_answer(bencher: divan::Bencher) {
    let template = template();
    bencher.bench(|| {
        let values = parse(VALUES);
        let rendered =
            render(divan::black_box(&template), &V1, &values).expect("the values are good");
        serde_json::to_vec(&rendered).expect("it is JSON")
    });
}

/// Without reading the values and without writing the answer.
#[divan::bench]
fn fill(bencher: divan::Bencher) {
    let template = template();
    let values = parse(VALUES);
    bencher.bench(|| drop(divan::black_box(render(divan::black_box(&template), &V1, &values))));
}

#[divan::bench]
fn refuse_with_every_violation(bencher: divan::Bencher) {
    let template = template();
    bencher.bench(|| -> Violations {
        let values = parse(FAULTY);
        render(divan::black_box(&template), &V1, &values).expect_err("the values are faulty")
    });
}
