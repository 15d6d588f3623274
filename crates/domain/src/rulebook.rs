//! Rulebooks: the form of a document as one table. The reader, the JSON Schema, the rules page
//! and "did you mean" all come from it, so that they cannot disagree.

mod draft;
mod v1;
mod whatsapp;

use crate::{
    advice::Warnings,
    id::AccountId,
    json::Json,
    violation::{Report, Rule},
    words::words,
};

pub use draft::Check;
use draft::Draft;
pub use v1::V1;
pub use whatsapp::WHATSAPP;
pub(crate) use whatsapp::{BODY_MAX, CODE_MAX, OFFER_CODE_MAX, languages};

/// The form of a template document, its rules, and what makes a name unique under it.
#[derive(Debug)]
pub struct Rulebook {
    /// What accounts and the command line call it.
    pub name: &'static str,
    /// The document a template is created from.
    pub template: &'static Part,
    /// The document that edits one.
    pub edit: &'static Part,
    /// What no row can say, because it is about several fields at once.
    pub checks: &'static [Check],
    /// What is worth a warning in several fields at once.
    pub(crate) advise: fn(&Draft<'_>, &mut Warnings),
    /// Every rule that a document of a template can break here.
    pub rules: &'static [Rule],
    /// What makes a template unique, from its account, name and language.
    pub claim: fn(AccountId, &str, &str) -> String,
    /// Whether a name may be had once in each language. All languages of it then have one category,
    /// which stays while a version is live, and templates are compared with one another.
    pub names_have_languages: bool,
}

impl Rulebook {
    /// Every rulebook there is.
    pub const ALL: &[&'static Rulebook] = &[&V1, &WHATSAPP];

    /// The rulebook of that name.
    pub fn named(name: &str) -> Option<&'static Rulebook> {
        Self::ALL.iter().copied().find(|rulebook| rulebook.name == name)
    }

    /// Adds what its checks find in a document that the table has judged.
    pub(crate) fn check(&self, root: &Json<'_>, report: &mut Report) {
        if matches!(root, Json::Object(_)) && !self.checks.is_empty() {
            let draft = Draft::of(root);
            self.checks.iter().for_each(|check| (check.run)(&draft, report));
        }
    }

    /// Adds what is worth a warning in the document as a whole.
    pub(crate) fn advise(&self, root: &Json<'_>, warnings: &mut Warnings) {
        if matches!(root, Json::Object(_)) {
            (self.advise)(&Draft::of(root), warnings);
        }
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
    /// When the text or address before it in the table holds placeholders, and only then:
    /// otherwise it is refused. Samples are asked for in the way that the format of the document
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
            (Presence::OrItsOnlyItem, Shape::Parts(parts)) => parts.item.fields,
            _ => &[],
        }
    }
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
    /// A whole number from the first to the second.
    Integer(i64, i64),
    /// How placeholders are written in the fields behind it, see [`Format`]: one of its words, in
    /// any letter case.
    Format,
    /// An id of somebody else's: a string, or a whole number from 1, which is kept as one.
    Id(Text),
    /// A string by itself, or a list with one; kept as a list.
    One(Text),
    /// One kind of object.
    Object(&'static Part),
    /// One kind of object, or a list with a `key` and a `value` for each of its members; kept as an
    /// object.
    Map(&'static Part),
    /// Anything that has at most so many bytes; kept as it is.
    Anything(usize),
    /// An object whose kind its tag tells.
    Tagged(&'static Tagged),
    /// A list of tagged objects.
    List(List),
    /// A list of objects of one kind.
    Parts(Parts),
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

words!(
    /// How placeholders are written in a document.
    Format {
        /// `{{1}}`, `{{2}}` …
        Positional "POSITIONAL",
        /// `{{first_name}}`.
        Named "NAMED",
    }
);

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

/// A list of objects of one kind.
#[derive(Debug)]
pub struct Parts {
    /// How many items at least.
    pub min: usize,
    /// How many items at most.
    pub max: usize,
    /// What people call an item: "card".
    pub title: &'static str,
    /// What each item holds.
    pub item: &'static Part,
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
    /// As [`Samples::Nested`], and also as a plain list or as the one value by itself; kept nested.
    Loose,
    /// As [`Samples::Plain`], and also as the one value by itself; kept as a list.
    LoosePlain,
    /// A list of objects, each with the name of a placeholder and a value.
    Named,
}

impl Tagged {
    /// The words its tag may hold.
    pub fn words(&self) -> impl Iterator<Item = &'static str> + Clone + '_ {
        self.variants.iter().map(|variant| variant.word)
    }
}
