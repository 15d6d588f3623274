//! Violations: which rule is broken, where, and how to mend it.

mod text;
mod warning;

pub(crate) use text::{TextViolation, shortened};
pub(crate) use warning::TextWarning;
pub use warning::{Warning, WarningRule, Warnings};

use serde::{Serialize, Serializer};

/// How many violations one answer tells; the rest are only counted.
pub const MAX_LISTED: usize = 100;

/// One broken rule at one place of a document.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Violation {
    /// RFC 6901 pointer to the place; empty for the document itself.
    pub pointer: String,
    /// Which rule.
    pub rule: Rule,
    /// What is wrong there.
    pub message: String,
    /// How to mend it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// Which characters of the string at `pointer`, where that helps.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub span: Option<Span>,
}

/// Some characters of a string, counted in Unicode scalar values; `end` is not part of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Span {
    /// The first character.
    pub start: usize,
    /// The first character behind it.
    pub end: usize,
}

impl Span {
    /// The span of a range of bytes in `text`.
    pub fn of(text: &str, bytes: std::ops::Range<usize>) -> Self {
        let start = text[..bytes.start].chars().count();
        Self { start, end: start + text[bytes].chars().count() }
    }
}

/// Everything that is wrong with a document. Never empty.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", broken(.told.len() + .more))]
pub struct Violations {
    told: Vec<Violation>,
    more: usize,
}

impl Violations {
    /// The violations that are told, in the order they were found.
    pub fn listed(&self) -> &[Violation] {
        &self.told
    }

    /// How many more there are.
    pub fn omitted(&self) -> usize {
        self.more
    }
}

impl Violations {
    /// These, unless there are none.
    pub fn of(mut told: Vec<Violation>) -> Option<Self> {
        let more = told.len().saturating_sub(MAX_LISTED);
        told.truncate(MAX_LISTED);
        (!told.is_empty()).then_some(Self { told, more })
    }

    /// These, and others behind them.
    #[must_use]
    pub fn and(mut self, others: Vec<Violation>) -> Self {
        self.told.extend(others);
        self.more += self.told.len().saturating_sub(MAX_LISTED);
        self.told.truncate(MAX_LISTED);
        self
    }
}

impl From<Violation> for Violations {
    fn from(only: Violation) -> Self {
        Self { told: vec![only], more: 0 }
    }
}

fn broken(count: usize) -> String {
    if count == 1 { "1 rule is broken".to_owned() } else { format!("{count} rules are broken") }
}

/// Collects violations while a document is read.
#[derive(Debug, Default)]
pub(crate) struct ViolationCollector {
    told: Vec<Violation>,
    more: usize,
}

impl ViolationCollector {
    /// Adds one, or only counts it when enough have been told.
    pub(crate) fn add(&mut self, violation: impl FnOnce() -> Violation) {
        if self.told.len() < MAX_LISTED {
            self.told.push(violation());
        } else {
            self.more += 1;
        }
    }

    /// Forgets what something else makes needless.
    pub(crate) fn take_back(&mut self, needless: impl Fn(&Violation) -> bool) {
        self.told.retain(|told| !needless(told));
    }

    /// `value`, unless anything was found.
    pub(crate) fn verdict<T>(self, value: Option<T>) -> Result<T, Violations> {
        match value {
            Some(value) if self.told.is_empty() => Ok(value),
            _ => {
                debug_assert!(!self.told.is_empty(), "whoever gives up has to say why");
                Err(Violations { told: self.told, more: self.more })
            }
        }
    }
}

