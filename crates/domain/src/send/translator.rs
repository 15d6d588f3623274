//! Translates the components of a message into values for the renderer.

use super::{
    expected::{Expected, ExpectedHeader},
    findings::Findings,
    parameters::{KnownMembers, UNCHANGED, new_member},
    position::Position,
    refusal::RefusalCode,
    translation::{Origin, OriginKind, Translation},
};
use crate::{
    document::{Json, Member, pointer::Segment},
    violation::truncated,
};

/// The types of components.
const COMPONENT_TYPES: [&str; 6] =
    ["header", "body", "button", "limited_time_offer", "carousel", "tap_target_configuration"];

/// Translates the components of a message to a template that takes the expected parameters.
pub(super) fn translate<'d>(expected: &Expected<'_>, components: Position<'d>) -> Translation<'d> {
    let mut translator = Translator::default();
    let scope = Scope { label: String::new(), value: String::new(), components };
    let values = translator.message(expected, &scope);
    let Translator { findings, origins, reported, .. } = translator;
    Translation { values: Json::Object(values), findings, origins, reported }
}

#[derive(Default)]
pub(super) struct Translator<'d> {
    pub(super) findings: Findings,
    pub(super) origins: Vec<Origin>,
    /// Pointers to values that are missing because the message has a violation there.
    pub(super) reported: Vec<String>,
    /// The code that the button of an authentication template delivers.
    pub(super) button_code: Option<Position<'d>>,
}

/// The message or one of its cards.
pub(super) struct Scope<'d> {
    /// The beginning of messages.
    pub(super) label: String,
    /// The pointer to the values.
    pub(super) value: String,
    pub(super) components: Position<'d>,
}

impl Scope<'_> {
    /// A component with its name in Meta's messages, and the member with its values.
    pub(super) fn part(&self, name: &str, member: &str) -> Part {
        let (label, value) = (&self.label, &self.value);
        Part { label: format!("{label}{name}"), value: format!("{value}/{member}") }
    }
}

/// A component, or a value of it.
pub(super) struct Part {
    /// The name in messages.
    pub(super) label: String,
    /// The pointer to the value.
    pub(super) value: String,
}

impl Part {
    /// A value inside the value of this one.
    pub(super) fn inner(&self, segment: Segment<'_>) -> Self {
        let mut value = self.value.clone();
        segment.append_to(&mut value);
        Self { label: self.label.clone(), value }
    }
}

/// The components of the message or of a card by type.
#[derive(Default)]
struct Given<'d> {
    header: Option<Position<'d>>,
    body: Option<Position<'d>>,
    buttons: Vec<Position<'d>>,
    offer: Option<Position<'d>>,
    carousel: Option<Position<'d>>,
    tap_target: Option<Position<'d>>,
}

impl<'d> Translator<'d> {
    /// The values of the message or of a card.
    pub(super) fn message(
        &mut self,
        expected: &Expected<'_>,
        scope: &Scope<'d>,
    ) -> Vec<Member<'d>> {
        let given = self.given(scope);
        let header = self.header(expected.header.as_ref(), given.header.as_ref(), scope);
        let body = self.body(expected, given.body.as_ref(), scope);
        let part = scope.part("buttons", "buttons");
        let buttons = self.buttons(&expected.buttons, &given.buttons, &part, scope);
        if expected.is_authentication {
            self.compare_codes(&body, &part);
        }
        let offer = self.offer(expected.has_offer_end, given.offer.as_ref(), scope);
        let cards = self.cards(expected.carousel.as_ref(), given.carousel.as_ref(), scope);
        if let Some(component) = &given.tap_target {
            self.tap_target(&scope.part("tap_target_configuration", ""), component);
        }
        let members = [
            ("header", header),
            ("body", body),
            ("buttons", buttons),
            ("offer", offer),
            ("cards", cards),
        ];
        // On a card, the renderer does not know all members.
        let is_present = |(_, value): &(&str, Json<'_>)| !matches!(value, Json::Null);
        members.into_iter().filter(is_present).map(|(key, it)| new_member(key, it)).collect()
    }

