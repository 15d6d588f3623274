//! Operations as the API description tells them, and how each is called well: with the examples
//! that it is shown with.

use axum::http::{Method, StatusCode};
use serde_json::{Value, json};

/// One operation of the document.
pub(crate) struct Operation<'d> {
    pub(crate) document: &'d Value,
    pub(crate) pattern: &'d str,
    pub(crate) method: Method,
    pub(crate) description: &'d Value,
}

/// A body that an operation is shown with, and what the example is called. An operation without
/// a body is shown with none.
pub(crate) struct Example {
    pub(crate) name: String,
    pub(crate) body: Option<Value>,
}

pub(crate) fn operations(document: &Value) -> impl Iterator<Item = Operation<'_>> {
    document["paths"].as_object().unwrap().iter().flat_map(move |(pattern, methods)| {
        methods.as_object().unwrap().iter().map(move |(method, description)| Operation {
            document,
            pattern,
            method: method.to_uppercase().parse().unwrap(),
            description,
        })
    })
}

impl Operation<'_> {
    pub(crate) fn id(&self) -> &str {
        self.description["operationId"].as_str().unwrap()
    }

    pub(crate) fn name(&self) -> String {
        format!("{} {}", self.method, self.pattern)
    }

    /// The status of its usual answer.
    pub(crate) fn success(&self) -> StatusCode {
        let mut statuses = self.description["responses"].as_object().unwrap().keys();
        let success = statuses.find(|status| status.starts_with('2'));
        success.unwrap_or_else(|| panic!("{} has no success", self.name())).parse().unwrap()
    }

    pub(crate) fn examples(&self) -> Vec<Example> {
        let body = &self.description["requestBody"];
        if body.is_null() {
            return vec![Example { name: String::new(), body: None }];
        }
        let examples = body["content"]["application/json"]["examples"].as_object();
        let examples = examples
            .unwrap_or_else(|| panic!("{} takes a body and shows no example of it", self.name()));
        let example = |(name, example): (&String, &Value)| Example {
            name: name.clone(),
            body: Some(resolved(self.document, example)["value"].clone()),
        };
        examples.iter().map(example).collect()
    }

    /// Its path with everything in place that has to be there: what `own` knows, and for the rest
    /// what the description shows.
    pub(crate) fn path(&self, own: &[(&str, &str)]) -> String {
        let mut path = self.pattern.to_owned();
        let mut query = Vec::new();
        for parameter in self.description["parameters"].as_array().unwrap() {
            let parameter = resolved(self.document, parameter);
            if parameter["required"] != true {
                continue;
            }
            let name = parameter["name"].as_str().unwrap();
            let known = own.iter().find(|(known, _)| *known == name).map(|(_, value)| *value);
            let value = known.or(parameter["example"].as_str());
            let value = value.unwrap_or_else(|| panic!("{}: what is `{name}`?", self.name()));
            match parameter["in"].as_str() {
                Some("path") => path = path.replace(&format!("{{{name}}}"), value),
                Some("query") => query.push(format!("{name}={value}")),
                other => panic!("{}: nobody knows how to send `{name}` in {other:?}", self.name()),
            }
        }
        assert!(!path.contains('{'), "{path} has a parameter that is not described");
        if query.is_empty() { path } else { format!("{path}?{}", query.join("&")) }
    }
}

/// The document of a template that an example can be used on: the one of the same name, or one
/// that may change its category.
pub(crate) fn template(document: &Value, example: &str, name: &str) -> Value {
    let create = if is_for_whatsapp(example) { "graphCreateTemplate" } else { "createTemplate" };
    let create = operations(document).find(|it| it.id() == create).unwrap();
    let mut templates = create.examples();
    let fits = |it: &Example| it.body.as_ref().unwrap()["allow_category_change"] == true;
    let at = templates.iter().position(|it| it.name == example);
    let at = at.or(templates.iter().position(fits)).unwrap();
    let mut template = templates.swap_remove(at).body.unwrap();
    template["name"] = json!(name);
    template
}

/// Whether an example is for accounts with the rulebook `whatsapp`.
pub(crate) fn is_for_whatsapp(example: &str) -> bool {
    example.starts_with("whatsapp")
}

/// What a value stands for, if it only points elsewhere.
pub(crate) fn resolved<'d>(document: &'d Value, value: &'d Value) -> &'d Value {
    match value["$ref"].as_str() {
        Some(reference) => document.pointer(&reference[1..]).unwrap(),
        None => value,
    }
}
