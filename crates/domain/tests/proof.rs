//! Proofs: what the recipient sees of a document.

mod documents;
mod formatting;
mod limits;
mod properties;

use galley_domain::{document::Document, proof::Proof, rulebook::Rulebook};
use serde_json::{Value, json};

/// The proof of a request.
fn proof_of(rulebook: &Rulebook, request: &Value) -> Value {
    let text = request.to_string();
    let proof = Proof::read(Document::parse(text.as_bytes()).unwrap(), rulebook).unwrap();
    serde_json::to_value(proof).unwrap()
}

/// The runs of a list, each as `text` or `text [style, …]`.
fn shown(runs: &Value) -> Vec<String> {
    let run = |run: &Value| {
        let text = run["text"].as_str().unwrap();
        let styles: Vec<&str> =
            run["style"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
        match styles.len() {
            0 => text.to_owned(),
            _ => format!("{text} [{}]", styles.join(", ")),
        }
    };
    runs.as_array().unwrap().iter().map(run).collect()
}

/// A document with a body.
fn with_body(text: &str) -> Value {
    json!({"name": "n", "language": "en_US", "category": "UTILITY", "allow_category_change": true,
        "components": [{"type": "BODY", "text": text}]})
}