/// Declares [`Rule`] together with the stable id and the sentence that documentation shows, in
/// groups by what the rules are about.
macro_rules! rules {
    ($($(#[$doc:meta])* $group:ident { $($variant:ident $id:literal $about:literal;)+ })+) => {
        /// The rules a document can break. Ids are stable: programs may depend on them.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Rule {
            $($(#[doc = $about] $variant,)+)+
        }

        impl Rule {
            /// Every rule, in the order of the documentation.
            pub const ALL: &[Rule] = &[$($(Rule::$variant),+),+];

            $($(#[$doc])* pub const $group: &[Rule] = &[$(Rule::$variant),+];)+

            /// The stable id: `too-long`.
            pub fn id(self) -> &'static str {
                match self {
                    $($(Rule::$variant => $id,)+)+
                }
            }

            /// What the rule demands, in a sentence.
            pub fn about(self) -> &'static str {
                match self {
                    $($(Rule::$variant => $about,)+)+
                }
            }
        }
    };
}

rules! {
    /// Rules of the document that a template is made from.
    DOCUMENT {
        Required "required" "The field has to be there; `null` counts as absent.";
        WrongType "wrong-type" "The value is of another JSON type than the field takes.";
        DuplicateKey "duplicate-key" "An object names each member once.";
        Empty "empty" "A string is not empty and not only white space.";
        TooLong "too-long" "A string has at most so many characters (Unicode scalar values).";
        ControlCharacter "control-character"
            "No control characters (category Cc); body texts may hold line feed, carriage return and tab. Under `whatsapp` headlines, footers and labels hold no U+2028 and U+2029 either.";
        TooFew "too-few" "A list has at least so many items.";
        TooMany "too-many" "A list has at most so many items; what goes beyond is not read.";
        NotAChoice "not-a-choice" "The value is one of the words listed for the field, in any letter case.";
        NameEdges "name-edges" "A name has no white space at either end.";
        LanguageForm "language-form"
            "A language is written `language_REGION`: two lower-case letters, `_`, two upper-case letters.";
        LanguageUnknown "language-unknown" "The part before `_` is an ISO 639-1 language code.";
        RegionUnknown "region-unknown" "The part behind `_` is an ISO 3166-1 alpha-2 region code.";
        BodyMissing "body-missing" "A template has a BODY component.";
        ComponentRepeated "component-repeated" "Each component type appears at most once.";
        PlaceholderSyntax "placeholder-syntax"
            "`{{` begins a placeholder, and a placeholder is written `{{1}}` to `{{999}}`.";
        PlaceholderGap "placeholder-gap" "Placeholders count from `{{1}}` without gaps; order and repetition are free.";
        PlaceholderNotAllowed "placeholder-not-allowed"
            "No `{{` in footers, labels and addresses, except `{{1}}` at the very end of a button's `url`.";
        SamplesCount "samples-count" "There is exactly one sample for each different placeholder.";
        UrlScheme "url-scheme" "An address begins with `http://` or `https://`.";
        UrlHost "url-host" "An address names a host.";
        UrlUserInfo "url-user-info" "An address carries no user name or password.";
        UrlWhiteSpace "url-white-space" "An address holds no white space.";
        PhoneForm "phone-form" "A phone number is an optional `+` and 7 to 15 digits, the first not 0. Under `whatsapp` it has at least 5 digits and at most 20 characters; spaces, hyphens, dots and parentheses may stand between the digits.";
    }
    /// Rules of such a document that only the `whatsapp` rulebook has.
    WHATSAPP {
        NameForm "name-form" "A name is made of lower-case letters, digits and `_`.";
        LanguageUnsupported "language-unsupported" "The language is one of the codes that WhatsApp lists.";
        PlaceholderName "placeholder-name"
            "With `parameter_format` NAMED a placeholder is written `{{first_name}}`: lower-case letters, digits and `_`, the first no digit.";
        PlaceholderCount "placeholder-count" "A headline holds at most one placeholder.";
        PlaceholderAtStart "placeholder-at-start" "A body does not begin with a placeholder; punctuation before it does not help.";
        PlaceholderAtEnd "placeholder-at-end" "A body does not end with a placeholder; punctuation behind it does not help.";
        TooFewWords "too-few-words" "A body with n different placeholders has at least 2n + 1 words beside them; the text of a card may have fewer.";
        Formatting "formatting"
            "No `*bold*`, `_italic_`, `~struck~` or `` `code` `` outside of bodies, no asterisk at all in a headline, and no `*`, `~` and `` ` `` at all in a label.";
        Emoji "emoji" "No emoji outside of bodies.";
        SamplesNotAllowed "samples-not-allowed"
            "An `example` stands only where there are placeholders, never in a footer or in an AUTHENTICATION template, and in the way that `parameter_format` asks for.";
        SampleName "sample-name" "A named sample names a placeholder of its text, and each is named once.";
        WhatsappLink "whatsapp-link"
            "The address of a button does not lead back into WhatsApp: to `wa.me`, `chat.whatsapp.com` or `api.whatsapp.com`.";
        NumberRange "number-range" "A number lies within its limits; those of `message_send_ttl_seconds` depend on the category.";
        PackageForm "package-form"
            "An Android package has at least two parts with a dot between them, each of letters, digits and `_`, a letter first.";
        SignatureForm "signature-form" "The hash of an app's key has exactly 11 letters, digits, `+`, `/` or `=`.";
        LabelRepeated "label-repeated" "No two quick replies have the same label.";
        ButtonCount "button-count" "There are at most so many buttons of a type.";
        QuickRepliesApart "quick-replies-apart" "Quick replies stand together, before or behind all other buttons.";
        ButtonAlone "button-alone" "A CATALOG or MPM button is the only one, and so is the button of a product's card.";
        HeaderMissing "header-missing" "An MPM button stands below a HEADER.";
        ComponentUnfit "component-unfit" "The component may stand beside the others.";
        CategoryUnfit "category-unfit" "The category is one that the piece is for.";
        AuthenticationText "authentication-text" "An AUTHENTICATION template brings no texts: WhatsApp writes them.";
        AuthenticationButton "authentication-button" "An AUTHENTICATION template has one OTP button and no other.";
        AuthenticationOnly "authentication-only"
            "`add_security_recommendation` and `code_expiration_minutes` belong to AUTHENTICATION templates.";
        TermsNotAccepted "terms-not-accepted" "A `ZERO_TAP` button says that its terms are accepted.";
        FlowSource "flow-source" "A FLOW button has exactly one of `flow_id`, `flow_name` and `flow_json`.";
        ProductHeader "product-header"
            "An SPM button stands below a HEADER of format PRODUCT, and such a header above an SPM button (on a card: or a URL button).";
        CardIncomplete "card-incomplete" "A card has a HEADER and BUTTONS.";
        CardsDiffer "cards-differ"
            "All cards have the same kind of header, the same kinds of buttons in the same order, and a body each or none.";
        OfferButtons "offer-buttons"
            "A limited-time offer has one URL button and no other but a `COPY_CODE` button, which stands first, and is needed when the offer ends.";
        NotCovered "not-covered"
            "Templates of Meta's library are not kept here: a template brings its own components.";
    }
    /// Rules that other templates and uploads have a part in.
    OTHERS {
        NameTaken "name-taken" "No other template has the name. Told by the dry run; a creation is refused with a problem of its own.";
        CategoryDiffers "category-differs" "Under `whatsapp` all languages of a name have one category. Told by the dry run; a creation is refused with a problem of its own.";
        CategoryLocked "category-locked" "The category of a template stays what it is if `allow_category_change` is false, and under `whatsapp` while a version of it is live. Told by the dry run; an edit is refused with a problem of its own.";
        MoveNotPossible "move-not-possible" "A template that is disabled is not edited any more. Told by the dry run; an edit is refused with a problem of its own.";
        VersionUnknown "version-unknown" "A version that is brought back is one that the template has. Told by the dry run; an edit is refused with a problem of its own.";
        LimitReached "limit-reached" "An account that is held to limits has room for another template. Told by the dry run; a creation is refused with a problem of its own.";
        SampleUnknown "sample-unknown" "A handle that Galley gave out is that of a file which the account has uploaded and which is still kept; other handles are taken as they are.";
        SampleUnfit "sample-unfit" "The file behind such a handle is of a type that the header's `format` takes.";
    }
    /// Rules of the document that edits a template.
    EDIT {
        Unchangeable "unchangeable" "`name`, `language` and `allow_category_change` never change: an edit leaves them out or repeats them.";
        NothingToEdit "nothing-to-edit" "An edit holds `components`, `category` or `restore_version`.";
        RestoreAlone "restore-alone" "`restore_version` stands without `components` and `category`: the version brings its own.";
    }
    /// Rules of the values that a template is rendered with.
    VALUES {
        ValueMissing "value-missing"
            "There is a value for each different placeholder, for a header that is no text, for each button that needs one, and for an offer that ends.";
        ValueSuperfluous "value-superfluous"
            "Each value is taken by something in the template; the members are `header`, `body` and `buttons`, under `whatsapp` also `cards` and `offer`, and no others.";
        ValueLineBreak "value-line-break" "A value holds no line feed, carriage return or tab; under `whatsapp` no U+2028 and U+2029 either.";
        ValueSpaces "value-spaces" "A value holds at most four spaces in a row.";
        MediaKindUnknown "media-kind-unknown"
            "The path of an attachment's address ends in `.jpg`, `.jpeg`, `.png` (image), `.mp4`, `.3gp` (video), `.pdf`, `.doc`, `.docx`, `.xls`, `.xlsx`, `.ppt`, `.pptx` or `.txt` (document), in any letter case.";
    }
    /// Rules of such values that only templates of the `whatsapp` rulebook have.
    WHATSAPP_VALUES {
        CodeForm "code-form" "A coupon code is made of letters `A` to `Z`, in either case, and digits.";
        MediaKindDiffers "media-kind-differs"
            "An address whose ending tells the kind of a file leads to one of the header's format.";
        PartUnknown "part-unknown"
            "Rendering knows every part of the template. One that it cannot fill is told, never passed over.";
    }
    /// Rules of the documents about endpoints that events are delivered to.
    WEBHOOKS {
        WebhookAddress "webhook-address"
            "Events are delivered to https addresses whose host has public addresses only, unless the operator allows others.";
        WebhookFormat "webhook-format"
            "The format `whatsapp` belongs to accounts with the rulebook `whatsapp`. Its endpoints, and no others, are given a `verify_token` with each address, and may be given a `secret`.";
        WebhookHandshake "webhook-handshake"
            "An address that gets events in the format `whatsapp` answers `GET` with 200 and the value of `hub.challenge`.";
        SecretForm "secret-form" "A secret has 16 to 256 printable ASCII characters, no spaces among them.";
        NothingToChange "nothing-to-change" "A change of an endpoint holds `url`, `verify_token`, `events` or `disabled`.";
        ReplayWhat "replay-what" "A replay names either one `event` or the moment `since` when, not both.";
        MomentForm "moment-form" "A moment is written as RFC 3339 says: `2026-11-15T09:30:00Z`.";
    }
}

impl Serialize for Rule {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.id())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rule_ids_are_distinct_and_kebab_case() {
        let mut ids: Vec<_> = Rule::ALL.iter().map(|rule| rule.id()).collect();
        assert!(
            ids.iter().all(|id| id.bytes().all(|byte| byte == b'-' || byte.is_ascii_lowercase()))
        );
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), Rule::ALL.len());
    }

    #[test]
    fn spans_count_characters_not_bytes() {
        assert_eq!(Span::of("né{{x}}", 3..8), Span { start: 2, end: 7 });
    }

    #[test]
    fn after_a_hundred_violations_the_rest_is_counted() {
        let mut report = ViolationCollector::default();
        for n in 0..MAX_LISTED + 7 {
            report.add(|| Violation {
                pointer: format!("/{n}"),
                rule: Rule::Empty,
                message: String::new(),
                hint: None,
                span: None,
            });
        }
        let violations = report.verdict(Some(())).unwrap_err();
        assert_eq!((violations.listed().len(), violations.omitted()), (MAX_LISTED, 7));
    }
}
