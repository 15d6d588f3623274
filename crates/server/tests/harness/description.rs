//! The operations of the OpenAPI documents, and how to call each of them with its examples.

use std::sync::LazyLock;

use axum::http::{Method, StatusCode};
use galley_server::openapi;
use serde_json::{Value, json};

/// The document of API v1.0 and the public pages.
pub(crate) static V1: LazyLock<Value> = LazyLock::new(openapi::document);

/// The document of the Graph surface.
pub(crate) static GRAPH: LazyLock<Value> = LazyLock::new(openapi::graph_document);

/// One operation of an OpenAPI document.
pub(crate) struct Operation<'d> {
    pub(crate) document: &'d Value,
    pub(crate) pattern: &'d str,
    pub(crate) method: Method,
    /// The description, with the parameters of the path and without references to responses.
    pub(crate) description: Value,
}

/// An example of a request body with its name. An operation without a JSON body has one empty example.
pub(crate) struct Example {
    pub(crate) name: String,
    pub(crate) body: Option<Value>,
}

pub(crate) fn operations(document: &Value) -> impl Iterator<Item = Operation<'_>> {
    document["paths"].as_object().unwrap().iter().flat_map(move |(pattern, item)| {
        let methods = item.as_object().unwrap().iter().filter(|(name, _)| *name != "parameters");
        methods.map(move |(method, operation)| Operation {
            document,
            pattern,
            method: method.to_uppercase().parse().unwrap(),
            description: complete(document, item, operation),
        })
    })
}

/// The operations of both documents.
pub(crate) fn all_operations() -> impl Iterator<Item = Operation<'static>> {
    operations(&V1).chain(operations(&GRAPH))
}

fn complete(document: &Value, item: &Value, operation: &Value) -> Value {
    let mut operation = operation.clone();
    let parameters = [&item["parameters"], &operation["parameters"]];
    let parameters: Vec<Value> =
        parameters.iter().filter_map(|it| it.as_array()).flatten().cloned().collect();
    operation["parameters"] = parameters.into();
    for response in operation["responses"].as_object_mut().unwrap().values_mut() {
        *response = resolved(document, response).clone();
    }
    operation
}

impl Operation<'_> {
    pub(crate) fn id(&self) -> &str {
        self.description["operationId"].as_str().unwrap()
    }

    pub(crate) fn name(&self) -> String {
        format!("{} {}", self.method, self.pattern)
    }

    /// The route: the pattern without the names of its parameters. The id of an upload is a node of
    /// the Graph surface.
    pub(crate) fn route(&self) -> String {
        route(self.pattern)
    }

    /// The status of a successful response.
    pub(crate) fn success(&self) -> StatusCode {
        let mut statuses = self.description["responses"].as_object().unwrap().keys();
        let success = statuses.find(|status| status.starts_with('2'));
        success.unwrap_or_else(|| panic!("{} has no success status", self.name())).parse().unwrap()
    }

    pub(crate) fn examples(&self) -> Vec<Example> {
        let content = &self.description["requestBody"]["content"]["application/json"];
        if content.is_null() {
            return vec![Example { name: String::new(), body: None }];
        }
        let examples = content["examples"].as_object();
        let examples =
            examples.unwrap_or_else(|| panic!("{} has a body without examples", self.name()));
        let example = |(name, example): (&String, &Value)| Example {
            name: name.clone(),
            body: Some(resolved(self.document, example)["value"].clone()),
        };
        examples.iter().map(example).collect()
    }

    /// The path with all required parameters: the values in `own`, otherwise the examples of the
    /// document.
    pub(crate) fn path(&self, own: &[(&str, &str)]) -> String {
        let mut path = self.pattern.to_owned();
        let mut query = Vec::new();
        for parameter in self.description["parameters"].as_array().unwrap() {
            let parameter = resolved(self.document, parameter);
            if parameter["required"] != true {
                continue;
            }
            let name = parameter["name"].as_str().unwrap();
            let known = own.iter().find(|(known, _)| *known == name);
            let value = match (known, &parameter["example"]) {
                (Some((_, value)), _) => (*value).to_owned(),
                (None, Value::String(value)) => value.clone(),
                (None, Value::Number(value)) => value.to_string(),
                _ => panic!("{}: `{name}` has no value", self.name()),
            };
            match parameter["in"].as_str() {
                Some("path") => path = path.replace(&format!("{{{name}}}"), &value),
                Some("query") => query.push(format!("{name}={value}")),
                other => panic!("{}: cannot send `{name}` in {other:?}", self.name()),
            }
        }
        assert!(!path.contains('{'), "{path} has a parameter that is not described");
        if query.is_empty() { path } else { format!("{path}?{}", query.join("&")) }
    }
}

/// A pattern without the names of its parameters.
pub(crate) fn route(pattern: &str) -> String {
    let mut route = String::new();
    for part in pattern.replace("upload:", "").split_inclusive('}') {
        let (literal, parameter) = part.split_once('{').unwrap_or((part, ""));
        route.push_str(literal);
        route.push_str(if parameter.is_empty() { "" } else { "{}" });
    }
    route
}

/// The document of a template that fits an example: the create example of the same name, or one that
/// allows a change of its category.
pub(crate) fn template(example: &str, name: &str) -> Value {
    let mut templates = create_examples(if is_for_whatsapp(example) { &GRAPH } else { &V1 });
    let fits = |it: &Example| it.body.as_ref().unwrap()["allow_category_change"] == true;
    let at = templates.iter().position(|it| it.name == example);
    let at = at.or(templates.iter().position(fits)).unwrap();
    let mut template = templates.swap_remove(at).body.unwrap();
    template["name"] = json!(name);
    template
}

fn create_examples(document: &Value) -> Vec<Example> {
    let create = ["createTemplate", "graphCreateTemplate"];
    operations(document).find(|it| create.contains(&it.id())).unwrap().examples()
}

/// Whether an example is for a template that only accounts with the rulebook `whatsapp` have.
pub(crate) fn is_for_whatsapp(example: &str) -> bool {
    let is_template = |document| create_examples(document).iter().any(|it| it.name == example);
    !is_template(&V1) && is_template(&GRAPH)
}

/// The value, or the target if it is a reference.
pub(crate) fn resolved<'d>(document: &'d Value, value: &'d Value) -> &'d Value {
    match value["$ref"].as_str() {
        Some(reference) => document.pointer(&reference[1..]).unwrap(),
        None => value,
    }
}
