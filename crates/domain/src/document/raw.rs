//! The members of an object as text, for stored JSON that is shown as it is.

use std::{borrow::Cow, fmt};

use serde::de::{Deserializer as _, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::KeyVisitor;

/// The keys of an object and the texts of their values, in document order; `None` if the text is not
/// an object.
pub fn members(text: &str) -> Option<Vec<(Cow<'_, str>, &str)>> {
    let mut deserializer = serde_json::Deserializer::from_str(text);
    let members = deserializer.deserialize_map(MembersVisitor).ok()?;
    deserializer.end().ok()?;
    Some(members)
}

struct MembersVisitor;

impl<'de> Visitor<'de> for MembersVisitor {
    type Value = Vec<(Cow<'de, str>, &'de str)>;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Self::Value, A::Error> {
        let mut members = Vec::with_capacity(4);
        while let Some(key) = entries.next_key_seed(KeyVisitor)? {
            members.push((key, entries.next_value::<&RawValue>()?.get()));
        }
        Ok(members)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_the_unchanged_text_of_the_object() {
        let text = r#"{"b":[1.50, {"c":"\u0041"}],"a":"x","\u0061":{}}"#;
        let expected = [("b", r#"[1.50, {"c":"\u0041"}]"#), ("a", r#""x""#), ("a", "{}")];
        assert_eq!(members(text).unwrap(), expected.map(|(key, value)| (key.into(), value)));
        assert_eq!(members("{}"), Some(Vec::new()));
        for other in ["", "[]", "7", "{", r#"{"a":}"#, "{} {}"] {
            assert_eq!(members(other), None, "{other}");
        }
    }
}
