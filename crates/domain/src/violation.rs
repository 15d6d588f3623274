//! Violations: the rule that is broken, where, and how to fix it.

mod text;
mod warning;

pub(crate) use text::{TextViolation, did_you_mean, is_or_are, pluralized, truncated};
pub(crate) use warning::TextWarning;
pub use warning::{Warning, WarningRule, Warnings};

use serde::Serialize;

use crate::{document::cursor::Cursor, id_catalogue::id_catalogue};

/// Number of violations that one response lists; further ones are only counted.
pub const MAX_LISTED: usize = 100;

/// One broken rule at one location of a document.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Violation {
    /// RFC 6901 pointer to the value; empty for the document itself.
    pub pointer: String,
    /// The broken rule.
    pub rule: Rule,
    /// What is wrong.
    pub message: String,
    /// How to fix it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// The characters of the string at `pointer`, if only a part of it is affected.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub span: Option<Span>,
}

/// A range of characters in a string, counted in Unicode scalar values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Span {
    /// Index of the first character.
    pub start: usize,
    /// Index after the last character.
    pub end: usize,
}

impl Span {
    /// The span of a range of bytes in `text`.
    pub fn of(text: &str, bytes: std::ops::Range<usize>) -> Self {
        let start = text[..bytes.start].chars().count();
        Self { start, end: start + text[bytes].chars().count() }
    }
}

/// All violations of a document. Never empty.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{} {} broken", pluralized(.listed.len() + .omitted, "rule"), is_or_are(.listed.len() + .omitted))]
pub struct Violations {
    listed: Vec<Violation>,
    omitted: usize,
}

impl Violations {
    /// The given violations, or `None` if there are none.
    pub fn new(mut listed: Vec<Violation>) -> Option<Self> {
        let omitted = listed.len().saturating_sub(MAX_LISTED);
        listed.truncate(MAX_LISTED);
        (!listed.is_empty()).then_some(Self { listed, omitted })
    }

    /// Appends further violations.
    #[must_use]
    pub fn with(mut self, others: Vec<Violation>) -> Self {
        self.listed.extend(others);
        self.omitted += self.listed.len().saturating_sub(MAX_LISTED);
        self.listed.truncate(MAX_LISTED);
        self
    }

    /// The first [`MAX_LISTED`] violations, in the order in which they were found.
    pub fn listed(&self) -> &[Violation] {
        &self.listed
    }

    /// Number of violations beyond the listed ones.
    pub fn omitted(&self) -> usize {
        self.omitted
    }
}

impl From<Violation> for Violations {
    fn from(violation: Violation) -> Self {
        Self { listed: vec![violation], omitted: 0 }
    }
}

/// Collects violations while a document is read.
#[derive(Debug, Default)]
pub(crate) struct ViolationCollector {
    listed: Vec<Violation>,
    omitted: usize,
}

impl ViolationCollector {
    /// Adds a violation, or only counts it once [`MAX_LISTED`] are listed.
    pub(crate) fn add(&mut self, violation: impl FnOnce() -> Violation) {
        if self.is_full() {
            self.count_omitted(1);
        } else {
            self.listed.push(violation());
        }
    }

    /// Whether further violations are only counted.
    pub(crate) fn is_full(&self) -> bool {
        self.listed.len() >= MAX_LISTED
    }

    /// Counts violations that are not listed.
    pub(crate) fn count_omitted(&mut self, count: usize) {
        self.omitted += count;
    }

    /// Adds a violation at the position of a cursor.
    pub(crate) fn add_at(
        &mut self,
        cursor: &Cursor<'_, '_>,
        violation: impl FnOnce() -> TextViolation,
    ) {
        self.add(|| {
            let TextViolation { rule, message, hint, span } = violation();
            Violation { pointer: cursor.pointer(), rule, message, hint, span }
        });
    }

    /// Removes listed violations that another check has made obsolete.
    pub(crate) fn retract(&mut self, is_obsolete: impl Fn(&Violation) -> bool) {
        self.listed.retain(|violation| !is_obsolete(violation));
    }

    /// `value` if there are no violations, otherwise the violations.
    pub(crate) fn into_result<T>(self, value: Option<T>) -> Result<T, Violations> {
        match value {
            Some(value) if self.listed.is_empty() => Ok(value),
            _ => {
                debug_assert!(!self.listed.is_empty(), "a missing value needs a violation");
                Err(Violations { listed: self.listed, omitted: self.omitted })
            }
        }
    }
}