    /// Sorts the components by type; reports unknown types and duplicates.
    fn given(&mut self, scope: &Scope<'d>) -> Given<'d> {
        let mut given = Given::default();
        for component in scope.components.items() {
            let part = Part { label: format!("{}components", scope.label), value: String::new() };
            if !matches!(component.value, Some(Json::Object(_))) {
                let message = format!("a component must be an object, not {}", component.kind());
                self.report_invalid(&part, &component, &message);
                continue;
            }
            let at = component.field("type");
            if !self.is_present(&part, &at) {
                continue;
            }
            let kind = at.as_str().unwrap_or_default().to_ascii_lowercase();
            let slot = match &*kind {
                "button" => {
                    given.buttons.push(component);
                    continue;
                }
                "header" => &mut given.header,
                "body" => &mut given.body,
                "limited_time_offer" => &mut given.offer,
                "carousel" => &mut given.carousel,
                "tap_target_configuration" => &mut given.tap_target,
                _ => {
                    let known = COMPONENT_TYPES.join("`, `");
                    let kind = truncated(&kind);
                    let message = format!("type `{kind}` is unknown; known types: `{known}`");
                    self.report_invalid(&part, &at, &message);
                    continue;
                }
            };
            if slot.is_some() {
                let message = format!("a message has at most one component of type `{kind}`");
                self.report_invalid(&part, &component, &message);
            } else {
                *slot = Some(component);
            }
        }
        given
    }

    fn header(
        &mut self,
        expected: Option<&ExpectedHeader<'_>>,
        component: Option<&Position<'d>>,
        scope: &Scope<'d>,
    ) -> Json<'d> {
        let part = scope.part("header", "header");
        match (expected, component) {
            (None, None) => Json::Null,
            (None, Some(component)) => {
                let reason =
                    "the template has no header, so the message cannot have parameters for it";
                self.expect_no_parameters(&part, component, reason);
                Json::Null
            }
            (Some(ExpectedHeader::Text(placeholders)), component) => {
                self.texts(scope, &part, placeholders, component, OriginKind::FilledText)
            }
            (Some(ExpectedHeader::One(format)), component) => {
                self.media(&part, format, component, scope)
            }
        }
    }

