//! A JSON document as a borrowed tree. Strings borrow from the request body, members keep their
//! order, and duplicate keys are preserved instead of silently overwritten.
//!
//! `serde_json` does the lexing; the visitors in this module build the tree.

mod assembly;
pub(crate) mod byte_classes;
pub(crate) mod cursor;
pub(crate) mod emoji;
pub(crate) mod pointer;
pub mod raw;
mod skipped;
pub mod suggest;
pub mod text;

use std::{borrow::Cow, cell::Cell, collections::HashSet, fmt};

use skipped::Skipped;

use serde::{
    Serialize, Serializer,
    de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor},
};

/// Maximum nesting depth of lists and objects.
pub const MAX_DEPTH: usize = 32;

/// Number of items of a list that are kept. No field accepts a longer list; further items are only
/// counted, because a tree of 256 KB of `{}` costs more time than all checks.
pub const MAX_LIST_ITEMS: usize = 2_048;

/// The largest whole number that every JSON implementation represents exactly: 2^53 - 1.
pub const MAX_SAFE_INTEGER: u64 = (1 << 53) - 1;

/// A syntactically valid JSON document; its content is not validated yet.
#[derive(Debug)]
pub struct Document<'a> {
    root: Json<'a>,
    has_duplicates: bool,
}

/// A JSON value.
#[derive(Clone, Debug)]
pub enum Json<'a> {
    /// `null`, which means the same as an absent member.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// Any number.
    Number(serde_json::Number),
    /// A string, borrowed unless it contains escapes.
    String(Cow<'a, str>),
    /// `[…]`. Its last item is [`Json::Omitted`] if it has more than [`MAX_LIST_ITEMS`].
    Array(Vec<Json<'a>>),
    /// `{…}`, with its members in document order.
    Object(Vec<Member<'a>>),
    /// The number of further items of a list that are valid JSON, but are not kept.
    Omitted(usize),
}

/// A `"key": value` pair of an object.
#[derive(Clone, Debug)]
pub struct Member<'a> {
    /// The unescaped key.
    pub key: Cow<'a, str>,
    /// The value.
    pub value: Json<'a>,
    /// Whether an earlier member of the same object has the same key.
    pub repeated: bool,
}

/// The reason why a request body could not be parsed.
#[derive(Debug, thiserror::Error)]
pub enum JsonError {
    /// Lists and objects are nested deeper than [`MAX_DEPTH`].
    #[error("nested deeper than {MAX_DEPTH} levels")]
    TooDeep,
    /// The bytes are not UTF-8.
    #[error("not UTF-8: {0}")]
    Encoding(#[from] std::str::Utf8Error),
    /// The text is not valid JSON.
    #[error("{0}")]
    Syntax(serde_json::Error),
}

impl<'a> Document<'a> {
    /// Parses a request body.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, JsonError> {
        let flags = ParseFlags::default();
        // Validating UTF-8 once for the whole body is faster than once per string.
        let text = std::str::from_utf8(bytes)?;
        let mut deserializer = serde_json::Deserializer::from_str(text);
        let seed = ValueVisitor { flags: &flags, depth: 0 };
        let root = seed.deserialize(&mut deserializer).and_then(|root| {
            deserializer.end()?;
            Ok(root)
        });
        match root {
            Ok(root) => Ok(Self { root, has_duplicates: flags.duplicates.get() }),
            Err(_) if flags.too_deep.get() => Err(JsonError::TooDeep),
            Err(error) => Err(JsonError::Syntax(error)),
        }
    }

    /// The outermost value.
    pub fn root(&self) -> &Json<'a> {
        &self.root
    }

    /// The outermost value, to replace values in it.
    pub fn root_mut(&mut self) -> &mut Json<'a> {
        &mut self.root
    }

    /// Consumes the document and returns its outermost value.
    pub fn into_root(self) -> Json<'a> {
        self.root
    }

    /// Whether any object of the document contains a duplicate key.
    pub fn has_duplicates(&self) -> bool {
        self.has_duplicates
    }
}

impl<'a> Json<'a> {
    /// The value of a member; `None` if this is not an object or the member is absent or `null`.
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

