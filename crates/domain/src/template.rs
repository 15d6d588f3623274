//! Templates: validated when read, valid from then on.

pub mod edit;
pub mod lifecycle;
pub mod message_text;
pub mod quality;
pub mod review;
pub mod sample;
pub mod search_terms;
mod whatsapp_warnings;

use crate::{
    document::{Document, Json},
    rulebook::{Category, Field, Rulebook, V1},
    string_enum::string_enum,
    validation::reader::Reader,
    violation::{ViolationCollector, Violations, Warnings},
};

/// A valid template. [`Template::read`] validates a document; [`Template::restore`] takes one from
/// the store, which was validated when it was stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Template {
    name: String,
    language: String,
    category: Category,
    allow_category_change: bool,
    content: String,
}

/// The result of a dry run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checked {
    /// The result of [`Template::read`].
    pub template: Result<Template, Violations>,
    /// Warnings, which do not make a document invalid; also for an invalid document.
    pub warnings: Warnings,
}

impl Template {
    /// Reads a document. Returns the template or all violations.
    pub fn read(document: &Document<'_>, rulebook: &Rulebook) -> Result<Self, Violations> {
        Self::read_with(document, rulebook, true)
    }

    /// Reads the document of a template that exists already.
    pub(crate) fn read_existing(
        document: &Document<'_>,
        rulebook: &Rulebook,
    ) -> Result<Self, Violations> {
        Self::read_with(document, rulebook, false)
    }

    /// Reads a document like [`Template::read`] and also collects warnings.
    pub fn check(document: &Document<'_>, rulebook: &Rulebook) -> Checked {
        let mut checked = Self::check_with(document, rulebook, true);
        if *rulebook == V1 {
            let Checked { template, warnings } = &mut checked;
            match template {
                Ok(template) => {
                    whatsapp_warnings::collect(template, document.root(), warnings);
                }
                Err(violations) => {
                    whatsapp_warnings::collect_identity(document.root(), violations, warnings);
                }
            }
        }
        checked
    }

    /// Warns if WhatsApp does not accept name or language of this template of the `v1` rulebook.
    pub fn whatsapp_identity_warnings(&self) -> Warnings {
        let mut warnings = Warnings::default();
        whatsapp_warnings::check_identity(self, &mut warnings);
        warnings
    }

    /// Warns if WhatsApp does not accept the content of this template of the `v1` rulebook.
    pub fn whatsapp_content_warnings(&self) -> Warnings {
        let mut warnings = Warnings::default();
        whatsapp_warnings::check_content(self, &mut warnings);
        warnings
    }

    /// Reads a document like [`Template::read_existing`] and also collects warnings.
    pub(crate) fn check_existing(document: &Document<'_>, rulebook: &Rulebook) -> Checked {
        Self::check_with(document, rulebook, false)
    }

    fn read_with(
        document: &Document<'_>,
        rulebook: &Rulebook,
        is_new: bool,
    ) -> Result<Self, Violations> {
        let also = |found: &mut ViolationCollector| rulebook.check(document.root(), is_new, found);
        let content = Reader::read(document, rulebook.template, is_content, also)?;
        Ok(Self::from_valid(document, content))
    }

    /// Reads a document and collects the warnings that concern it as it is written.
    fn check_with(document: &Document<'_>, rulebook: &Rulebook, is_new: bool) -> Checked {
        let also = |found: &mut ViolationCollector| rulebook.check(document.root(), is_new, found);
        let (content, mut warnings) = Reader::check(document, rulebook.template, is_content, also);
        rulebook.collect_warnings(document.root(), &mut warnings);
        Checked { template: content.map(|content| Self::from_valid(document, content)), warnings }
    }

    /// The template of a valid document.
    fn from_valid(document: &Document<'_>, content: String) -> Self {
        let text = |key: &str| {
            let value = document.root().get(key).and_then(Json::as_str);
            value.expect("the rulebook requires the field")
        };
        Self {
            name: text("name").to_owned(),
            language: text("language").to_owned(),
            category: Category::parse(text("category")).expect("the rulebook lists the categories"),
            // A rulebook that does not require it defaults to true.
            allow_category_change: !matches!(
                document.root().get("allow_category_change"),
                Some(Json::Bool(false))
            ),
            content,
        }
    }

