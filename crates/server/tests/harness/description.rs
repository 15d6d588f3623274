//! The operations of the API description, and how to call each of them with its examples.

use axum::http::{Method, StatusCode};
use serde_json::{Value, json};

/// One operation of the API description.
pub(crate) struct Operation<'d> {
    pub(crate) document: &'d Value,
    pub(crate) pattern: &'d str,
    pub(crate) method: Method,
    pub(crate) description: &'d Value,
}

/// An example of a request body with its name. An operation without a body has one empty example.
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

    /// The status of a successful response.
    pub(crate) fn success(&self) -> StatusCode {
        let mut statuses = self.description["responses"].as_object().unwrap().keys();
        let success = statuses.find(|status| status.starts_with('2'));
        success.unwrap_or_else(|| panic!("{} has no success status", self.name())).parse().unwrap()
    }

    pub(crate) fn examples(&self) -> Vec<Example> {
        let body = &self.description["requestBody"];
        if body.is_null() {
            return vec![Example { name: String::new(), body: None }];
        }
        let examples = body["content"]["application/json"]["examples"].as_object();
        let examples =
            examples.unwrap_or_else(|| panic!("{} has a body without examples", self.name()));
        let example = |(name, example): (&String, &Value)| Example {
            name: name.clone(),
            body: Some(resolved(self.document, example)["value"].clone()),
        };
        examples.iter().map(example).collect()
    }

    /// The path with all required parameters: the values in `own`, otherwise the examples of the
    /// description.
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
            let value = value.unwrap_or_else(|| panic!("{}: `{name}` has no value", self.name()));
            match parameter["in"].as_str() {
                Some("path") => path = path.replace(&format!("{{{name}}}"), value),
                Some("query") => query.push(format!("{name}={value}")),
                other => panic!("{}: cannot send `{name}` in {other:?}", self.name()),
            }
        }
        assert!(!path.contains('{'), "{path} has a parameter that is not described");
        if query.is_empty() { path } else { format!("{path}?{}", query.join("&")) }
    }
}

/// The document of a template that fits an example: the create example of the same name, or one that
/// allows a change of its category.
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

/// The value, or the target if it is a reference.
pub(crate) fn resolved<'d>(document: &'d Value, value: &'d Value) -> &'d Value {
    match value["$ref"].as_str() {
        Some(reference) => document.pointer(&reference[1..]).unwrap(),
        None => value,
    }
}
