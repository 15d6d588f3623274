//! The types of a rulebook's table: the fields of each object and the values they accept.

use crate::{string_enum::string_enum, violation::Rule};

/// An object type: the fields it may have.
#[derive(Debug)]
pub struct ObjectSchema {
    /// The name in messages and documentation, with its article: "a BODY component".
    pub title: &'static str,
    /// The fields, in the order in which they are validated, stored and returned.
    pub fields: &'static [Field],
}

/// One field of an object: a row of the table.
#[derive(Debug)]
pub struct Field {
    /// The key in the object.
    pub name: &'static str,
    /// Whether the field is required.
    pub presence: Presence,
    /// The values that the field accepts.
    pub field_type: FieldType,
    /// The description: one or two sentences, also the hint when the field is missing.
    pub about: &'static str,
}

/// Whether a field is required, optional or forbidden.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Presence {
    /// Required.
    Required,
    /// Optional.
    Optional,
    /// Required if the preceding text or URL field contains placeholders; otherwise ignored: neither
    /// validated nor stored.
    RequiredWithPlaceholders,
    /// Optional if the preceding text or URL field contains placeholders; otherwise ignored: neither
    /// validated nor stored.
    OptionalWithPlaceholders,
    /// Required if the preceding text or URL field contains placeholders; otherwise rejected. Of
    /// several sample fields, only the one for the document's [`ParameterFormat`] is accepted.
    OnlyWithPlaceholders,
    /// Optional; if absent, this value is stored.
    DefaultsTo(&'static str),
    /// Required, for a list. A list with one item may be replaced by the fields of that item,
    /// written directly in the object.
    RequiredOrInlined,
    /// Rejected with this rule; `about` is the hint.
    Forbidden(Rule),
}

impl Field {
    /// The fields that may replace this one, see [`Presence::RequiredOrInlined`].
    pub(crate) fn inlined_fields(&self) -> &'static [Field] {
        match (self.presence, &self.field_type) {
            (Presence::RequiredOrInlined, FieldType::ObjectList(list)) => list.item.fields,
            _ => &[],
        }
    }
}

