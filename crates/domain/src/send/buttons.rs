//! Components of type `button`: which button each of them is for, and its value.

use super::{
    expected::{BUTTON_TYPES, ExpectedButton},
    parameters::{KnownMembers, UNCHANGED, new_member},
    position::Position,
    refusal::RefusalCode,
    translation::OriginKind,
    translator::{Part, Scope, Translator, index_of},
};
use crate::{
    document::{Json, Member, pointer::Segment},
    violation::truncated,
};

const FLOW: KnownMembers =
    KnownMembers(&[("flow_token", UNCHANGED), ("flow_action_data", UNCHANGED)]);
const THUMBNAIL: (&str, KnownMembers) = ("thumbnail_product_retailer_id", UNCHANGED);
const CATALOG: KnownMembers = KnownMembers(&[THUMBNAIL]);
const PRODUCTS: KnownMembers = KnownMembers(&[THUMBNAIL, ("sections", SECTION)]);
const SECTION: KnownMembers = KnownMembers(&[("title", UNCHANGED), ("product_items", PRODUCT)]);
const PRODUCT: KnownMembers = KnownMembers(&[("product_retailer_id", UNCHANGED)]);

impl<'d> Translator<'d> {
    /// The values of the buttons by index.
    pub(super) fn buttons(
        &mut self,
        expected: &[ExpectedButton<'_>],
        components: &[Position<'d>],
        part: &Part,
        scope: &Scope<'d>,
    ) -> Json<'d> {
        let mut members = Vec::new();
        let mut is_given = vec![false; expected.len()];
        // Sub types of components without a valid index, which are for one of the other buttons.
        let mut unplaced = Vec::new();
        for component in components {
            let Some(sub_type) = self.sub_type(part, component) else { continue };
            let Some(index) = self.button_index(part, component, sub_type, expected, &is_given)
            else {
                unplaced.push(sub_type);
                continue;
            };
            is_given[index] = true;
            let inner = part.inner(Segment::Index(index));
            let inner = Part { label: format!("{}: button {index}", part.label), ..inner };
            let value = self.button(&expected[index], index, &inner, part, component, sub_type);
            if !matches!(value, Json::Null) {
                members.push(new_member(index.to_string(), value));
            }
        }
        for (index, button) in expected.iter().enumerate().filter(|(index, _)| !is_given[*index]) {
            let is_required = button.takes_parameter && button.button_type.is_required;
            let is_unplaced = unplaced.iter().any(|it| button.button_type.sub_type == Some(*it));
            if is_required {
                self.reported.push(part.inner(Segment::Index(index)).value);
            }
            if is_required && !is_unplaced {
                self.findings.add_at_end(&scope.components, RefusalCode::ParameterMissing, || {
                    missing_message(part, index, button)
                });
            }
        }
        if members.is_empty() { Json::Null } else { Json::Object(members) }
    }

    /// The `sub_type` of a component, as it is in the table.
    fn sub_type(&mut self, part: &Part, component: &Position<'d>) -> Option<&'static str> {
        let at = component.field("sub_type");
        if !self.is_present(part, &at) {
            return None;
        }
        let found = at.as_str().unwrap_or_default();
        let mut known = BUTTON_TYPES.iter().filter_map(|it| it.sub_type);
        let sub_type = known.find(|it| it.eq_ignore_ascii_case(found));
        if sub_type.is_none() {
            let message = format!("sub_type `{}` is unknown", truncated(found));
            self.report_invalid(part, &at, &message);
        }
        sub_type
    }

    /// The index of the button that a component is for, which must have no other component.
    fn button_index(
        &mut self,
        part: &Part,
        component: &Position<'d>,
        sub_type: &str,
        expected: &[ExpectedButton<'_>],
        is_given: &[bool],
    ) -> Option<usize> {
        let at = component.field("index");
        if at.value.is_none() && sub_type == "voice_call" {
            // Meta's samples have no index here: a message has only one such button.
            let is_free = |index: &usize| {
                !is_given[*index] && expected[*index].button_type.sub_type == Some(sub_type)
            };
            let index = (0..expected.len()).find(is_free);
            if index.is_none() {
                self.findings.add(component, RefusalCode::ParameterFormat, || {
                    format!("{}: the template has no button of type VoiceCall", part.label)
                });
            }
            return index;
        }
        if !self.is_present(part, &at) {
            return None;
        }
        let Some(index) = index_of(&at) else {
            self.report_invalid(part, &at, "index must be a number from 0, or a string with one");
            return None;
        };
        match is_given.get(index) {
            Some(false) => return Some(index),
            Some(true) => {
                let message = format!("the button at index {index} has more than one component");
                self.report_invalid(part, &at, &message);
            }
            None => self.findings.add(&at, RefusalCode::ParameterFormat, || {
                let (label, count) = (&part.label, expected.len());
                format!(
                    "{label}: the template has no button at index {index}, only {count} in total"
                )
            }),
        }
        None
    }

    /// The value of a button.
    fn button(
        &mut self,
        expected: &ExpectedButton<'_>,
        index: usize,
        inner: &Part,
        part: &Part,
        component: &Position<'d>,
        sub_type: &'static str,
    ) -> Json<'d> {
        let name = expected.button_type.display_name;
        let reported = inner.value.clone();
        if !expected.takes_parameter {
            let reason = format!(
                "Button at index {index} is of type {name} and does not support parameters"
            );
            self.expect_no_parameters(part, component, &reason);
            return Json::Null;
        }
        if expected.button_type.sub_type != Some(sub_type) {
            self.reported.push(reported);
            self.findings.add(&component.field("sub_type"), RefusalCode::ParameterFormat, || {
                format!("{}: Button at index {index} is of type {name}, not {sub_type}", part.label)
            });
            return Json::Null;
        }
        let parameters = self.parameters(part, component);
        if sub_type == "voice_call" {
            return self.call(inner, &parameters);
        }
        let Some(parameter) = parameters.items().next() else {
            if expected.button_type.is_required {
                self.reported.push(reported);
                self.findings.add(&parameters, RefusalCode::ParameterMissing, || {
                    missing_message(part, index, expected)
                });
            }
            return Json::Null;
        };
        self.expect_one(inner, &parameters);
        self.button_value(expected, inner, &parameter, sub_type)
    }

    fn button_value(
        &mut self,
        expected: &ExpectedButton<'_>,
        part: &Part,
        parameter: &Position<'d>,
        sub_type: &str,
    ) -> Json<'d> {
        match sub_type {
            "url" => {
                self.check_url_parameter(expected, part, parameter);
                let suffix = self.typed_value(part, parameter, "text");
                if expected.is_one_time_code() {
                    // The renderer takes the code once, as the value of the body.
                    self.button_code = suffix;
                    return Json::Null;
                }
                let suffix = suffix.filter(|it| self.is_one_line(part, it));
                let kind = OriginKind::FilledText;
                self.add_value(part, suffix.as_ref(), "the end of the URL", kind)
            }
            "copy_code" => {
                let code = self.typed_value(part, parameter, "coupon_code");
                self.add_value(part, code.as_ref(), "the coupon code", OriginKind::Code)
            }
            "quick_reply" => {
                let payload = self.typed_value(part, parameter, "payload");
                self.add_value(part, payload.as_ref(), "the payload", OriginKind::Other)
            }
            "order_details" => {
                let action = self.typed_object(part, parameter, "action");
                let details = action.map(|it| it.field("order_details"));
                let details = details.filter(|it| self.is_present(part, it));
                self.add_value(part, details.as_ref(), "order_details", OriginKind::Other)
            }
            _ => {
                let known = match sub_type {
                    "flow" => FLOW,
                    "catalog" => CATALOG,
                    _ => PRODUCTS,
                };
                let action = self.typed_object(part, parameter, "action");
                let value = self.add_value(part, action.as_ref(), "the action", OriginKind::Other);
                known.copy(&value)
            }
        }
    }

    /// Whether the end of a URL has no line breaks; reports one that has. The renderer reports them as
    /// white space of the URL.
    fn is_one_line(&mut self, part: &Part, suffix: &Position<'d>) -> bool {
        let has_break = suffix.as_str().is_some_and(|it| it.contains(['\n', '\r', '\t']));
        if has_break {
            self.findings.add(suffix, RefusalCode::ParameterText, || {
                format!("{}: the end of the URL contains a line break or a tab", part.label)
            });
        }
        !has_break
    }

    /// A parameter of a URL may have a name; then it is that of the placeholder.
    fn check_url_parameter(
        &mut self,
        expected: &ExpectedButton<'_>,
        part: &Part,
        parameter: &Position<'d>,
    ) {
        let at = parameter.field("parameter_name");
        let (Some(found), Some(name)) = (at.as_str(), expected.url_parameter) else { return };
        if found != name {
            self.findings.add(&at, RefusalCode::ParameterFormat, || {
                let found = truncated(found);
                format!("{}: the URL has the parameter `{name}`, not `{found}`", part.label)
            });
        }
    }

    /// The parameters of a call: how long the recipient may call, and a payload. Both are optional.
    fn call(&mut self, part: &Part, parameters: &Position<'d>) -> Json<'d> {
        let mut members = Vec::new();
        for parameter in parameters.items() {
            let found = parameter.field("type").as_str().unwrap_or_default().to_ascii_lowercase();
            let name = if found == "payload" { "payload" } else { "ttl_minutes" };
            let Some(value) = self.typed_value(part, &parameter, name) else { continue };
            if members.iter().any(|it: &Member<'_>| it.key == name) {
                let message = format!("{name} is given more than once");
                self.report_invalid(part, &parameter, &message);
                continue;
            }
            let inner = part.inner(Segment::Key(name));
            let value = self.add_value(&inner, Some(&value), name, OriginKind::Other);
            members.push(new_member(name, value));
        }
        Json::Object(members)
    }
}

/// Meta's words.
fn missing_message(part: &Part, index: usize, button: &ExpectedButton<'_>) -> String {
    let (label, name) = (&part.label, button.button_type.display_name);
    format!("{label}: Button at index {index} of type {name} requires a parameter")
}
