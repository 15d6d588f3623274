//! Warnings: what does not stand in the way of a template, but will trouble somebody later. They
//! are collected only where somebody asks for them; creating a template does not.

pub(crate) mod characters;
mod fields;
pub(crate) mod links;
mod text;

use std::fmt::Write as _;

use crate::{
    document::Json,
    rulebook::{ObjectSchema, StringFormat, StringRule, TaggedObject},
    violation::{TextWarning, Warnings},
};

pub(crate) use fields::Reached;

/// Collects warnings while a document is read.
pub(crate) struct WarningCollector {
    root: &'static ObjectSchema,
    warnings: Warnings,
    /// Whether the text or address just read in this object is known to hold no placeholder. One
    /// that is missing or faulty may be meant to.
    plain: bool,
}

impl WarningCollector {
    pub(crate) fn new(root: &'static ObjectSchema) -> Self {
        Self { root, warnings: Warnings::default(), plain: false }
    }

    pub(crate) fn warnings(self) -> Warnings {
        self.warnings
    }

    /// Another object begins.
    pub(crate) fn begin(&mut self) {
        self.plain = false;
    }

    /// Looks at a string that a row of the table asks for.
    pub(crate) fn text(&mut self, rule: &StringRule, text: &str, pointer: impl Fn() -> String) {
        if matches!(rule.format, StringFormat::WithPlaceholders | StringFormat::UrlWithSuffix) {
            self.plain = !text.contains("{{");
        }
        self.add(text::look(rule, text), pointer);
    }

    /// Looks at a word of which only a few are allowed.
    pub(crate) fn word(&mut self, text: &str, pointer: impl Fn() -> String) {
        self.add(characters::look(text, "remove it"), pointer);
    }

    /// Looks at samples of a text that may hold no placeholder at all.
    pub(crate) fn samples(&mut self, pointer: impl FnOnce() -> String) {
        if self.plain {
            self.warnings.add(|| fields::samples_of_nothing().warning(pointer()));
        }
    }

    /// Looks for members of an object that nobody reads: `reached` is where its tags led.
    pub(crate) fn members(
        &mut self,
        object: &Json<'_>,
        tagged: Option<&'static TaggedObject>,
        reached: Reached,
        pointer: impl Fn(&str) -> String,
    ) {
        let Json::Object(members) = object else { return };
        let known = fields::Known::new(self.root, tagged, reached);
        for member in members {
            let absent = member.repeated || matches!(member.value, Json::Null);
            if !absent && !known.may_hold(&member.key) {
                let warning = || known.note(&member.key).warning(pointer(&member.key));
                self.warnings.add(warning);
            }
        }
    }

    /// Looks at a name that is none of a part's fields, where names are values.
    pub(crate) fn unknown(&mut self, name: &str, reached: Reached, pointer: String) {
        let note = fields::Known::new(self.root, None, reached).note(name);
        self.warnings.add(|| note.warning(pointer));
    }

    fn add(&mut self, notes: Vec<TextWarning>, pointer: impl Fn() -> String) {
        for note in notes {
            self.warnings.add(|| note.warning(pointer()));
        }
    }
}

/// Tells the first few places of a string one by one, and how many follow: what somebody pasted
/// a hundred times is not to hide everything else.
fn tell<T>(
    mut places: impl Iterator<Item = T>,
    note: impl Fn(T) -> TextWarning,
) -> Vec<TextWarning> {
    const FEW: usize = 5;
    let mut notes: Vec<TextWarning> = places.by_ref().take(FEW).map(note).collect();
    let rest = places.count();
    if let Some(last) = notes.last_mut().filter(|_| rest > 0) {
        let _ = write!(last.message, " (and so at {rest} more places of this text)");
    }
    notes
}
