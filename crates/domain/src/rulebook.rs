//! Rulebooks: the document format of a template as one table. The validator, the JSON Schema, the
//! rules page and the "did you mean" hints are all derived from it, so they cannot disagree.

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
    SampleRule, StringFormat, StringRule, TaggedList, TaggedObject, Variant, VariantContent,
};
pub use v1::V1;
pub use view::Check;
use view::DocumentView;
pub use whatsapp::WHATSAPP;
pub(crate) use whatsapp::{MAX_BODY_CHARS, MAX_COUPON_CHARS, MAX_OFFER_COUPON_CHARS};

/// A document format for templates: its fields, its rules, and its unique key.
#[derive(Debug)]
pub struct Rulebook {
    /// The name in account settings and on the command line.
    pub name: &'static str,
    /// The document that creates a template.
    pub template: &'static ObjectSchema,
    /// The document that edits a template.
    pub edit: &'static ObjectSchema,
    /// Rules that involve several fields, which the table cannot express.
    pub checks: &'static [Check],
    /// Further rules for the document that creates a template. An edit may repeat what was stored.
    pub creation_checks: &'static [Check],
    /// Adds the warnings that involve several fields, if the rulebook has such warnings.
    pub(crate) collect_warnings: Option<fn(&DocumentView<'_>, &mut Warnings)>,
    /// Every rule that a template document can break under this rulebook.
    pub rules: &'static [Rule],
    /// The unique key of a template, from its account, name and language.
    pub unique_key: fn(AccountId, &str, &str) -> String,
    /// Whether a name can exist once per language. The languages of a name then form a translation
    /// group: they share one category, which is locked while a version is live, and templates of an
    /// account are checked for identical content.
    pub supports_translations: bool,
}

impl Rulebook {
    /// All rulebooks.
    pub const ALL: &[&'static Rulebook] = &[&V1, &WHATSAPP];

    /// The rulebook with this name.
    pub fn by_name(name: &str) -> Option<&'static Rulebook> {
        Self::ALL.iter().copied().find(|rulebook| rulebook.name == name)
    }

    /// Whether an edit is validated together with the fields that it omits.
    pub fn merges_edits(&self) -> bool {
        !self.checks.is_empty()
    }

    /// Adds the violations that the checks find in a template, which is new or exists already.
    /// Expects that the table has been applied already.
    pub(crate) fn check(&self, root: &Json<'_>, is_new: bool, violations: &mut ViolationCollector) {
        if matches!(root, Json::Object(_)) && !self.checks.is_empty() {
            let document = DocumentView::new(root);
            let creation_checks = if is_new { self.creation_checks } else { &[] };
            for check in self.checks.iter().chain(creation_checks) {
                (check.run)(&document, violations);
            }
        }
    }

    /// Adds the warnings about the document as a whole.
    pub(crate) fn collect_warnings(&self, root: &Json<'_>, warnings: &mut Warnings) {
        if let (Some(collect), Json::Object(_)) = (self.collect_warnings, root) {
            collect(&DocumentView::new(root), warnings);
        }
    }
}

impl PartialEq for Rulebook {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}
