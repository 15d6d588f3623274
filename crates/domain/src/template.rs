//! Templates: read once at the door, valid for ever after.

pub mod edit;
pub mod lifecycle;
pub mod message_text;
pub mod review;
pub mod sample;
pub mod search_terms;

use crate::{
    document::{Document, Json},
    rulebook::{Category, Field, Rulebook},
    string_enum::string_enum,
    validation::reader::Reader,
    violation::{ViolationCollector, Violations, Warnings},
};

/// A template whose every rule held when it came in. [`Template::read`] is the door for
/// documents from outside, [`Template::restore`] the door for what a store kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Template {
    name: String,
    language: String,
    category: Category,
    allow_category_change: bool,
    content: String,
}

/// What a dry run finds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checked {
    /// What [`Template::read`] would have answered.
    pub template: Result<Template, Violations>,
    /// What does not stand in the way, but is worth a word; also told of a refused document.
    pub warnings: Warnings,
}

impl Template {
    /// Reads a document: a template, or everything that is wrong with it.
    pub fn read(document: &Document<'_>, rulebook: &Rulebook) -> Result<Self, Violations> {
        let also = |report: &mut ViolationCollector| rulebook.check(document.root(), report);
        let content = Reader::read(document, rulebook.template, is_content, also)?;
        Ok(Self::of(document, content))
    }

    /// Reads a document as [`Template::read`] does and collects warnings on the way.
    pub fn check(document: &Document<'_>, rulebook: &Rulebook) -> Checked {
        let also = |report: &mut ViolationCollector| rulebook.check(document.root(), report);
        let (content, mut warnings) = Reader::check(document, rulebook.template, is_content, also);
        rulebook.collect_warnings(document.root(), &mut warnings);
        Checked { template: content.map(|content| Self::of(document, content)), warnings }
    }

    /// The template of a document in which every rule holds.
    fn of(document: &Document<'_>, content: String) -> Self {
        let text = |key: &str| {
            let value = document.root().get(key).and_then(Json::as_str);
            value.expect("the rulebook requires it")
        };
        Self {
            name: text("name").to_owned(),
            language: text("language").to_owned(),
            category: Category::parse(text("category")).expect("the rulebook lists its words"),
            // Where the rulebook lets it be left out, that means yes.
            allow_category_change: !matches!(
                document.root().get("allow_category_change"),
                Some(Json::Bool(false))
            ),
            content,
        }
    }

    /// Takes back what a store kept. Yesterday's rules applied then; they are not asked again.
    pub fn restore(
        name: String,
        language: String,
        category: Category,
        allow_category_change: bool,
        content: String,
    ) -> Self {
        Self { name, language, category, allow_category_change, content }
    }

    /// What it is called.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The language it is written in: `en_US`.
    pub fn language(&self) -> &str {
        &self.language
    }

    /// What it is sent for.
    pub fn category(&self) -> Category {
        self.category
    }

    /// Whether the category may change later.
    pub fn allow_category_change(&self) -> bool {
        self.allow_category_change
    }

    /// Everything else of the document in canonical form, as the text of one JSON object:
    /// `{"components":[…]}`, and whatever else the rulebook keeps. Known fields only, in the rulebook's order, strings untouched.
    pub fn content(&self) -> &str {
        &self.content
    }
}

/// Whether a field is part of [`Template::content`]; the others have a place of their own.
pub(crate) fn is_content(field: &Field) -> bool {
    !["name", "language", "category", "allow_category_change"].contains(&field.name)
}

string_enum!(
    /// Where a template stands.
    Status {
        /// It waits for a reviewer.
        Pending "PENDING",
        /// It may be sent.
        Approved "APPROVED",
        /// A reviewer refused it.
        Rejected "REJECTED",
        /// It may not be sent for a while.
        Paused "PAUSED",
        /// It may not be sent any more.
        Disabled "DISABLED",
    }
);

string_enum!(
    /// How a new template gets its first status.
    Review {
        /// A valid template is approved at once.
        Auto "auto",
        /// A reviewer decides.
        Manual "manual",
    }
);

impl Review {
    /// The status of a template that has just been created.
    pub fn first_status(self) -> Status {
        match self {
            Self::Auto => Status::Approved,
            Self::Manual => Status::Pending,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_found_by_their_letters_and_by_their_number() {
        for word in Status::VALUES {
            let status = Status::parse(&word.to_lowercase()).unwrap();
            assert_eq!((status.as_str(), Status::from_code(status.code())), (*word, Some(status)));
        }
        assert_eq!((Status::parse("LIVE"), Status::from_code(9)), (None, None));
        assert_eq!(Status::Approved.code(), 1, "numbers are kept in rows and never change");
        assert_eq!(Category::Authentication.code(), 2, "numbers are kept in rows and never change");
    }
}
