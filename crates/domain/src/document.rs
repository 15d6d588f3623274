//! A JSON document as a borrowed tree: strings point into the request, member order is kept,
//! and duplicate keys are remembered instead of silently won by the last.
//!
//! `serde_json` does the lexing; this file only says what to build from it.

pub(crate) mod pointer;
pub mod suggest;
pub(crate) mod text;

use std::{borrow::Cow, cell::Cell, collections::HashSet, fmt};

use serde::{
    Serialize, Serializer,
    de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor},
};

/// How deep lists and objects may be nested.
pub const MAX_DEPTH: usize = 32;

/// The largest whole number that every JSON program can read: 2^53 - 1.
pub const MAX_SAFE_INTEGER: u64 = (1 << 53) - 1;

/// A whole document that is JSON; whether it means anything is asked later.
#[derive(Debug)]
pub struct Document<'a> {
    root: Json<'a>,
    has_duplicates: bool,
}

/// One value of the tree.
#[derive(Clone, Debug)]
pub enum Json<'a> {
    /// `null`, which means the same as an absent member.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// Any number.
    Number(serde_json::Number),
    /// A string, borrowed unless it held escapes.
    String(Cow<'a, str>),
    /// `[…]`.
    Array(Vec<Json<'a>>),
    /// `{…}`, in the order it was written.
    Object(Vec<Member<'a>>),
}

/// One `"key": value` of an object.
#[derive(Clone, Debug)]
pub struct Member<'a> {
    /// The key as written.
    pub key: Cow<'a, str>,
    /// What stands behind it.
    pub value: Json<'a>,
    /// Whether the same key stood earlier in the same object.
    pub repeated: bool,
}

/// Why bytes are not a JSON document that we read.
#[derive(Debug, thiserror::Error)]
pub enum JsonError {
    /// Lists and objects are nested deeper than [`MAX_DEPTH`].
    #[error("nested deeper than {MAX_DEPTH} levels")]
    TooDeep,
    /// The bytes are not UTF-8.
    #[error("not UTF-8: {0}")]
    Encoding(#[from] std::str::Utf8Error),
    /// The text breaks JSON's grammar.
    #[error("{0}")]
    Syntax(serde_json::Error),
}

impl<'a> Document<'a> {
    /// Reads a request body.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, JsonError> {
        let notes = Notes::default();
        // Looking through the whole once is quicker than through each string by itself.
        let text = std::str::from_utf8(bytes)?;
        let mut deserializer = serde_json::Deserializer::from_str(text);
        let seed = Value { notes: &notes, depth: 0 };
        let root = seed.deserialize(&mut deserializer).and_then(|root| {
            deserializer.end()?;
            Ok(root)
        });
        match root {
            Ok(root) => Ok(Self { root, has_duplicates: notes.duplicates.get() }),
            Err(_) if notes.too_deep.get() => Err(JsonError::TooDeep),
            Err(error) => Err(JsonError::Syntax(error)),
        }
    }

    /// A document that was put together from others.
    pub fn of(members: Vec<Member<'a>>, has_duplicates: bool) -> Self {
        Self { root: Json::Object(members), has_duplicates }
    }

    /// The outermost value.
    pub fn root(&self) -> &Json<'a> {
        &self.root
    }

    /// The outermost value, for keeps.
    pub fn into_root(self) -> Json<'a> {
        self.root
    }

    /// Whether any object of the document names a member twice.
    pub fn has_duplicates(&self) -> bool {
        self.has_duplicates
    }
}

