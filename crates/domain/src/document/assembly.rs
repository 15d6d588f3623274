//! Documents that are assembled from parts instead of parsed from one text.

use std::borrow::Cow;

use super::{Document, Json, JsonError, KeyIndex, MAX_DEPTH, Member};

impl<'a> Document<'a> {
    /// A document with these members.
    pub fn from_members(members: Vec<Member<'a>>, has_duplicates: bool) -> Self {
        Self { root: Json::Object(members), has_duplicates }
    }

    /// A document that was part of another one.
    pub(crate) fn from_root(root: Json<'a>, has_duplicates: bool) -> Self {
        Self { root, has_duplicates }
    }

    /// A document that is one string.
    pub fn from_string(text: impl Into<Cow<'a, str>>) -> Self {
        Self { root: Json::String(text.into()), has_duplicates: false }
    }

    /// An object whose fields were parsed one by one. The result is the same as if their text had
    /// been parsed at once: repeated keys are marked, and the nesting depth is limited.
    pub fn from_fields(
        fields: impl IntoIterator<Item = (Cow<'a, str>, Document<'a>)>,
    ) -> Result<Self, JsonError> {
        let (mut members, mut index) = (Vec::new(), KeyIndex::default());
        let mut has_duplicates = false;
        for (key, field) in fields {
            if field.root.depth() >= MAX_DEPTH {
                return Err(JsonError::TooDeep);
            }
            let repeated = index.has(&key, &members);
            has_duplicates |= repeated | field.has_duplicates;
            members.push(Member { key, value: field.root, repeated });
        }
        Ok(Self::from_members(members, has_duplicates))
    }

    /// The same document, which borrows nothing.
    pub fn into_owned(self) -> Document<'static> {
        Document { root: self.root.into_owned(), has_duplicates: self.has_duplicates }
    }
}

impl Json<'_> {
    /// How deep lists and objects are nested; 0 if it is neither.
    fn depth(&self) -> usize {
        let deepest = match self {
            Json::Array(items) => items.iter().map(Json::depth).max(),
            Json::Object(members) => members.iter().map(|member| member.value.depth()).max(),
            _ => return 0,
        };
        1 + deepest.unwrap_or_default()
    }

    fn into_owned(self) -> Json<'static> {
        let owned = |text: Cow<'_, str>| Cow::Owned(text.into_owned());
        match self {
            Json::Null => Json::Null,
            Json::Omitted(count) => Json::Omitted(count),
            Json::Bool(flag) => Json::Bool(flag),
            Json::Number(number) => Json::Number(number),
            Json::String(text) => Json::String(owned(text)),
            Json::Array(items) => Json::Array(items.into_iter().map(Json::into_owned).collect()),
            Json::Object(members) => {
                let member = |it: Member<'_>| Member {
                    key: owned(it.key),
                    value: it.value.into_owned(),
                    repeated: it.repeated,
                };
                Json::Object(members.into_iter().map(member).collect())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_that_are_parsed_one_by_one_are_the_document_of_their_text() {
        let fields = [("a", "[1.50]"), ("b", r#"{"x":1,"x":"\u0041"}"#), ("a", "null")];
        let text: Vec<String> = fields.iter().map(|(key, it)| format!("\"{key}\":{it}")).collect();
        let text = format!("{{{}}}", text.join(","));
        let parsed = Document::parse(text.as_bytes()).unwrap();
        let parts = fields.map(|(key, it)| (key.into(), Document::parse(it.as_bytes()).unwrap()));
        let assembled = Document::from_fields(parts).unwrap().into_owned();
        assert_eq!(format!("{assembled:?}"), format!("{parsed:?}"));
        assert!(assembled.has_duplicates());
    }

    #[test]
    fn the_object_around_the_fields_counts_as_a_level() {
        let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        for (depth, is_valid) in [(0, true), (MAX_DEPTH - 1, true), (MAX_DEPTH, false)] {
            let text = if depth == 0 { "7".to_owned() } else { nested(depth) };
            let field = ("a".into(), Document::parse(text.as_bytes()).unwrap());
            assert_eq!(Document::from_fields([field]).is_ok(), is_valid, "{depth}");
        }
    }
}
