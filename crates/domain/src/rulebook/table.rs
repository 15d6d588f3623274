//! The types of a rulebook's table: which fields an object has and what each may hold.

use crate::{string_enum::string_enum, violation::Rule};

/// One kind of object: the fields it may have.
#[derive(Debug)]
pub struct ObjectSchema {
    /// What people call it: "a BODY component".
    pub title: &'static str,
    /// Its fields, in the order they are read, kept and shown.
    pub fields: &'static [Field],
}

/// One row of the table.
#[derive(Debug)]
pub struct Field {
    /// Its key in the object.
    pub name: &'static str,
    /// Whether it has to be there.
    pub presence: Presence,
    /// What stands behind it.
    pub shape: FieldType,
    /// What it is for, in a sentence.
    pub about: &'static str,
}

/// Whether a field has to be there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Presence {
    /// Always.
    Required,
    /// It may be left out.
    Optional,
    /// When the text or address before it in the table holds placeholders; otherwise it is
    /// passed over, neither checked nor kept.
    RequiredWithPlaceholders,
    /// It may be given when the text or address before it holds placeholders; otherwise it is
    /// passed over, neither checked nor kept.
    OptionalWithPlaceholders,
    /// When the text or address before it in the table holds placeholders, and only then:
    /// otherwise it is refused. SampleFormat are asked for in the way that the format of the document
    /// has them.
    OnlyWithPlaceholders,
    /// It may be left out; this word is kept then.
    Otherwise(&'static str),
    /// It is a list and has to be there, or the fields of its only item stand in its place.
    OrItsOnlyItem,
    /// It may not be there: this rule is broken then, and the row says why.
    Never(Rule),
}

impl Field {
    /// The fields that may stand in the place of this one.
    pub(crate) fn inlined(&self) -> &'static [Field] {
        match (self.presence, &self.shape) {
            (Presence::OrItsOnlyItem, FieldType::ObjectList(parts)) => parts.item.fields,
            _ => &[],
        }
    }
}

/// What kind of value a field holds.
#[derive(Debug)]
pub enum FieldType {
    /// A string.
    String(StringRule),
    /// One of some words, read in any letter case, kept in upper case.
    Choice(&'static [&'static str]),
    /// A list of such words. One that stands there twice counts once.
    Choices(&'static [&'static str]),
    /// `true` or `false`.
    Bool,
    /// A whole number from 1.
    PositiveInteger,
    /// A whole number from the first to the second.
    Integer(i64, i64),
    /// How placeholders are written in the fields behind it, see [`ParameterFormat`]: one of its words, in
    /// any letter case.
    ParameterFormat,
    /// An id of somebody else's: a string, or a whole number from 1, which is kept as one.
    Id(StringRule),
    /// A string by itself, or a list with one; kept as a list.
    OneString(StringRule),
    /// One kind of object.
    Object(&'static ObjectSchema),
    /// One kind of object, or a list with a `key` and a `value` for each of its members; kept as an
    /// object.
    Map(&'static ObjectSchema),
    /// Anything that has at most so many bytes; kept as it is.
    AnyJson(usize),
    /// An object whose kind its tag tells.
    TaggedObject(&'static TaggedObject),
    /// A list of tagged objects.
    TaggedList(TaggedList),
    /// A list of objects of one kind.
    ObjectList(ObjectList),
    /// Sample values, one for each placeholder before them.
    Samples(SampleFormat),
}

/// How a string has to be.
#[derive(Debug)]
pub struct StringRule {
    /// How many characters at most.
    pub max: usize,
    /// How many characters WhatsApp takes, where that is less. More are worth a warning only.
    pub whatsapp_max: Option<usize>,
    /// Whether line feed, carriage return and tab are allowed.
    pub multiline: bool,
    /// What it has to look like beyond that.
    pub form: StringFormat,
}

/// The look of a string.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StringFormat {
    /// Anything.
    Free,
    /// No white space at the ends.
    Name,
    /// `language_REGION`.
    Language,
    /// Placeholders `{{1}}`, `{{2}}` … may stand in it.
    WithPlaceholders,
    /// No placeholder may stand in it.
    WithoutPlaceholders,
    /// An `http` or `https` address.
    Url,
    /// An `http` or `https` address that may end in `{{1}}`.
    UrlWithSuffix,
    /// A phone number.
    Phone,
    /// A phone number with whatever people write between its digits.
    Dialled,
    /// A moment as RFC 3339 writes it.
    Moment,
    /// Lower-case letters, digits and `_`.
    Identifier,
    /// A language code of WhatsApp's list.
    Locale,
    /// A headline: at most one placeholder; no formatting, no asterisk, no emoji.
    Headline,
    /// The message itself: words before, behind and between its placeholders.
    Message,
    /// The message of a card: words before and behind its placeholders.
    CardMessage,
    /// Small print: no placeholders, no formatting, no emoji.
    Plain,
    /// A label: as small print, and no `*`, `~` and `` ` `` even by themselves.
    Label,
    /// An `http` or `https` address that may end in a placeholder and does not lead into WhatsApp.
    Link,
    /// The name of an Android package.
    Package,
    /// The hash of the key that an Android app is signed with.
    Signature,
    /// 16 characters at least, all of them printable ASCII and none of them a space.
    Secret,
}

string_enum!(
    /// How placeholders are written in a document.
    ParameterFormat {
        /// `{{1}}`, `{{2}}` …
        Positional "POSITIONAL",
        /// `{{first_name}}`.
        Named "NAMED",
    }
);

/// A list of tagged objects.
#[derive(Debug)]
pub struct TaggedList {
    /// How many items at least.
    pub min: usize,
    /// How many items at most.
    pub max: usize,
    /// Its items.
    pub item: &'static TaggedObject,
    /// Tags that appear at most once.
    pub unique: bool,
    /// A tag that has to appear.
    pub needs: Option<&'static str>,
}

/// A list of objects of one kind.
#[derive(Debug)]
pub struct ObjectList {
    /// How many items at least.
    pub min: usize,
    /// How many items at most.
    pub max: usize,
    /// What people call an item: "card".
    pub title: &'static str,
    /// What each item holds.
    pub item: &'static ObjectSchema,
}

/// Objects that a tag tells apart.
#[derive(Debug)]
pub struct TaggedObject {
    /// What people call such an object: "component".
    pub title: &'static str,
    /// The field that tells the kind.
    pub tag: &'static str,
    /// What the tag is for, in a sentence.
    pub about: &'static str,
    /// The kinds.
    pub variants: &'static [Variant],
}

/// One kind of tagged object.
#[derive(Debug)]
pub struct Variant {
    /// The word in the tag.
    pub word: &'static str,
    /// What the object then holds.
    pub kind: VariantContent,
}

/// What a tagged object holds.
#[derive(Debug)]
pub enum VariantContent {
    /// These fields.
    Fields(&'static ObjectSchema),
    /// That is told by a second tag.
    Tagged(&'static TaggedObject),
}

/// How sample values are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SampleFormat {
    /// A list that holds one list with all values.
    Nested,
    /// A list with all values.
    Plain,
    /// The one value by itself, or in a list.
    Single,
    /// As [`SampleFormat::Nested`], and also as a plain list or as the one value by itself; kept nested.
    Loose,
    /// As [`SampleFormat::Plain`], and also as the one value by itself; kept as a list.
    LoosePlain,
    /// A list of objects, each with the name of a placeholder and a value.
    Named,
}

impl TaggedObject {
    /// The words its tag may hold.
    pub fn words(&self) -> impl Iterator<Item = &'static str> + Clone + '_ {
        self.variants.iter().map(|variant| variant.word)
    }
}