/// The type of a field.
#[derive(Debug)]
pub enum FieldType {
    /// A string.
    String(StringRule),
    /// One of these values, case-insensitive; stored as written here.
    Choice(&'static [&'static str]),
    /// A list of such values; repeating one has no effect.
    ChoiceList(&'static [&'static str]),
    /// A boolean.
    Bool,
    /// An integer of at least 1.
    PositiveInteger,
    /// An integer in this inclusive range.
    Integer(i64, i64),
    /// A [`ParameterFormat`], case-insensitive. It applies to the fields that follow in the table.
    ParameterFormat,
    /// An id of another system: a string, or a positive integer, which is stored as a string.
    Id(StringRule),
    /// A string, or a list with one string; stored as a list.
    SingleString(StringRule),
    /// An object.
    Object(&'static ObjectSchema),
    /// An object, or a list of its members as objects with `key` and `value`; stored as an object.
    Map(&'static ObjectSchema),
    /// Any JSON value of at most this many bytes; stored unchanged.
    AnyJson(usize),
    /// An object whose type a tag determines.
    TaggedObject(&'static TaggedObject),
    /// A list of tagged objects.
    TaggedList(TaggedList),
    /// A list of objects of one type.
    ObjectList(ObjectList),
    /// Sample values, one for each placeholder of the preceding text or URL field.
    Samples(SampleRule),
}

/// The constraints of a string.
#[derive(Debug)]
pub struct StringRule {
    /// The maximum number of characters.
    pub max: usize,
    /// The maximum number of characters on WhatsApp, if that is lower. Exceeding it is a warning.
    pub whatsapp_max: Option<usize>,
    /// Whether line feed, carriage return and tab are allowed.
    pub multiline: bool,
    /// The format.
    pub format: StringFormat,
}

/// The format of a string.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StringFormat {
    /// Any text.
    Free,
    /// The handle of an uploaded file. A check of creations rejects URLs; a template that was read
    /// contains URLs, so edits may contain them.
    Handle,
    /// No leading or trailing whitespace.
    Name,
    /// `language_REGION`.
    Language,
    /// A text that may contain the placeholders `{{1}}`, `{{2}}` …
    WithPlaceholders,
    /// A text without placeholders.
    WithoutPlaceholders,
    /// An `http` or `https` URL.
    Url,
    /// An `http` or `https` URL that may end in `{{1}}`.
    UrlWithSuffix,
    /// A phone number: an optional `+` and digits.
    Phone,
    /// A phone number that may contain separators.
    DialledPhone,
    /// An RFC 3339 timestamp.
    Timestamp,
    /// Lower-case letters, digits and `_`.
    Identifier,
    /// A language code that WhatsApp supports.
    Locale,
    /// A header text: at most one placeholder; no formatting, asterisks or emoji.
    Headline,
    /// A body text: no placeholder at either end, and a minimum number of words per placeholder.
    Message,
    /// A text without placeholders, formatting and emoji.
    Plain,
    /// A button label: as [`StringFormat::Plain`], and without any `*`, `~` and `` ` ``.
    Label,
    /// An `http` or `https` URL that may end in a placeholder and does not point to WhatsApp.
    Link,
    /// An Android package name.
    AndroidPackage,
    /// The hash of the signing key of an Android app.
    SignatureHash,
    /// At least 16 printable ASCII characters without spaces.
    Secret,
}

string_enum!(
    /// How the placeholders of a document are written.
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
    /// The minimum number of items.
    pub min: usize,
    /// The maximum number of items.
    pub max: usize,
    /// The items.
    pub item: &'static TaggedObject,
    /// Whether each tag value may appear at most once.
    pub unique: bool,
    /// A tag value that has to appear.
    pub required: Option<&'static str>,
}

/// A list of objects of one type.
#[derive(Debug)]
pub struct ObjectList {
    /// The minimum number of items.
    pub min: usize,
    /// The maximum number of items.
    pub max: usize,
    /// The name of an item in messages and documentation: "card".
    pub title: &'static str,
    /// The items.
    pub item: &'static ObjectSchema,
}

/// Object types that a tag distinguishes.
#[derive(Debug)]
pub struct TaggedObject {
    /// The name of such an object in messages and documentation: "component".
    pub title: &'static str,
    /// The name of the field that contains the tag.
    pub tag: &'static str,
    /// The description of the tag.
    pub about: &'static str,
    /// The object types.
    pub variants: &'static [Variant],
}

/// One type of a tagged object.
#[derive(Debug)]
pub struct Variant {
    /// The value of the tag.
    pub value: &'static str,
    /// The other fields of the object.
    pub content: VariantContent,
}

/// The other fields of a tagged object.
#[derive(Debug)]
pub enum VariantContent {
    /// The fields of this schema.
    Fields(&'static ObjectSchema),
    /// A second tag determines the fields.
    Tagged(&'static TaggedObject),
}

/// The sample values of a text or URL.
#[derive(Clone, Copy, Debug)]
pub struct SampleRule {
    /// How they are written.
    pub format: SampleFormat,
    /// Whether a value may contain line feed, carriage return and tab.
    pub multiline: bool,
}

/// How sample values are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SampleFormat {
    /// A list that contains one list of all values.
    Nested,
    /// A list of all values.
    Flat,
    /// One string, or a list with one string.
    Single,
    /// As [`SampleFormat::Nested`]; for one placeholder, a flat list and a string are accepted too.
    /// Stored nested.
    LenientNested,
    /// As [`SampleFormat::Flat`]; a string is accepted too. Stored as a list.
    LenientFlat,
    /// A list of objects, each with the name of a placeholder and a value.
    Named,
}

impl SampleRule {
    /// Values on one line.
    pub(crate) const fn one_line(format: SampleFormat) -> Self {
        Self { format, multiline: false }
    }

    /// Values with any number of lines.
    pub(crate) const fn multiline(format: SampleFormat) -> Self {
        Self { format, multiline: true }
    }
}

impl TaggedObject {
    /// The values that the tag accepts.
    pub fn tag_values(&self) -> impl Iterator<Item = &'static str> + Clone + '_ {
        self.variants.iter().map(|variant| variant.value)
    }
}
