//! The request bodies as plain typed structs, as any service would define them with serde.

#![expect(dead_code, reason = "the fields exist to be parsed; the benchmark measures the parsing")]

use std::collections::BTreeMap;

use serde::Deserialize;

#[derive(Debug, Deserialize)]
pub(crate) struct Document {
    pub(crate) name: String,
    pub(crate) language: String,
    pub(crate) category: String,
    pub(crate) allow_category_change: bool,
    pub(crate) components: Vec<Component>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Component {
    #[serde(rename = "type")]
    pub(crate) kind: String,
    pub(crate) format: Option<String>,
    pub(crate) text: Option<String>,
    pub(crate) example: Option<Example>,
    pub(crate) buttons: Option<Vec<Button>>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Example {
    pub(crate) media_url: Option<String>,
    pub(crate) header_text: Option<Vec<String>>,
    pub(crate) body_text: Option<Vec<Vec<String>>>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Button {
    #[serde(rename = "type")]
    pub(crate) kind: String,
    pub(crate) text: Option<String>,
    pub(crate) url: Option<String>,
    pub(crate) phone_number: Option<String>,
    pub(crate) example: Option<String>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Values {
    pub(crate) header: Vec<String>,
    pub(crate) body: Vec<String>,
    pub(crate) buttons: BTreeMap<String, String>,
}