id_catalogue! {
    /// The rules a document can break. Ids are stable: programs may depend on them.
    pub enum Rule grouped;

    /// Rules for the document that a template is created from.
    DOCUMENT {
        Required "required" "The field must be present; `null` counts as absent.";
        WrongType "wrong-type" "The value must have a JSON type that the field accepts.";
        DuplicateKey "duplicate-key" "An object must not contain the same key twice.";
        Empty "empty" "A string must not be empty or consist only of whitespace.";
        TooLong "too-long" "A string must not exceed its maximum length in characters (Unicode scalar values).";
        ControlCharacter "control-character"
            "A string must not contain control characters (category Cc); body texts may contain line feeds, carriage returns and tabs. Under the `whatsapp` rulebook, the samples of a body may contain them, too, and header texts, footers and labels must not contain U+2028 or U+2029.";
        TooFew "too-few" "A list must have its minimum number of items.";
        TooMany "too-many" "A list must not exceed its maximum number of items; further items are not checked.";
        NotAChoice "not-a-choice" "The value must be one of those listed for the field; letter case is ignored.";
        NameEdges "name-edges" "A name must not begin or end with whitespace.";
        LanguageForm "language-form"
            "A language has the form `language_REGION`: two lower-case letters, `_`, two upper-case letters.";
        LanguageUnknown "language-unknown" "The part before `_` must be an ISO 639-1 language code.";
        RegionUnknown "region-unknown" "The part after `_` must be an ISO 3166-1 alpha-2 region code.";
        BodyMissing "body-missing" "A template must have a BODY component.";
        ComponentRepeated "component-repeated" "Each component type may appear only once.";
        PlaceholderSyntax "placeholder-syntax"
            "`{{` starts a placeholder, and a placeholder is written `{{1}}` to `{{999}}`.";
        PlaceholderGap "placeholder-gap" "Placeholders are numbered from `{{1}}` without gaps. They may appear in any order and more than once.";
        PlaceholderNotAllowed "placeholder-not-allowed"
            "Footers, labels and URLs must not contain `{{`, except for `{{1}}` at the very end of a button's `url`.";
        SamplesCount "samples-count" "There must be exactly one sample for each distinct placeholder.";
        UrlScheme "url-scheme" "A URL must begin with `http://` or `https://`.";
        UrlHost "url-host"
            "A URL must have a host. Under the `whatsapp` rulebook, a button must not lead to the recipient's own device: to `localhost`, a host that ends in `.localhost`, or a loopback address.";
        UrlUserInfo "url-user-info" "A URL must not contain a user name or password.";
        UrlWhiteSpace "url-white-space" "A URL must not contain whitespace.";
        PhoneForm "phone-form" "A phone number consists of an optional `+` and 7 to 15 digits, and the first digit is not 0. Under the `whatsapp` rulebook it has at least 5 digits and at most 20 characters, and may contain spaces, hyphens, dots and parentheses between the digits.";
    }
    /// Rules for such a document that only the `whatsapp` rulebook has.
    WHATSAPP {
        NameForm "name-form" "A name consists of lower-case letters, digits and `_`.";
        LanguageUnsupported "language-unsupported" "The language must be one of the codes that WhatsApp lists.";
        PlaceholderName "placeholder-name"
            "If `parameter_format` is NAMED, a placeholder is written like `{{first_name}}`: lower-case letters, digits and `_`, not starting with a digit.";
        PlaceholderCount "placeholder-count" "A header text may contain at most one placeholder.";
        PlaceholderAtStart "placeholder-at-start" "A body must not begin with a placeholder, even after punctuation.";
        PlaceholderAtEnd "placeholder-at-end" "A body must not end with a placeholder, even before punctuation.";
        TooFewWords "too-few-words" "A body with n distinct placeholders, also that of a card, must have at least 2n + 1 other words.";
        Formatting "formatting"
            "Only bodies may contain `*bold*`, `_italic_`, `~struck~` or `` `code` ``. A header text must not contain `*` at all, and a label must not contain `*`, `~` or `` ` `` at all.";
        Emoji "emoji" "Only bodies may contain emoji.";
        SamplesNotAllowed "samples-not-allowed"
            "An `example` is only allowed next to a text with placeholders, in the form that `parameter_format` requires, and never in a footer or an AUTHENTICATION template.";
        SamplesFlat "samples-flat" "The samples of a body with several placeholders are a list that contains one list.";
        SampleName "sample-name" "A named sample must name a placeholder of its text, and each placeholder is named once.";
        HandleForm "handle-form" "The `header_handle` of a new template is the handle of an uploaded file, not a URL.";
        WhatsappLink "whatsapp-link"
            "The URL of a button must not lead back to WhatsApp: to `wa.me`, `chat.whatsapp.com` or `api.whatsapp.com`.";
        NumberRange "number-range" "A number must be within its limits; those of `message_send_ttl_seconds` depend on the category.";
        PackageForm "package-form"
            "An Android package name has at least two parts separated by dots. Each part starts with a letter and consists of letters, digits and `_`.";
        SignatureForm "signature-form" "An app signature hash has exactly 11 characters: letters, digits, `+`, `/` or `=`.";
        LabelRepeated "label-repeated" "Two quick replies must not have the same label.";
        ButtonCount "button-count" "A template must not exceed the maximum number of buttons of a type.";
        QuickRepliesApart "quick-replies-apart" "Quick replies must be adjacent, before or after all other buttons.";
        ButtonAlone "button-alone" "A CATALOG or MPM button must be the only button; a product card has exactly one button.";
        HeaderMissing "header-missing" "A template with an MPM button must have a HEADER.";
        ComponentUnfit "component-unfit" "The component must be one that can be combined with the others.";
        CategoryUnfit "category-unfit" "The component or button must be available in the template's category.";
        AuthenticationText "authentication-text" "An AUTHENTICATION template must not contain texts: WhatsApp provides them.";
        AuthenticationButton "authentication-button" "An AUTHENTICATION template must have exactly one button, of type OTP.";
        AuthenticationOnly "authentication-only"
            "`add_security_recommendation` and `code_expiration_minutes` are only allowed in AUTHENTICATION templates.";
        TermsNotAccepted "terms-not-accepted" "A `ZERO_TAP` button must state that its terms are accepted.";
        FlowSource "flow-source" "A FLOW button must have exactly one of `flow_id`, `flow_name` and `flow_json`.";
        ProductHeader "product-header"
            "An SPM button requires a HEADER of format PRODUCT, and such a header requires an SPM button (on a card: an SPM or URL button).";
        CardIncomplete "card-incomplete" "A card must have a HEADER and BUTTONS.";
        CardsDiffer "cards-differ"
            "All cards must have the same header format and the same button types in the same order, and either all or none have a body.";
        OfferButtons "offer-buttons"
            "A limited-time offer has one URL button, which a `COPY_CODE` button may precede. An offer that expires requires the `COPY_CODE` button.";
        NotCovered "not-covered"
            "Templates from Meta's template library are not supported: a template must contain its own components.";
    }
    /// Rules that depend on the account's other templates, limits and uploads.
    ACCOUNT_STATE {
        NameTaken "name-taken" "The name must not be in use by another template. Only dry runs report this rule; a create request fails with a separate problem.";
        CategoryDiffers "category-differs" "Under the `whatsapp` rulebook, all languages of a name must have the same category. Only dry runs report this rule; a create request fails with a separate problem.";
        CategoryLocked "category-locked" "The category of a template cannot change if `allow_category_change` is false, nor under the `whatsapp` rulebook while a version of the template is live. Only dry runs report this rule; an edit fails with a separate problem.";
        MoveNotPossible "move-not-possible" "A disabled or archived template cannot be edited. Only dry runs report this rule; an edit fails with a separate problem.";
        VersionUnknown "version-unknown" "The version to restore must be a version of the template. Only dry runs report this rule; an edit fails with a separate problem.";
        LimitReached "limit-reached" "The account must be below its limit of templates, if it has one. Only dry runs report this rule; a create request fails with a separate problem.";
        SampleUnknown "sample-unknown" "A handle issued by Galley must belong to a file that the account has uploaded and that has not expired. Handles from elsewhere are accepted unchecked.";
        SampleUnfit "sample-unfit" "A file uploaded to Galley must have a type that the header's `format` accepts.";
    }
    /// Rules for the document that edits a template.
    EDIT {
        Unchangeable "unchangeable" "`name`, `language` and `allow_category_change` cannot change: an edit omits them or repeats their values.";
        NothingToEdit "nothing-to-edit" "An edit must contain `components`, `category` or `restore_version`.";
        RestoreAlone "restore-alone" "`restore_version` cannot be combined with `components` or `category`: the restored version contains both.";
    }
    /// Rules for the values that a template is rendered with.
    VALUES {
        ValueMissing "value-missing"
            "Each distinct placeholder, each header that is not a text, each button that needs a value and each offer that expires must have a value.";
        ValueSuperfluous "value-superfluous"
            "The template must use every value. The members are `header`, `body` and `buttons`, and under the `whatsapp` rulebook also `cards` and `offer`.";
        ValueLineBreak "value-line-break" "A value must not contain line feeds, carriage returns or tabs; under the `whatsapp` rulebook no U+2028 or U+2029 either.";
        ValueSpaces "value-spaces" "A value must not contain more than four consecutive spaces.";
        MediaKindUnknown "media-kind-unknown"
            "The path of a media URL must end in `.jpg`, `.jpeg`, `.png` (image), `.mp4`, `.3gp` (video), `.pdf`, `.doc`, `.docx`, `.xls`, `.xlsx`, `.ppt`, `.pptx` or `.txt` (document); letter case is ignored.";
    }
    /// Rules for such values that only the `whatsapp` rulebook has.
    WHATSAPP_VALUES {
        CodeForm "code-form" "A coupon code consists of the letters `A` to `Z`, in either case, and digits.";
        MediaKindDiffers "media-kind-differs"
            "If the file extension of a URL indicates the kind of media, that kind must match the header's format.";
        PartUnknown "part-unknown"
            "Rendering must support every part of the template. An unsupported part is reported, never skipped.";
    }
    /// Rules for the documents that describe webhook endpoints.
    WEBHOOKS {
        WebhookAddress "webhook-address"
            "An endpoint must have an https URL whose host resolves only to public IP addresses, unless the operator allows others.";
        WebhookFormat "webhook-format"
            "The `whatsapp` format is only available to accounts with the `whatsapp` rulebook. Only endpoints with this format have a `verify_token`, which is required with each `url`, and may have a `secret`.";
        WebhookHandshake "webhook-handshake"
            "The URL of an endpoint with the `whatsapp` format must respond to `GET` with status 200 and the value of `hub.challenge`.";
        SecretForm "secret-form" "A secret has 16 to 256 printable ASCII characters and no spaces.";
        NothingToChange "nothing-to-change" "A change to an endpoint must contain `url`, `verify_token`, `events` or `disabled`.";
        ReplayWhat "replay-what" "A replay must contain either `event` or `since`, but not both.";
        MomentForm "moment-form" "A timestamp must be in RFC 3339 format: `2026-11-15T09:30:00Z`.";
    }
    /// Rules for the document in which a reviewer decides.
    DECISIONS {
        DecisionMember "decision-member"
            "A decision has only the members `decision`, `reason` and `version`. Unlike other documents it is refused with any other one, also with `null`: a misspelt `version` must not approve.";
    }
    /// Rules for the document that a token is created from.
    TOKENS {
        TokenName "token-name"
            "The name of a token must have a visible character, must not contain directional characters or line separators, and must not look like an author that Galley itself shows: `operator`, `provider`, `service`, `system` or `token` with a number, also after `the`, in any letter case or compatibility form, with any accents and invisible characters.";
        TokenScopes "token-scopes" "A token must have at least one scope.";
        TokenExpiry "token-expiry"
            "A token has `expires_in` or `expires_at` or neither, but not both, and expires in the future.";
    }
    /// Rules for the documents of the emulator.
    EMULATOR {
        DurationForm "duration-form"
            "A duration is a number with `s`, `m`, `h` or `d`, or several in descending order: `90s`, `1h30m`. It is at most `365d`, and at most `30s` for a delay.";
        ClockWhat "clock-what" "A change of the clock must contain exactly one of `advance`, `set` and `follow`, which is `true`.";
        ClockAhead "clock-ahead" "The clock must be at most ten years ahead of real time.";
        RuleReason "rule-reason" "A review rule has a `reason` only with the outcome `reject`.";
        FaultKind "fault-kind"
            "The kinds `duplicate`, `drop` and `reorder` strike webhooks only, `delay` strikes every call, and the others strike every call but webhooks.";
        FaultFields "fault-fields"
            "A fault has either `times` or `share`. It has a `code` only with the kind `error`, a `delay` with the kind `delay` and only then, and no `name` with the calls `list` and `upload`.";
        FaultShare "fault-share" "A `share` is a number from 0.000001 to 1.";
        FaultCode "fault-code" "A `code` is one of the codes or subcodes that the emulator can return.";
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rule_ids_are_unique_and_kebab_case() {
        let mut ids: Vec<_> = Rule::ALL.iter().map(|rule| rule.id()).collect();
        assert!(
            ids.iter().all(|id| id.bytes().all(|byte| byte == b'-' || byte.is_ascii_lowercase()))
        );
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), Rule::ALL.len());
    }

    #[test]
    fn the_error_message_counts_the_broken_rules() {
        let violation = |rule| Violation {
            pointer: String::new(),
            rule,
            message: String::new(),
            hint: None,
            span: None,
        };
        let one = Violations::from(violation(Rule::Empty));
        assert_eq!(one.to_string(), "1 rule is broken");
        assert_eq!(one.with(vec![violation(Rule::TooLong)]).to_string(), "2 rules are broken");
    }

    #[test]
    fn spans_count_characters_not_bytes() {
        assert_eq!(Span::of("né{{x}}", 3..8), Span { start: 2, end: 7 });
    }

    #[test]
    fn further_violations_are_counted_once_a_hundred_are_listed() {
        let mut collector = ViolationCollector::default();
        for n in 0..MAX_LISTED + 7 {
            collector.add(|| Violation {
                pointer: format!("/{n}"),
                rule: Rule::Empty,
                message: String::new(),
                hint: None,
                span: None,
            });
        }
        let violations = collector.into_result(Some(())).unwrap_err();
        assert_eq!((violations.listed().len(), violations.omitted()), (MAX_LISTED, 7));
    }
}