    /// The number, if it is a positive integer to [`MAX_SAFE_INTEGER`].
    pub fn as_positive_integer(&self) -> Option<u64> {
        match self {
            Json::Number(number) => {
                // Some programs write whole numbers as `7.0`.
                let from_float =
                    || number.as_f64().filter(|it| it.fract() == 0.0)?.to_string().parse().ok();
                let whole = number.as_u64().or_else(from_float);
                whole.filter(|number| (1..=MAX_SAFE_INTEGER).contains(number))
            }
            _ => None,
        }
    }

    /// The number, if it is a whole number whose magnitude is at most [`MAX_SAFE_INTEGER`].
    pub fn as_i64(&self) -> Option<i64> {
        let Json::Number(number) = self else { return None };
        let from_float =
            || number.as_f64().filter(|it| it.fract() == 0.0)?.to_string().parse().ok();
        let whole: Option<i64> = number.as_i64().or_else(from_float);
        whole.filter(|number| number.unsigned_abs() <= MAX_SAFE_INTEGER)
    }

    /// The number of items of a list, including those that are not kept.
    pub fn count(items: &[Json<'_>]) -> usize {
        match items {
            [kept @ .., Json::Omitted(more)] => kept.len() + more,
            items => items.len(),
        }
    }

    /// The items of a list that are kept.
    pub(crate) fn kept<'j>(items: &'j [Json<'a>]) -> &'j [Json<'a>] {
        match items {
            [kept @ .., Json::Omitted(_)] => kept,
            items => items,
        }
    }

    /// The JSON type with its article, for messages.
    pub fn kind(&self) -> &'static str {
        match self {
            Json::Null => "null",
            Json::Bool(_) => "a boolean",
            Json::Number(_) => "a number",
            Json::String(_) => "a string",
            Json::Array(_) => "a list",
            Json::Object(_) => "an object",
            Json::Omitted(_) => "the rest of a long list",
        }
    }
}

/// Writes members in document order.
impl Serialize for Json<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Json::Null | Json::Omitted(_) => serializer.serialize_unit(),
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

/// Findings of the visitor besides the tree.
#[derive(Default)]
struct ParseFlags {
    duplicates: Cell<bool>,
    too_deep: Cell<bool>,
}

#[derive(Clone, Copy)]
struct ValueVisitor<'f> {
    flags: &'f ParseFlags,
    depth: usize,
}

impl ValueVisitor<'_> {
    /// The visitor for the items one level deeper.
    fn nested<E: serde::de::Error>(self) -> Result<Self, E> {
        if self.depth == MAX_DEPTH {
            self.flags.too_deep.set(true);
            return Err(E::custom("nested too deeply"));
        }
        Ok(Self { depth: self.depth + 1, ..self })
    }
}

impl<'de> DeserializeSeed<'de> for ValueVisitor<'_> {
    type Value = Json<'de>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Json<'de>, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for ValueVisitor<'_> {
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
        let item = self.nested()?;
        // An empty list or object allocates nothing: 256 KB of `{}` would cost 20 MB.
        let mut list = Vec::new();
        while list.len() < MAX_LIST_ITEMS {
            let Some(value) = items.next_element_seed(item)? else { return Ok(Json::Array(list)) };
            list.push(value);
        }
        let mut omitted = 0;
        while items.next_element_seed(Skipped(item))?.is_some() {
            omitted += 1;
        }
        if omitted > 0 {
            list.push(Json::Omitted(omitted));
        }
        Ok(Json::Array(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Json<'de>, A::Error> {
        let value = self.nested()?;
        let mut members: Vec<Member<'de>> = Vec::new();
        let mut index = KeyIndex::default();
        while let Some(key) = entries.next_key_seed(KeyVisitor)? {
            let repeated = index.has(&key, &members);
            if repeated {
                self.flags.duplicates.set(true);
            }
            members.push(Member { key, value: entries.next_value_seed(value)?, repeated });
        }
        Ok(Json::Object(members))
    }
}

/// The keys of an object. A small one is searched linearly and a large one indexed: a hostile body
/// with thousands of members does not cost quadratic time.
#[derive(Default)]
struct KeyIndex<'de> {
    keys: HashSet<Cow<'de, str>>,
    /// Number of members whose keys are indexed.
    indexed: usize,
}

impl<'de> KeyIndex<'de> {
    const MAX_LINEAR_SEARCH: usize = 16;

