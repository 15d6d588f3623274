//! A position in a message: the value there and the JSON pointer that leads to it, however deep.

use crate::document::{Json, pointer::Segment};

/// A position in a message, which may be one without a value; `null` counts as absent.
///
/// [`crate::document::cursor::Cursor`] has a path of limited length; the parameters of cards are
/// nested deeper.
#[derive(Clone)]
pub(super) struct Position<'d> {
    pub(super) value: Option<&'d Json<'d>>,
    pub(super) pointer: String,
}

impl<'d> Position<'d> {
    pub(super) fn root(value: &'d Json<'d>) -> Self {
        Self { value: present(value), pointer: String::new() }
    }

    /// The position of a member.
    pub(super) fn field(&self, key: &str) -> Self {
        self.child(Segment::Key(key), self.value.and_then(|it| it.get(key)))
    }

    /// The positions of the items of an array, including `null` items. Empty for any other value.
    pub(super) fn items(&self) -> impl Iterator<Item = Self> {
        let items = if let Some(Json::Array(items)) = self.value { Json::kept(items) } else { &[] };
        let item = |(index, item)| self.child(Segment::Index(index), present(item));
        items.iter().enumerate().map(item)
    }

    /// The number of items of an array, including those that are not kept.
    pub(super) fn count(&self) -> usize {
        if let Some(Json::Array(items)) = self.value { Json::count(items) } else { 0 }
    }

    pub(super) fn as_str(&self) -> Option<&'d str> {
        self.value?.as_str()
    }

    /// The name of the field at this position.
    pub(super) fn name(&self) -> &str {
        self.pointer.rsplit('/').next().unwrap_or_default()
    }

    /// The JSON type, for messages.
    pub(super) fn kind(&self) -> &'static str {
        self.value.map_or("null", Json::kind)
    }

    fn child(&self, segment: Segment<'_>, value: Option<&'d Json<'d>>) -> Self {
        let mut pointer = self.pointer.clone();
        segment.append_to(&mut pointer);
        Self { value, pointer }
    }
}

fn present<'d>(value: &'d Json<'d>) -> Option<&'d Json<'d>> {
    (!matches!(value, Json::Null)).then_some(value)
}