    /// Restores a stored template. It met the rules when it was stored and is not validated again.
    pub fn restore(
        name: String,
        language: String,
        category: Category,
        allow_category_change: bool,
        content: String,
    ) -> Self {
        Self { name, language, category, allow_category_change, content }
    }

    /// The name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The language code, such as `en_US`.
    pub fn language(&self) -> &str {
        &self.language
    }

    /// The category.
    pub fn category(&self) -> Category {
        self.category
    }

    /// Whether the category may change later.
    pub fn allow_category_change(&self) -> bool {
        self.allow_category_change
    }

    /// The other fields in canonical form, as the text of one JSON object: `{"components":[…]}` and
    /// further fields of the rulebook. It has known fields only, in the order of the rulebook, with
    /// unchanged strings.
    pub fn content(&self) -> &str {
        &self.content
    }
}

/// Whether a field is part of [`Template::content`]; the others have accessors of their own.
pub(crate) fn is_content(field: &Field) -> bool {
    !["name", "language", "category", "allow_category_change"].contains(&field.name)
}

string_enum!(
    /// The status of a template.
    Status {
        /// Waits for a review.
        Pending "PENDING",
        /// May be sent.
        Approved "APPROVED",
        /// A reviewer rejected it.
        Rejected "REJECTED",
        /// Temporarily must not be sent.
        Paused "PAUSED",
        /// Permanently must not be sent.
        Disabled "DISABLED",
        /// Must not be sent until it is unarchived.
        Archived "ARCHIVED",
    }
);

string_enum!(
    /// The review mode of an account, which determines the initial status of a template.
    Review {
        /// Every valid template is approved automatically.
        Auto "auto",
        /// A reviewer decides.
        Manual "manual",
        /// A script decides: emulator accounts.
        Scripted "scripted",
        /// The provider decides: connected accounts with `auto`. Never stored.
        Provider "provider",
        /// A reviewer, then the provider: connected accounts with `manual`. Never stored.
        InHouseThenProvider "in_house_then_provider",
    }
);

impl Review {
    /// The review modes that an operator can choose. An emulator account is always scripted.
    pub const CHOICES: &'static [&'static str] = &["auto", "manual"];

    /// The review modes that are stored and displayed. The others apply to connected accounts, which
    /// have one of these.
    pub const STORED: &'static [&'static str] = &["auto", "manual", "scripted"];

    /// The initial status of a template.
    pub fn initial_status(self) -> Status {
        match self {
            Self::Auto => Status::Approved,
            Self::Manual | Self::Scripted | Self::Provider | Self::InHouseThenProvider => {
                Status::Pending
            }
        }
    }

    /// Whether the provider of a connected account decides on versions.
    pub fn is_by_provider(self) -> bool {
        matches!(self, Self::Provider | Self::InHouseThenProvider)
    }

    /// Whether a new version is submitted to the provider at once.
    pub fn submits_at_once(self) -> bool {
        self == Self::Provider
    }

    /// The mode of an account that is connected to a provider. An emulator account is never
    /// connected.
    #[must_use]
    pub fn of_connected(self) -> Self {
        match self {
            Self::Auto => Self::Provider,
            Self::Manual => Self::InHouseThenProvider,
            other => other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_parsed_from_strings_and_codes() {
        for value in Status::VALUES {
            let status = Status::parse(&value.to_lowercase()).unwrap();
            assert_eq!((status.as_str(), Status::from_code(status.code())), (*value, Some(status)));
        }
        assert_eq!((Status::parse("LIVE"), Status::from_code(9)), (None, None));
        assert_eq!(Review::STORED, [Review::CHOICES, &["scripted"]].concat());
        let effective = ["provider", "in_house_then_provider"];
        assert_eq!(Review::VALUES, [Review::STORED, &effective].concat());
        assert_eq!(Status::Archived.code(), 5, "codes are stored in the database and never change");
        assert_eq!(Status::Approved.code(), 1, "codes are stored in the database and never change");
        assert_eq!(
            Category::Authentication.code(),
            2,
            "codes are stored in the database and never change"
        );
    }
}
