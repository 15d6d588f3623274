//! A JSON tree whose members keep the order of their source, and the YAML that it is read from.

use saphyr::{LoadableYamlNode as _, Scalar, Yaml};
use serde::{Serialize, Serializer};
use serde_json::Value;

/// A JSON value. `serde_json` sorts the members of an object; readers expect them in the order in
/// which they were written.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Node {
    /// Anything but a list or an object.
    Scalar(Value),
    List(Vec<Node>),
    Object(Vec<(String, Node)>),
}

impl Node {
    pub(super) const EMPTY_OBJECT: Self = Self::Object(Vec::new());

    /// Parses a YAML document, in which aliases are replaced by what they refer to. JSON is YAML, too.
    pub(super) fn parse(yaml: &str) -> Self {
        let documents = Yaml::load_from_str(yaml).expect("the source is YAML");
        documents.into_iter().next().map_or(Self::EMPTY_OBJECT, from_yaml)
    }

    pub(super) fn string(text: impl Into<String>) -> Self {
        Self::Scalar(Value::String(text.into()))
    }

    pub(super) fn strings(texts: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self::List(texts.into_iter().map(Self::string).collect())
    }

    /// An object that refers to a component of the document.
    pub(super) fn reference(section: &str, name: &str) -> Self {
        let target = format!("#/components/{section}/{name}");
        Self::Object(vec![("$ref".to_owned(), Self::string(target))])
    }

    pub(super) fn as_str(&self) -> Option<&str> {
        match self {
            Self::Scalar(Value::String(text)) => Some(text),
            _ => None,
        }
    }

    /// The strings of a list.
    pub(super) fn as_strings(&self) -> impl Iterator<Item = &str> {
        let items: &[Self] = if let Self::List(items) = self { items } else { &[] };
        items.iter().filter_map(Self::as_str)
    }

    pub(super) fn get(&self, key: &str) -> Option<&Self> {
        self.members().iter().find(|(name, _)| name == key).map(|(_, value)| value)
    }

    /// The member with this key, which is added as an empty object if it is missing.
    pub(super) fn entry(&mut self, key: &str) -> &mut Self {
        let Self::Object(members) = self else { panic!("`{key}` is a member of an object") };
        let index = members.iter().position(|(name, _)| name == key).unwrap_or_else(|| {
            members.push((key.to_owned(), Self::EMPTY_OBJECT));
            members.len() - 1
        });
        &mut members[index].1
    }

    pub(super) fn remove(&mut self, key: &str) -> Option<Self> {
        let Self::Object(members) = self else { return None };
        let index = members.iter().position(|(name, _)| name == key)?;
        Some(members.remove(index).1)
    }

    pub(super) fn members(&self) -> &[(String, Self)] {
        if let Self::Object(members) = self { members } else { &[] }
    }

    /// The items of a list or the values of an object.
    pub(super) fn children_mut(&mut self) -> Vec<&mut Self> {
        match self {
            Self::Scalar(_) => Vec::new(),
            Self::List(items) => items.iter_mut().collect(),
            Self::Object(members) => members.iter_mut().map(|(_, value)| value).collect(),
        }
    }

    /// The items of a list or the values of an object.
    pub(super) fn children(&self) -> Vec<&Self> {
        match self {
            Self::Scalar(_) => Vec::new(),
            Self::List(items) => items.iter().collect(),
            Self::Object(members) => members.iter().map(|(_, value)| value).collect(),
        }
    }
}

impl Serialize for Node {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Scalar(value) => value.serialize(serializer),
            Self::List(items) => serializer.collect_seq(items),
            Self::Object(members) => {
                serializer.collect_map(members.iter().map(|(name, value)| (name, value)))
            }
        }
    }
}

fn from_yaml(yaml: Yaml<'_>) -> Node {
    match yaml {
        Yaml::Value(scalar) => Node::Scalar(match scalar {
            Scalar::Null => Value::Null,
            Scalar::Boolean(value) => value.into(),
            Scalar::Integer(value) => value.into(),
            Scalar::FloatingPoint(value) => value.into_inner().into(),
            Scalar::String(value) => value.into_owned().into(),
        }),
        Yaml::Sequence(items) => Node::List(items.into_iter().map(from_yaml).collect()),
        Yaml::Mapping(members) => {
            let members = members.into_iter().map(|(name, value)| match name {
                Yaml::Value(Scalar::String(name)) => (name.into_owned(), from_yaml(value)),
                other => panic!("a key is not a string: {other:?}"),
            });
            Node::Object(members.collect())
        }
        other => panic!("not JSON: {other:?}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_keep_their_order_and_aliases_are_resolved() {
        let node = Node::parse("b: &b {y: 1, x: [true, 'no', 1.5]}\na: *b\n");
        let text = serde_json::to_string(&node).unwrap();
        assert_eq!(text, r#"{"b":{"y":1,"x":[true,"no",1.5]},"a":{"y":1,"x":[true,"no",1.5]}}"#);
        assert_eq!(Node::parse(&text), node, "JSON is read as well");
    }
}