impl<'a> Json<'a> {
    /// The member of that name, unless this is no object or the member is absent or `null`.
    pub fn get(&self, key: &str) -> Option<&Json<'a>> {
        let Json::Object(members) = self else { return None };
        let member = members.iter().find(|member| member.key == key)?;
        (!matches!(member.value, Json::Null)).then_some(&member.value)
    }

    /// The string, if it is one.
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Json::String(text) => Some(text),
            _ => None,
        }
    }

    /// The whole number from 1, if it is one that every JSON program can read.
    pub fn as_u64(&self) -> Option<u64> {
        match self {
            Json::Number(number) => {
                // Some programs write whole numbers as `7.0`.
                let written =
                    || number.as_f64().filter(|it| it.fract() == 0.0)?.to_string().parse().ok();
                let whole = number.as_u64().or_else(written);
                whole.filter(|number| (1..=MAX_SAFE_INTEGER).contains(number))
            }
            _ => None,
        }
    }

    /// The whole number, if it is one that every JSON program can read.
    pub fn as_i64(&self) -> Option<i64> {
        let Json::Number(number) = self else { return None };
        let written = || number.as_f64().filter(|it| it.fract() == 0.0)?.to_string().parse().ok();
        let whole: Option<i64> = number.as_i64().or_else(written);
        whole.filter(|number| number.unsigned_abs() <= MAX_SAFE_INTEGER)
    }

    /// What kind of value this is, as a word with its article.
    pub fn kind(&self) -> &'static str {
        match self {
            Json::Null => "null",
            Json::Bool(_) => "a boolean",
            Json::Number(_) => "a number",
            Json::String(_) => "a string",
            Json::Array(_) => "a list",
            Json::Object(_) => "an object",
        }
    }
}

/// As it was read: members in their order.
impl Serialize for Json<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Json::Null => serializer.serialize_unit(),
            Json::Bool(flag) => serializer.serialize_bool(*flag),
            Json::Number(number) => number.serialize(serializer),
            Json::String(text) => serializer.serialize_str(text),
            Json::Array(items) => serializer.collect_seq(items),
            Json::Object(members) => {
                serializer.collect_map(members.iter().map(|it| (&it.key, &it.value)))
            }
        }
    }
}

/// What the visitor noticed on its way, beside the tree.
#[derive(Default)]
struct Notes {
    duplicates: Cell<bool>,
    too_deep: Cell<bool>,
}

#[derive(Clone, Copy)]
struct Value<'n> {
    notes: &'n Notes,
    depth: usize,
}

impl Value<'_> {
    fn deeper<E: serde::de::Error>(self) -> Result<Self, E> {
        if self.depth == MAX_DEPTH {
            self.notes.too_deep.set(true);
            return Err(E::custom("nested too deep"));
        }
        Ok(Self { depth: self.depth + 1, ..self })
    }
}

impl<'de> DeserializeSeed<'de> for Value<'_> {
    type Value = Json<'de>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Json<'de>, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Value<'_> {
    type Value = Json<'de>;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<Json<'de>, E> {
        Ok(Json::Null)
    }

    fn visit_bool<E>(self, flag: bool) -> Result<Json<'de>, E> {
        Ok(Json::Bool(flag))
    }

    fn visit_i64<E>(self, number: i64) -> Result<Json<'de>, E> {
        Ok(Json::Number(number.into()))
    }

    fn visit_u64<E>(self, number: u64) -> Result<Json<'de>, E> {
        Ok(Json::Number(number.into()))
    }

    fn visit_f64<E: serde::de::Error>(self, number: f64) -> Result<Json<'de>, E> {
        let number = serde_json::Number::from_f64(number);
        number.map(Json::Number).ok_or_else(|| E::custom("number out of range"))
    }

    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Json<'de>, E> {
        Ok(Json::String(Cow::Borrowed(text)))
    }

    fn visit_str<E>(self, text: &str) -> Result<Json<'de>, E> {
        Ok(Json::String(Cow::Owned(text.to_owned())))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Json<'de>, A::Error> {
        let item = self.deeper()?;
        let mut list = Vec::with_capacity(2);
        while let Some(value) = items.next_element_seed(item)? {
            list.push(value);
        }
        Ok(Json::Array(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Json<'de>, A::Error> {
        let value = self.deeper()?;
        let mut members: Vec<Member<'de>> = Vec::with_capacity(4);
        let mut many = HashSet::new();
        while let Some(key) = entries.next_key_seed(Key)? {
            let repeated = stood_before(&key, &members, &mut many);
            if repeated {
                self.notes.duplicates.set(true);
            }
            members.push(Member { key, value: entries.next_value_seed(value)?, repeated });
        }
        Ok(Json::Object(members))
    }
}

