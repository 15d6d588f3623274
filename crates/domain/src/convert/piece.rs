//! A piece of the source with its place, and what pieces of the result are made of.

use std::borrow::Cow;

use super::{Json, Member};

/// An object of the source: as its rulebook keeps it, as it was written, and where it stands.
pub(super) struct Piece<'s> {
    kept: &'s Json<'s>,
    written: &'s Json<'s>,
    pub(super) pointer: String,
}

impl<'s> Piece<'s> {
    pub(super) fn root(kept: &'s Json<'s>, written: &'s Json<'s>) -> Self {
        Self { kept, written, pointer: String::new() }
    }

    pub(super) fn get(&self, field: &str) -> Option<&'s Json<'s>> {
        self.kept.get(field)
    }

    /// Every field with what stands there.
    pub(super) fn members(&self) -> impl Iterator<Item = (&'s str, &'s Json<'s>)> {
        let members = if let Json::Object(members) = self.kept { &members[..] } else { &[] };
        members.iter().map(|member| (&*member.key, &member.value))
    }

    /// A word or text; nothing is as good as none.
    pub(super) fn text(&self, field: &str) -> &'s str {
        self.get(field).and_then(Json::as_str).unwrap_or_default()
    }

    /// A field in the very form that it was written in.
    pub(super) fn as_written(&self, field: &str) -> Option<&'s Json<'s>> {
        self.written.get(field)
    }

    /// Where a field stands.
    pub(super) fn place(&self, field: &str) -> String {
        format!("{}/{field}", self.pointer)
    }

    /// The object in a field.
    pub(super) fn below(&self, field: &str) -> Piece<'s> {
        Piece {
            kept: self.get(field).unwrap_or(&Json::Null),
            written: self.as_written(field).unwrap_or(&Json::Null),
            pointer: self.place(field),
        }
    }

    /// The objects of a list.
    pub(super) fn items(&self, field: &str) -> Vec<Piece<'s>> {
        let pieces = items(self.get(field)).iter().zip(items(self.as_written(field)));
        let piece = |(index, (kept, written))| {
            let pointer = format!("{}/{field}/{index}", self.pointer);
            Piece { kept, written, pointer }
        };
        pieces.enumerate().map(piece).collect()
    }
}

/// The items of a list.
pub(super) fn items<'s>(list: Option<&'s Json<'s>>) -> &'s [Json<'s>] {
    if let Some(Json::Array(items)) = list { items } else { &[] }
}

pub(super) fn member(key: &'static str, value: Json<'static>) -> Member<'static> {
    Member { key: Cow::Borrowed(key), value, repeated: false }
}

pub(super) fn object(members: impl IntoIterator<Item = Member<'static>>) -> Json<'static> {
    Json::Object(members.into_iter().collect())
}

pub(super) fn text(text: impl Into<Cow<'static, str>>) -> Json<'static> {
    Json::String(text.into())
}

/// A field as the source has it, if it has it.
pub(super) fn copied(piece: &Piece<'_>, field: &'static str) -> Option<Member<'static>> {
    piece.get(field).map(|value| member(field, owned(value)))
}

/// A value that outlives the source.
pub(super) fn owned(value: &Json<'_>) -> Json<'static> {
    match value {
        Json::Null => Json::Null,
        Json::Bool(flag) => Json::Bool(*flag),
        Json::Number(number) => Json::Number(number.clone()),
        Json::String(text) => Json::String(Cow::Owned(text.clone().into_owned())),
        Json::Array(items) => Json::Array(items.iter().map(owned).collect()),
        Json::Object(members) => Json::Object(
            members
                .iter()
                .map(|it| Member {
                    key: Cow::Owned(it.key.clone().into_owned()),
                    value: owned(&it.value),
                    repeated: it.repeated,
                })
                .collect(),
        ),
    }
}
