//! Warnings: findings that do not prevent a template from being created. Only dry runs, lint and
//! conversion collect them.

use serde::{Serialize, Serializer};

use super::{MAX_LISTED, Span};

/// One thing worth a warning at one place of a document.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Warning {
    /// RFC 6901 pointer to the place; empty for the document itself.
    pub pointer: String,
    /// Which advice was not taken.
    pub rule: WarningRule,
    /// What there is to see.
    pub message: String,
    /// How to mend it.
    pub hint: String,
    /// Which characters of the string at `pointer`, where a part of it is meant.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub span: Option<Span>,
}

/// Every warning of a document; often there is none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Warnings {
    told: Vec<Warning>,
    more: usize,
}

impl Warnings {
    /// The warnings that are told, in the order they were found.
    pub fn listed(&self) -> &[Warning] {
        &self.told
    }

    /// How many more there are.
    pub fn omitted(&self) -> usize {
        self.more
    }

    /// Adds one that takes more than the document to find out.
    pub fn push(&mut self, warning: Warning) {
        self.add(|| warning);
    }

    /// Forgets those that do not count after all.
    pub(crate) fn take_back(&mut self, needless: impl Fn(&Warning) -> bool) {
        self.told.retain(|told| !needless(told));
    }

    /// Adds one, or only counts it when enough have been told.
    pub(crate) fn add(&mut self, warning: impl FnOnce() -> Warning) {
        if self.told.len() < MAX_LISTED {
            self.told.push(warning());
        } else {
            self.more += 1;
        }
    }
}

/// Declares [`WarningRule`] together with the stable id and the sentence that documentation shows.
macro_rules! advice {
    ($($variant:ident $id:literal $about:literal;)+) => {
        /// What a document is advised to be. Ids are stable: programs may depend on them.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum WarningRule {
            $(#[doc = $about] $variant,)+
        }

        impl WarningRule {
            /// Every advice, in the order of the documentation.
            pub const ALL: &[WarningRule] = &[$(WarningRule::$variant),+];

            /// The stable id: `unknown-field`.
            pub fn id(self) -> &'static str {
                match self {
                    $(WarningRule::$variant => $id,)+
                }
            }

            /// What is advised, in a sentence.
            pub fn about(self) -> &'static str {
                match self {
                    $(WarningRule::$variant => $about,)+
                }
            }
        }
    };
}

advice! {
    UnknownField "unknown-field"
        "A field that nobody knows is neither checked nor kept; often it is misspelt.";
    UnusedField "unused-field"
        "A known field in a place that does not use it is neither checked nor kept.";
    InvisibleCharacter "invisible-character"
        "Characters that nobody sees, such as the zero-width space, are seldom meant; in a name they make two names that look alike. Joiners are left alone where emoji or a script need them.";
    BidiCharacter "bidi-character"
        "Directional marks, embeddings, overrides and isolates change the order in which a text is shown, and are not seen themselves.";
    BodyBeginsWithPlaceholder "body-begins-with-placeholder"
        "WhatsApp refuses a body that begins with a placeholder; punctuation before it does not help.";
    BodyEndsWithPlaceholder "body-ends-with-placeholder"
        "WhatsApp refuses a body that ends with a placeholder; punctuation behind it does not help.";
    PlaceholdersSideBySide "placeholders-side-by-side"
        "WhatsApp rejects placeholders with nothing or only white space between them.";
    OverWhatsappLimit "over-whatsapp-limit"
        "WhatsApp takes shorter texts than this service does; its limits stand beside the fields above.";
    LinkShortener "link-shortener"
        "WhatsApp rejects addresses of link shorteners, and those that lead back into WhatsApp.";
    OpenHost "open-host"
        "A placeholder right behind the host of a button's address goes on with it: only values that begin with `/`, `?` or `#` can be filled in there.";
    CodeSample "code-sample"
        "The code of a `COPY_CODE` button is made of letters and digits when a message is sent, and so should be its sample. Told under the rulebook `whatsapp`.";
    BracesUnpaired "braces-unpaired"
        "WhatsApp rejects a text in which `}}` has no `{{`. Told under the rulebook `whatsapp`.";
    ManyLineBreaks "many-line-breaks"
        "WhatsApp is said to refuse bodies with more than two line breaks in a row. Told under the rulebook `whatsapp`.";
    ManyEmoji "many-emoji"
        "WhatsApp is said to refuse bodies with more than ten emoji. Told under the rulebook `whatsapp`.";
    LabelNotShown "label-not-shown"
        "WhatsApp shows a label of its own on `COPY_CODE`, CATALOG, MPM and SPM buttons, whatever is written. Told under the rulebook `whatsapp`.";
    ProductCards "product-cards"
        "A carousel of products is defined by two cards, and sent with two to ten. Told under the rulebook `whatsapp`.";
    SameContent "same-content"
        "WhatsApp rejects a template whose body and footer are, word for word, those of another of the account. Told to accounts with the rulebook `whatsapp`; AUTHENTICATION templates are not compared.";
}

impl Serialize for WarningRule {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.id())
    }
}

/// A warning that does not know its place yet; the reader adds it.
#[derive(Debug)]
pub(crate) struct TextWarning {
    pub(crate) rule: WarningRule,
    pub(crate) message: String,
    hint: String,
    pub(crate) span: Option<Span>,
}

impl TextWarning {
    pub(crate) fn new(
        rule: WarningRule,
        message: impl Into<String>,
        hint: impl Into<String>,
    ) -> Self {
        Self { rule, message: message.into(), hint: hint.into(), span: None }
    }

    pub(crate) fn at(mut self, span: Span) -> Self {
        self.span = Some(span);
        self
    }

    pub(crate) fn warning(self, pointer: String) -> Warning {
        let Self { rule, message, hint, span } = self;
        Warning { pointer, rule, message, hint, span }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::violation::Rule;

    #[test]
    fn ids_are_kebab_case_and_distinct_from_each_other_and_from_rules() {
        let mut ids: Vec<_> = WarningRule::ALL.iter().map(|it| it.id()).collect();
        assert!(
            ids.iter().all(|id| id.bytes().all(|byte| byte == b'-' || byte.is_ascii_lowercase()))
        );
        ids.extend(Rule::ALL.iter().map(|rule| rule.id()));
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), WarningRule::ALL.len() + Rule::ALL.len());
    }
}
