//! Warnings: findings that do not prevent a template from being created.

use serde::Serialize;

use super::{MAX_LISTED, Span};
use crate::id_catalogue::id_catalogue;

/// One finding at one location of a document.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Warning {
    /// RFC 6901 pointer to the value; empty for the document itself.
    pub pointer: String,
    /// The rule that the value does not follow.
    pub rule: WarningRule,
    /// What was found.
    pub message: String,
    /// How to fix it.
    pub hint: String,
    /// The characters of the string at `pointer`, if only a part of it is affected.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub span: Option<Span>,
}

/// All warnings of a document; may be empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Warnings {
    listed: Vec<Warning>,
    omitted: usize,
}

impl Warnings {
    /// The first [`MAX_LISTED`] warnings, in the order in which they were found.
    pub fn listed(&self) -> &[Warning] {
        &self.listed
    }

    /// Number of warnings beyond the listed ones.
    pub fn omitted(&self) -> usize {
        self.omitted
    }

    /// Number of all warnings.
    pub fn count(&self) -> usize {
        self.listed.len() + self.omitted
    }

    /// Adds a warning that cannot be derived from the document alone.
    pub fn push(&mut self, warning: Warning) {
        self.add(|| warning);
    }

    /// Removes listed warnings that another check has made obsolete.
    pub(crate) fn retract(&mut self, is_obsolete: impl Fn(&Warning) -> bool) {
        self.listed.retain(|warning| !is_obsolete(warning));
    }

    /// Adds a warning, or only counts it once [`MAX_LISTED`] are listed.
    pub(crate) fn add(&mut self, warning: impl FnOnce() -> Warning) {
        if self.listed.len() < MAX_LISTED {
            self.listed.push(warning());
        } else {
            self.omitted += 1;
        }
    }
}

id_catalogue! {
    /// The recommendations that a document can disregard. Ids are stable: programs may depend on them.
    pub enum WarningRule;

    UnknownField "unknown-field"
        "The field does not exist. It is neither checked nor stored; its name is often a misspelling.";
    UnusedField "unused-field"
        "The field exists, but has no effect here. It is neither checked nor stored.";
    InvisibleCharacter "invisible-character"
        "The text contains an invisible character, such as the zero-width space. Two names that differ only in such a character look the same. Joiners are accepted where emoji or the script require them.";
    BidiCharacter "bidi-character"
        "The text contains a directional mark, embedding, override or isolate. These characters are invisible and change the order in which text is displayed.";
    BodyBeginsWithPlaceholder "body-begins-with-placeholder"
        "WhatsApp rejects a body that begins with a placeholder, even after punctuation.";
    BodyEndsWithPlaceholder "body-ends-with-placeholder"
        "WhatsApp rejects a body that ends with a placeholder, even before punctuation.";
    PlaceholdersSideBySide "placeholders-side-by-side"
        "WhatsApp rejects placeholders with nothing or only whitespace between them.";
    OverWhatsappLimit "over-whatsapp-limit"
        "The text is longer than WhatsApp accepts. The tables above list WhatsApp's limits next to Galley's.";
    LinkShortener "link-shortener"
        "WhatsApp rejects links to URL shorteners and links back to WhatsApp.";
    OpenHost "open-host"
        "The placeholder directly follows the host of a button's URL and would extend it. Only values that begin with `/`, `?` or `#` are accepted there.";
    CodeSample "code-sample"
        "The code of a `COPY_CODE` button consists of letters and digits when a message is sent, and so should its sample. Only under the `whatsapp` rulebook.";
    BracesUnpaired "braces-unpaired"
        "WhatsApp rejects a text that contains `}}` without a preceding `{{`. Only under the `whatsapp` rulebook.";
    ManyLineBreaks "many-line-breaks"
        "WhatsApp is reported to reject bodies with more than two consecutive line breaks. Only under the `whatsapp` rulebook.";
    ManyEmoji "many-emoji"
        "WhatsApp is reported to reject bodies with more than ten emoji, or six in a UTILITY template. Only under the `whatsapp` rulebook.";
    PlaceholderNameLong "placeholder-name-long"
        "WhatsApp's editor does not accept names of placeholders with more than 32 characters. Only under the `whatsapp` rulebook.";
    PlaceholderRepeated "placeholder-repeated"
        "WhatsApp's editor does not accept a text that contains the same named placeholder twice. Only under the `whatsapp` rulebook.";
    PrivateHost "private-host"
        "The URL of a button leads to a private address or to a host without a domain, which recipients cannot open. Only under the `whatsapp` rulebook.";
    LabelNotShown "label-not-shown"
        "WhatsApp displays its own label on `COPY_CODE`, CATALOG, MPM and SPM buttons and ignores `text`. Only under the `whatsapp` rulebook.";
    ProductCards "product-cards"
        "A product carousel is defined with two cards and sent with two to ten. Only under the `whatsapp` rulebook.";
    WhatsappName "whatsapp-name"
        "A template cannot have this name at WhatsApp, so its rendered payload names a template that does not exist there. Only under the `v1` rulebook.";
    WhatsappLanguage "whatsapp-language"
        "WhatsApp does not have this language code, so the rendered payload names a template that does not exist there. Only under the `v1` rulebook.";
    WhatsappContent "whatsapp-content"
        "WhatsApp refuses a template with this content: the `whatsapp` rulebook reports a violation that no other warning covers. Only under the `v1` rulebook.";
    SameContent "same-content"
        "WhatsApp rejects a template whose body and footer are identical to those of another template of the account. Only under the `whatsapp` rulebook; AUTHENTICATION templates are not compared.";
}

/// A warning about a string; the reader adds the pointer.
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

    /// The complete warning about the value at `pointer`.
    pub(crate) fn into_warning(self, pointer: String) -> Warning {
        let Self { rule, message, hint, span } = self;
        Warning { pointer, rule, message, hint, span }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::violation::Rule;

    #[test]
    fn warning_ids_are_kebab_case_unique_and_distinct_from_rule_ids() {
        let mut ids: Vec<_> = WarningRule::ALL.iter().map(|rule| rule.id()).collect();
        assert!(
            ids.iter().all(|id| id.bytes().all(|byte| byte == b'-' || byte.is_ascii_lowercase()))
        );
        ids.extend(Rule::ALL.iter().map(|rule| rule.id()));
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), WarningRule::ALL.len() + Rule::ALL.len());
    }
}