    /// Whether one of the `members` has the key of the next one.
    fn has(&mut self, key: &str, members: &[Member<'de>]) -> bool {
        if members.len() < Self::MAX_LINEAR_SEARCH {
            return members.iter().any(|member| member.key == key);
        }
        self.keys.extend(members[self.indexed..].iter().map(|member| member.key.clone()));
        self.indexed = members.len();
        self.keys.contains(key)
    }
}

struct KeyVisitor;

impl<'de> DeserializeSeed<'de> for KeyVisitor {
    type Value = Cow<'de, str>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl<'de> Visitor<'de> for KeyVisitor {
    type Value = Cow<'de, str>;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("an object key")
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
    fn strings_without_escapes_are_borrowed_and_members_keep_their_order() {
        let document = parse(r#"{"b":"plain","a":"esc\u0061ped"}"#).unwrap();
        let Json::Object(members) = document.root() else { panic!("{document:?}") };
        assert!(matches!(&members[0].value, Json::String(Cow::Borrowed("plain"))));
        assert!(matches!(&members[1].value, Json::String(Cow::Owned(text)) if text == "escaped"));
        assert_eq!([&*members[0].key, &*members[1].key], ["b", "a"]);
    }

    #[test]
    fn duplicate_keys_are_detected_in_small_and_large_objects() {
        assert!(!parse(r#"{"a":{"b":1},"b":1}"#).unwrap().has_duplicates());
        assert!(parse(r#"{"x":[{"a":1,"\u0061":2}]}"#).unwrap().has_duplicates());
        let many: Vec<String> = (0..40).map(|n| format!("\"k{n}\":0")).collect();
        assert!(!parse(&format!("{{{}}}", many.join(","))).unwrap().has_duplicates());
        assert!(parse(&format!("{{{},\"k39\":1}}", many.join(","))).unwrap().has_duplicates());
    }

    #[test]
    fn whole_numbers_are_read_in_every_notation() {
        let number = |text: &str| parse(text).unwrap().root().as_positive_integer();
        for text in ["7", "7.0", "7e0", "0.7e1"] {
            assert_eq!(number(text), Some(7), "{text}");
        }
        assert_eq!(number("9007199254740991"), Some(MAX_SAFE_INTEGER));
        for text in ["0", "-7", "7.5", "1e300", "9007199254740992", "9007199254740992.0", "\"7\""] {
            assert_eq!(number(text), None, "{text}");
        }
    }

    #[test]
    fn items_of_a_long_list_are_checked_and_counted_but_not_kept() {
        let list = |count: usize, last: &str| format!("[{}{last}]", "{},".repeat(count - 1));
        let items = |count: usize| {
            let text = list(count, r#"{"a\n":[1.5,-1,true,null,"\t"]}"#);
            match parse(&text).unwrap().into_root() {
                Json::Array(items) => (items.len(), Json::count(&items)),
                other => panic!("{other:?}"),
            }
        };
        assert_eq!(items(MAX_LIST_ITEMS), (MAX_LIST_ITEMS, MAX_LIST_ITEMS));
        assert_eq!(items(MAX_LIST_ITEMS + 1), (MAX_LIST_ITEMS + 1, MAX_LIST_ITEMS + 1));
        assert_eq!(items(9_000), (MAX_LIST_ITEMS + 1, 9_000));
        for bad in ["nul", "1e400", "\"\\ud800\"", "{\"a\"}", "{1:2}"] {
            assert!(matches!(parse(&list(9_000, bad)), Err(JsonError::Syntax(_))), "{bad}");
        }
        let deep =
            |depth: usize| list(9_000, &format!("{}{}", "[".repeat(depth), "]".repeat(depth)));
        assert!(parse(&deep(MAX_DEPTH - 1)).is_ok());
        assert!(matches!(parse(&deep(MAX_DEPTH)), Err(JsonError::TooDeep)));
    }

    #[test]
    fn the_nesting_depth_is_limited() {
        let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        assert!(parse(&nested(MAX_DEPTH)).is_ok());
        assert!(matches!(parse(&nested(MAX_DEPTH + 1)), Err(JsonError::TooDeep)));
        assert!(matches!(parse(&"[".repeat(100_000)), Err(JsonError::TooDeep)));
    }

    #[test]
    fn invalid_json_is_a_syntax_error() {
        for text in ["", "{", "[1,]", "\u{feff}{}", "{} {}", "nul", r#""\ud800""#, "1e400"] {
            assert!(matches!(parse(text), Err(JsonError::Syntax(_))), "{text:?}");
        }
        assert!(matches!(Document::parse(b"\"\xff\""), Err(JsonError::Encoding(_))));
    }
}