    /// A header that is not a text.
    fn media(
        &mut self,
        part: &Part,
        format: &str,
        component: Option<&Position<'d>>,
        scope: &Scope<'d>,
    ) -> Json<'d> {
        const FILE: KnownMembers = KnownMembers(&[("link", UNCHANGED), ("id", UNCHANGED)]);
        const DOCUMENT: KnownMembers =
            KnownMembers(&[("link", UNCHANGED), ("id", UNCHANGED), ("filename", UNCHANGED)]);
        const LOCATION: KnownMembers = KnownMembers(&[
            ("latitude", UNCHANGED),
            ("longitude", UNCHANGED),
            ("name", UNCHANGED),
            ("address", UNCHANGED),
        ]);
        const PRODUCT: KnownMembers =
            KnownMembers(&[("product_retailer_id", UNCHANGED), ("catalog_id", UNCHANGED)]);
        let known = match format {
            "DOCUMENT" => DOCUMENT,
            "LOCATION" => LOCATION,
            "PRODUCT" => PRODUCT,
            _ => FILE,
        };
        let parameters = component.map(|it| self.parameters(part, it));
        let Some(parameters) = parameters else {
            self.reported.push(part.value.clone());
            self.findings.add_at_end(&scope.components, RefusalCode::ParameterFormat, || {
                format!("{}: Format mismatch, expected {format}, received UNKNOWN", part.label)
            });
            return Json::Null;
        };
        let Some(parameter) = parameters.items().next() else {
            self.reported.push(part.value.clone());
            self.report_format(part, &parameters, format, "UNKNOWN");
            return Json::Null;
        };
        self.expect_one(part, &parameters);
        let name = format.to_ascii_lowercase();
        let object = self.typed_object(part, &parameter, &name);
        let subject = format!("the {name}");
        let value = self.add_value(part, object.as_ref(), &subject, OriginKind::Other);
        known.copy(&value)
    }

    fn body(
        &mut self,
        expected: &Expected<'_>,
        component: Option<&Position<'d>>,
        scope: &Scope<'d>,
    ) -> Json<'d> {
        let part = scope.part("body", "body");
        let kind =
            if expected.is_authentication { OriginKind::Code } else { OriginKind::FilledText };
        match (&expected.body, component) {
            (Some(placeholders), component) => {
                self.texts(scope, &part, placeholders, component, kind)
            }
            (None, Some(component)) => {
                let reason =
                    "the template has no body, so the message cannot have parameters for it";
                self.expect_no_parameters(&part, component, reason);
                Json::Null
            }
            (None, None) => Json::Null,
        }
    }

    /// The button of an authentication template repeats the code of the body.
    fn compare_codes(&mut self, body: &Json<'d>, part: &Part) {
        let Json::Array(codes) = body else { return };
        let Some(button) = self.button_code.take() else { return };
        let code = codes.first().and_then(Json::as_str);
        if code.is_some() && code != button.as_str() {
            let message = "the button must have the code of the body";
            self.report_invalid(part, &button, message);
        }
    }

    /// The end of the offer.
    fn offer(
        &mut self,
        has_end: bool,
        component: Option<&Position<'d>>,
        scope: &Scope<'d>,
    ) -> Json<'d> {
        let part = scope.part("limited_time_offer", "offer");
        let Some(component) = component else {
            if has_end {
                self.reported.push(part.value.clone());
                self.findings.add_at_end(&scope.components, RefusalCode::ParameterMissing, || {
                    format!("{}: expiration_time_ms is missing: the offer ends", part.label)
                });
            }
            return Json::Null;
        };
        if !has_end {
            let reason =
                "the template has no offer that ends, so the message cannot have parameters for it";
            self.expect_no_parameters(&part, component, reason);
            return Json::Null;
        }
        let parameters = self.parameters(&part, component);
        let Some(parameter) = parameters.items().next() else {
            self.reported.push(part.value.clone());
            self.findings.add(&parameters, RefusalCode::ParameterMissing, || {
                format!("{}: expiration_time_ms is missing: the offer ends", part.label)
            });
            return Json::Null;
        };
        self.expect_one(&part, &parameters);
        let end = self.typed_object(&part, &parameter, "limited_time_offer");
        let end = end.map(|it| it.field("expiration_time_ms"));
        let end = end.filter(|it| self.is_present(&part, it)).filter(|it| {
            let is_number = matches!(it.value, Some(Json::Number(_)));
            if !is_number {
                let message = "expiration_time_ms must be a number of milliseconds since 1970";
                self.report_invalid(&part, it, message);
            }
            is_number
        });
        self.add_value(&part, end.as_ref(), "expiration_time_ms", OriginKind::Other)
    }

    /// Reports further parameters of a component that takes one.
    pub(super) fn expect_one(&mut self, part: &Part, parameters: &Position<'d>) {
        let count = parameters.count();
        if count != 1 {
            self.findings.add(parameters, RefusalCode::ParameterCount, || {
                format!(
                    "{}: number of params ({count}) does not match the expected number of params (1)",
                    part.label
                )
            });
        }
    }

    /// The value at a position, whose violations belong there. If there is none, the reason has been
    /// reported.
    pub(super) fn add_value(
        &mut self,
        part: &Part,
        value: Option<&Position<'d>>,
        subject: &str,
        kind: OriginKind,
    ) -> Json<'d> {
        let Some(position) = value else {
            self.reported.push(part.value.clone());
            return Json::Null;
        };
        self.add_origin(part, position, subject, kind);
        position.value.cloned().unwrap_or(Json::Null)
    }

    pub(super) fn add_origin(
        &mut self,
        part: &Part,
        position: &Position<'d>,
        subject: &str,
        kind: OriginKind,
    ) {
        self.origins.push(Origin {
            value: part.value.clone(),
            pointer: position.pointer.clone(),
            label: part.label.clone(),
            subject: subject.to_owned(),
            kind,
        });
    }
}

/// An index, as a number or as a string.
pub(super) fn index_of(at: &Position<'_>) -> Option<usize> {
    match at.value? {
        Json::String(text) => text.trim().parse().ok(),
        number => usize::try_from(number.as_i64()?).ok(),
    }
}
