//! Rulebooks: the form of a document as one table. The reader, the JSON Schema, the rules page
//! and "did you mean" all come from it, so that they cannot disagree.

mod category;
pub mod graph_codes;
mod table;
mod v1;
pub(crate) mod view;
mod whatsapp;

use crate::{
    document::Json,
    id::AccountId,
    violation::{Rule, ViolationCollector, Warnings},
};

pub use category::Category;
pub use table::{
    Field, FieldType, ObjectList, ObjectSchema, ParameterFormat, Presence, SampleFormat,
    StringFormat, StringRule, TaggedList, TaggedObject, Variant, VariantContent,
};
pub use v1::V1;
pub use view::Check;
use view::DocumentView;
pub use whatsapp::WHATSAPP;
pub(crate) use whatsapp::{BODY_MAX, CODE_MAX, OFFER_CODE_MAX};

/// The form of a template document, its rules, and what makes a name unique under it.
#[derive(Debug)]
pub struct Rulebook {
    /// What accounts and the command line call it.
    pub name: &'static str,
    /// The document a template is created from.
    pub template: &'static ObjectSchema,
    /// The document that edits one.
    pub edit: &'static ObjectSchema,
    /// What no row can say, because it is about several fields at once.
    pub checks: &'static [Check],
    /// What is worth a warning in several fields at once.
    pub(crate) advise: fn(&DocumentView<'_>, &mut Warnings),
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
    pub fn by_name(name: &str) -> Option<&'static Rulebook> {
        Self::ALL.iter().copied().find(|rulebook| rulebook.name == name)
    }

    /// Adds what its checks find in a document that the table has judged.
    pub(crate) fn check(&self, root: &Json<'_>, report: &mut ViolationCollector) {
        if matches!(root, Json::Object(_)) && !self.checks.is_empty() {
            let draft = DocumentView::of(root);
            self.checks.iter().for_each(|check| (check.run)(&draft, report));
        }
    }

    /// Adds what is worth a warning in the document as a whole.
    pub(crate) fn advise(&self, root: &Json<'_>, warnings: &mut Warnings) {
        if matches!(root, Json::Object(_)) {
            (self.advise)(&DocumentView::of(root), warnings);
        }
    }
}

impl PartialEq for Rulebook {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}
