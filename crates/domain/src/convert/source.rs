//! Objects of the source document, and helpers that build the result.

use std::borrow::Cow;

use super::{Json, Member};
use crate::document::cursor::Cursor;

/// An object of the source: in canonical form, as its rulebook stores it, and as it was written.
#[derive(Clone, Copy)]
pub(super) struct SourceObject<'s> {
    canonical: Cursor<'s, 's>,
    written: Cursor<'s, 's>,
}

impl<'s> SourceObject<'s> {
    pub(super) fn root(canonical: &'s Json<'s>, written: &'s Json<'s>) -> Self {
        Self { canonical: Cursor::root(canonical), written: Cursor::root(written) }
    }

    /// The canonical value of a field.
    pub(super) fn get(&self, field: &str) -> Option<&'s Json<'s>> {
        self.canonical.get(field)
    }

    /// Every canonical field: its name, value and position.
    pub(super) fn members(&self) -> impl Iterator<Item = (&'s str, Cursor<'s, 's>)> {
        self.canonical.members(|_| true)
    }

    /// The string value of a field; empty if there is none.
    pub(super) fn text(&self, field: &str) -> &'s str {
        self.canonical.get_str(field).unwrap_or_default()
    }

    /// The value of a field as it was written.
    pub(super) fn as_written(&self, field: &str) -> Option<&'s Json<'s>> {
        self.written.get(field)
    }

    pub(super) fn pointer(&self) -> String {
        self.canonical.pointer()
    }

    /// The object in a field, which may be absent.
    pub(super) fn field(&self, field: &'s str) -> Self {
        Self { canonical: self.canonical.field(field), written: self.written.field(field) }
    }

    /// The objects of an array.
    pub(super) fn items(&self, field: &'s str) -> impl Iterator<Item = Self> + use<'s> {
        let Self { canonical, written } = self.field(field);
        let objects = canonical.items().zip(written.items());
        objects.map(|(canonical, written)| Self { canonical, written })
    }
}

/// The items of an array; empty for any other value.
pub(super) fn array<'s>(value: Option<&'s Json<'s>>) -> &'s [Json<'s>] {
    if let Some(Json::Array(items)) = value { items } else { &[] }
}

pub(super) fn member(key: &'static str, value: Json<'static>) -> Member<'static> {
    Member { key: Cow::Borrowed(key), value, repeated: false }
}

pub(super) fn object(members: impl IntoIterator<Item = Member<'static>>) -> Json<'static> {
    Json::Object(members.into_iter().collect())
}

pub(super) fn string(text: impl Into<Cow<'static, str>>) -> Json<'static> {
    Json::String(text.into())
}

/// A copy of a field, if the source has it.
pub(super) fn copied(source: &SourceObject<'_>, field: &'static str) -> Option<Member<'static>> {
    source.get(field).map(|value| member(field, to_owned(value)))
}

/// A copy of a value that does not borrow from the source.
pub(super) fn to_owned(value: &Json<'_>) -> Json<'static> {
    match value {
        Json::Null | Json::Omitted(_) => Json::Null,
        Json::Bool(flag) => Json::Bool(*flag),
        Json::Number(number) => Json::Number(number.clone()),
        Json::String(text) => Json::String(Cow::Owned(text.clone().into_owned())),
        Json::Array(items) => Json::Array(items.iter().map(to_owned).collect()),
        Json::Object(members) => Json::Object(
            members
                .iter()
                .map(|it| Member {
                    key: Cow::Owned(it.key.clone().into_owned()),
                    value: to_owned(&it.value),
                    repeated: it.repeated,
                })
                .collect(),
        ),
    }
}
