//! Rulebooks: the form of a document as one table. The reader, the JSON Schema, the rules page
//! and "did you mean" all come from it, so that they cannot disagree.

mod v1;

use crate::id::AccountId;

pub use v1::V1;

/// The form of a template document, its rules, and what makes a name unique under it.
#[derive(Debug)]
pub struct Rulebook {
    /// What accounts and the command line call it.
    pub name: &'static str,
    /// The document a template is created from.
    pub template: &'static Part,
    /// The document that edits one.
    pub edit: &'static Part,
    /// What makes a template unique, from its account, name and language.
    pub claim: fn(AccountId, &str, &str) -> String,
}

impl Rulebook {
    /// Every rulebook there is.
    pub const ALL: &[&'static Rulebook] = &[&V1];

    /// The rulebook of that name.
    pub fn named(name: &str) -> Option<&'static Rulebook> {
        Self::ALL.iter().copied().find(|rulebook| rulebook.name == name)
    }
}

impl PartialEq for Rulebook {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

/// One kind of object: the fields it may have.
#[derive(Debug)]
pub struct Part {
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
    pub shape: Shape,
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
}

/// What kind of value a field holds.
#[derive(Debug)]
pub enum Shape {
    /// A string.
    Text(Text),
    /// One of some words, read in any letter case, kept in upper case.
    Choice(&'static [&'static str]),
    /// A list of such words. One that stands there twice counts once.
    Words(&'static [&'static str]),
    /// `true` or `false`.
    Flag,
    /// A whole number from 1.
    Number,
    /// One kind of object.
    Object(&'static Part),
    /// An object whose kind its tag tells.
    Tagged(&'static Tagged),
    /// A list of tagged objects.
    List(List),
    /// Sample values, one for each placeholder before them.
    Samples(Samples),
}

/// How a string has to be.
#[derive(Debug)]
pub struct Text {
    /// How many characters at most.
    pub max: usize,
    /// How many characters WhatsApp takes, where that is less. More are worth a warning only.
    pub whatsapp_max: Option<usize>,
    /// Whether line feed, carriage return and tab are allowed.
    pub multiline: bool,
    /// What it has to look like beyond that.
    pub form: Form,
}

/// The look of a string.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
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
    /// A moment as RFC 3339 writes it.
    Moment,
}

/// A list of tagged objects.
#[derive(Debug)]
pub struct List {
    /// How many items at least.
    pub min: usize,
    /// How many items at most.
    pub max: usize,
    /// Its items.
    pub item: &'static Tagged,
    /// Tags that appear at most once.
    pub unique: bool,
    /// A tag that has to appear.
    pub needs: Option<&'static str>,
}

/// Objects that a tag tells apart.
#[derive(Debug)]
pub struct Tagged {
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
    pub kind: Kind,
}

/// What a tagged object holds.
#[derive(Debug)]
pub enum Kind {
    /// These fields.
    Part(&'static Part),
    /// That is told by a second tag.
    Tagged(&'static Tagged),
}

/// How sample values are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Samples {
    /// A list that holds one list with all values.
    Nested,
    /// A list with all values.
    Plain,
    /// The one value by itself, or in a list.
    Single,
}

impl Tagged {
    /// The words its tag may hold.
    pub fn words(&self) -> impl Iterator<Item = &'static str> + Clone + '_ {
        self.variants.iter().map(|variant| variant.word)
    }
}
