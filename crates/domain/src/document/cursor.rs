//! A position in a JSON document: the value there and the JSON pointer that leads to it.

use super::{Json, pointer::Segment};

/// The longest path that is descended has five hops:
/// `/cards/0 /buttons/0 /sections/0 /product_items/0 /product_retailer_id`.
const MAX_HOPS: usize = 5;

/// Marks a hop without an index.
const NO_INDEX: u32 = u32::MAX;

/// Longer keys are left out of pointers, so that a document with huge keys cannot cause a huge
/// response.
const MAX_KEY_BYTES: usize = 50;

/// A position in a document, which may be one without a value. The path is stored inline, so that
/// descending does not allocate; the pointer is written only on request.
///
/// Each hop of the path is a member, an item, or a member and one of its items. This keeps cursors
/// small enough to be copied without a call to `memcpy`.
#[derive(Clone, Copy)]
pub(crate) struct Cursor<'v, 'k> {
    value: Option<&'v Json<'v>>,
    keys: [Option<&'k str>; MAX_HOPS],
    indices: [u32; MAX_HOPS],
    hops: u32,
}

impl<'v, 'k> Cursor<'v, 'k> {
    /// The root of a document.
    pub(crate) fn root(value: &'v Json<'v>) -> Self {
        let value = Some(value).filter(|value| is_present(value));
        Self { value, keys: [None; MAX_HOPS], indices: [NO_INDEX; MAX_HOPS], hops: 0 }
    }

    /// The value; `null` counts as absent.
    pub(crate) fn value(&self) -> Option<&'v Json<'v>> {
        self.value
    }

    /// The items of the array at this position; empty if there is none.
    pub(crate) fn array(&self) -> &'v [Json<'v>] {
        if let Some(Json::Array(items)) = self.value { items } else { &[] }
    }

    /// The value of a member.
    pub(crate) fn get(&self, key: &str) -> Option<&'v Json<'v>> {
        self.value?.get(key)
    }

    /// The string value of a member.
    pub(crate) fn get_str(&self, key: &str) -> Option<&'v str> {
        self.get(key)?.as_str()
    }

    /// Moves to a member.
    #[inline]
    pub(crate) fn field<'q>(&self, key: &'q str) -> Cursor<'v, 'q>
    where
        'k: 'q,
    {
        self.child(Segment::Key(key), self.get(key))
    }

    /// Moves to the member whose key is a decimal number.
    #[inline]
    pub(crate) fn numbered_field(&self, number: usize) -> Self {
        self.child(Segment::Index(number), self.get(itoa::Buffer::new().format(number)))
    }

    /// Moves to an array item.
    #[inline]
    pub(crate) fn item(&self, index: usize) -> Self {
        self.child(Segment::Index(index), self.array().get(index))
    }

    /// The position of every array item, including `null` items.
    pub(crate) fn items(self) -> impl Iterator<Item = Self> {
        let items = self.array().iter().enumerate();
        items.map(move |(index, item)| self.child(Segment::Index(index), Some(item)))
    }

    /// The key and the position of every selected member that is not `null`.
    pub(crate) fn members<'q>(
        &self,
        is_selected: impl Fn(&str) -> bool,
    ) -> impl Iterator<Item = (&'v str, Cursor<'v, 'q>)>
    where
        'k: 'q,
        'v: 'q,
    {
        let members = if let Some(Json::Object(members)) = self.value { &members[..] } else { &[] };
        let selected = members
            .iter()
            .filter(move |member| is_present(&member.value) && is_selected(&member.key));
        selected.map(|member| {
            (&*member.key, self.child(Segment::Key(&member.key), Some(&member.value)))
        })
    }

    /// The JSON pointer of this position, without keys that are too long.
    pub(crate) fn pointer(&self) -> String {
        let mut pointer = String::new();
        for (key, index) in self.keys.iter().zip(self.indices).take(self.hops as usize) {
            if let Some(key) = key.filter(|key| key.len() <= MAX_KEY_BYTES) {
                Segment::Key(key).append_to(&mut pointer);
            }
            if index != NO_INDEX {
                Segment::Index(index as usize).append_to(&mut pointer);
            }
        }
        pointer
    }

    /// Beyond [`MAX_HOPS`], the pointer stays that of the ancestor.
    #[inline]
    fn child<'q>(&self, segment: Segment<'q>, value: Option<&'v Json<'v>>) -> Cursor<'v, 'q>
    where
        'k: 'q,
    {
        let mut child: Cursor<'v, 'q> = *self;
        child.value = value.filter(|value| is_present(value));
        let next = self.hops as usize;
        match segment {
            Segment::Key(key) => {
                if let Some(slot) = child.keys.get_mut(next) {
                    *slot = Some(key);
                }
                child.hops += 1;
            }
            Segment::Index(index) => {
                let continues = next > 0 && self.indices.get(next - 1) == Some(&NO_INDEX);
                let hop = if continues { next - 1 } else { next };
                if let Some(slot) = child.indices.get_mut(hop) {
                    *slot = u32::try_from(index).unwrap_or(NO_INDEX);
                }
                child.hops += u32::from(!continues);
            }
        }
        child
    }
}

fn is_present(value: &Json<'_>) -> bool {
    !matches!(value, Json::Null)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::Document;

    #[test]
    fn a_cursor_finds_values_and_names_their_positions() {
        let text = br#"{"a/b":[null,{"c":"d"}],"2":true,"e":null}"#;
        let document = Document::parse(text).unwrap();
        let root = Cursor::root(document.root());
        let list = root.field("a/b");
        assert_eq!((root.pointer(), list.pointer()), (String::new(), "/a~1b".to_owned()));
        assert_eq!(list.item(1).get_str("c"), Some("d"));
        assert_eq!(list.item(1).field("c").pointer(), "/a~1b/1/c");
        assert!(list.item(0).value().is_none() && list.item(2).value().is_none());
        assert_eq!(list.items().map(|it| it.pointer()).collect::<Vec<_>>(), ["/a~1b/0", "/a~1b/1"]);
        assert!(matches!(root.numbered_field(2).value(), Some(Json::Bool(true))));
        assert_eq!(root.numbered_field(7).pointer(), "/7");
        assert_eq!(root.members(|_| true).map(|(key, _)| key).collect::<Vec<_>>(), ["a/b", "2"]);
        assert!(root.field("e").field("f").value().is_none());
    }

    #[test]
    fn a_pointer_leaves_out_long_keys_and_ends_at_the_last_hop() {
        let root = Cursor::root(&Json::Null);
        let (short, long) = ("k".repeat(50), "k".repeat(51));
        assert_eq!(root.field(&short).pointer(), format!("/{short}"));
        assert_eq!(root.field("a").field(&long).pointer(), "/a");
        let deep = (0..12).fold(root, |cursor, index| cursor.item(index));
        assert_eq!(deep.pointer(), "/0/1/2/3/4");
        let deep = (0..7).fold(root, |cursor, index| cursor.field("a").item(index));
        assert_eq!(deep.pointer(), "/a/0/a/1/a/2/a/3/a/4");
    }
}