/// Looks through a small object directly; a large one is indexed, so that a hostile body with
/// thousands of members costs no quadratic time.
fn stood_before(key: &str, members: &[Member<'_>], many: &mut HashSet<String>) -> bool {
    const FEW: usize = 16;
    if members.len() < FEW {
        return members.iter().any(|member| member.key == key);
    }
    if many.is_empty() {
        many.extend(members.iter().map(|member| member.key.to_string()));
    }
    !many.insert(key.to_owned())
}

struct Key;

impl<'de> DeserializeSeed<'de> for Key {
    type Value = Cow<'de, str>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl<'de> Visitor<'de> for Key {
    type Value = Cow<'de, str>;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a member name")
    }

    fn visit_borrowed_str<E>(self, key: &'de str) -> Result<Self::Value, E> {
        Ok(Cow::Borrowed(key))
    }

    fn visit_str<E>(self, key: &str) -> Result<Self::Value, E> {
        Ok(Cow::Owned(key.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Document<'_>, JsonError> {
        Document::parse(text.as_bytes())
    }

    #[test]
    fn strings_without_escapes_are_borrowed_and_order_is_kept() {
        let document = parse(r#"{"b":"plain","a":"esc\u0061ped"}"#).unwrap();
        let Json::Object(members) = document.root() else { panic!("{document:?}") };
        assert!(matches!(&members[0].value, Json::String(Cow::Borrowed("plain"))));
        assert!(matches!(&members[1].value, Json::String(Cow::Owned(text)) if text == "escaped"));
        assert_eq!([&*members[0].key, &*members[1].key], ["b", "a"]);
    }

    #[test]
    fn duplicate_keys_are_noticed_in_small_and_in_large_objects() {
        assert!(!parse(r#"{"a":{"b":1},"b":1}"#).unwrap().has_duplicates());
        assert!(parse(r#"{"x":[{"a":1,"\u0061":2}]}"#).unwrap().has_duplicates());
        let many: Vec<String> = (0..40).map(|n| format!("\"k{n}\":0")).collect();
        assert!(!parse(&format!("{{{}}}", many.join(","))).unwrap().has_duplicates());
        assert!(parse(&format!("{{{},\"k39\":1}}", many.join(","))).unwrap().has_duplicates());
    }

    #[test]
    fn whole_numbers_are_read_however_they_are_written() {
        let number = |text: &str| parse(text).unwrap().root().as_u64();
        for text in ["7", "7.0", "7e0", "0.7e1"] {
            assert_eq!(number(text), Some(7), "{text}");
        }
        assert_eq!(number("9007199254740991"), Some(MAX_SAFE_INTEGER));
        for text in ["0", "-7", "7.5", "1e300", "9007199254740992", "9007199254740992.0", "\"7\""] {
            assert_eq!(number(text), None, "{text}");
        }
    }

    #[test]
    fn nesting_is_bounded() {
        let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        assert!(parse(&nested(MAX_DEPTH)).is_ok());
        assert!(matches!(parse(&nested(MAX_DEPTH + 1)), Err(JsonError::TooDeep)));
        assert!(matches!(parse(&"[".repeat(100_000)), Err(JsonError::TooDeep)));
    }

    #[test]
    fn what_is_not_json_is_a_syntax_error() {
        for text in ["", "{", "[1,]", "\u{feff}{}", "{} {}", "nul", r#""\ud800""#, "1e400"] {
            assert!(matches!(parse(text), Err(JsonError::Syntax(_))), "{text:?}");
        }
        assert!(matches!(Document::parse(b"\"\xff\""), Err(JsonError::Encoding(_))));
    }
}
