//! Parameters of components: texts with numbered or named placeholders, and single values.

use std::borrow::Cow;

use super::{
    expected::Placeholders,
    position::Position,
    refusal::RefusalCode,
    translation::OriginKind,
    translator::{Part, Scope, Translator},
};
use crate::{
    document::{Json, Member, pointer::Segment, suggest},
    violation::truncated,
};

/// The number of letters of a currency's code.
const CURRENCY_LETTERS: usize = 3;

/// The members of an object that the renderer knows. Other members of a message are ignored.
pub(super) struct KnownMembers(pub(super) &'static [(&'static str, KnownMembers)]);

/// A value that is passed on unchanged.
pub(super) const UNCHANGED: KnownMembers = KnownMembers(&[]);

impl KnownMembers {
    /// The value without unknown members, at every level.
    pub(super) fn copy<'d>(&self, value: &Json<'d>) -> Json<'d> {
        match value {
            Json::Object(_) if !self.0.is_empty() => {
                let copy = |(key, inner): &(&'static str, Self)| {
                    Some(new_member(*key, inner.copy(value.get(key)?)))
                };
                Json::Object(self.0.iter().filter_map(copy).collect())
            }
            Json::Array(items) => Json::Array(items.iter().map(|it| self.copy(it)).collect()),
            other => other.clone(),
        }
    }
}

pub(super) fn new_member<'d>(key: impl Into<Cow<'d, str>>, value: Json<'d>) -> Member<'d> {
    Member { key: key.into(), value, repeated: false }
}

impl<'d> Translator<'d> {
    /// The list of parameters of a component; absent if it is not a list, which is reported.
    pub(super) fn parameters(&mut self, part: &Part, component: &Position<'d>) -> Position<'d> {
        let mut parameters = component.field("parameters");
        if !matches!(parameters.value, None | Some(Json::Array(_))) {
            self.findings.add(&parameters, RefusalCode::ParameterInvalid, || {
                format!("{}: parameters must be a list, not {}", part.label, parameters.kind())
            });
            parameters.value = None;
        }
        parameters
    }

    /// Reports parameters of a component that does not take any.
    pub(super) fn expect_no_parameters(
        &mut self,
        part: &Part,
        component: &Position<'d>,
        reason: &str,
    ) {
        let parameters = self.parameters(part, component);
        if parameters.count() > 0 {
            self.findings.add(&parameters, RefusalCode::ParameterFormat, || {
                format!("{}: {reason}", part.label)
            });
        }
    }

    /// The values of a text: one parameter for each placeholder.
    pub(super) fn texts(
        &mut self,
        scope: &Scope<'d>,
        part: &Part,
        placeholders: &Placeholders<'_>,
        component: Option<&Position<'d>>,
        kind: OriginKind,
    ) -> Json<'d> {
        let Some(component) = component else {
            if placeholders.count() > 0 {
                self.reported.push(part.value.clone());
                self.findings.add_at_end(&scope.components, RefusalCode::ParameterCount, || {
                    count_message(part, 0, placeholders, &[])
                });
            }
            return Json::Null;
        };
        let parameters = self.parameters(part, component);
        self.add_origin(part, &parameters, "filling it", OriginKind::FilledText);
        let (values, given) = match placeholders {
            Placeholders::Numbered(count) => self.numbered_texts(part, *count, &parameters, kind),
            Placeholders::Named(names) => self.named_texts(part, names, &parameters),
        };
        if parameters.count() != placeholders.count() {
            self.findings.add(&parameters, RefusalCode::ParameterCount, || {
                count_message(part, parameters.count(), placeholders, &given)
            });
        }
        // Each of those that are missing is reported: by the count, or by its wrong name.
        if given.len() < placeholders.count() {
            self.reported.push(part.value.clone());
        }
        values
    }

    /// The values of numbered placeholders, and the placeholders that have one.
    fn numbered_texts(
        &mut self,
        part: &Part,
        count: usize,
        parameters: &Position<'d>,
        kind: OriginKind,
    ) -> (Json<'d>, Vec<Cow<'d, str>>) {
        let (mut values, mut given) = (Vec::new(), Vec::new());
        for (index, parameter) in parameters.items().take(count).enumerate() {
            let name = (index + 1).to_string();
            let inner = part.inner(Segment::Index(index));
            values.push(self.text(&inner, &name, &parameter, kind));
            given.push(Cow::Owned(name));
        }
        (Json::Array(values), given)
    }

    /// The values of named placeholders, and the placeholders that have one.
    fn named_texts(
        &mut self,
        part: &Part,
        names: &[&str],
        parameters: &Position<'d>,
    ) -> (Json<'d>, Vec<Cow<'d, str>>) {
        let (mut members, mut given) = (Vec::new(), Vec::new());
        if names.is_empty() {
            return (Json::Object(members), given);
        }
        for parameter in parameters.items() {
            let at = parameter.field("parameter_name");
            let name = at.as_str();
            if let Some(name) =
                name.filter(|it| names.contains(it) && !given.iter().any(|done| done == it))
            {
                let inner = part.inner(Segment::Key(name));
                let value = self.text(&inner, name, &parameter, OriginKind::FilledText);
                members.push(new_member(name, value));
                given.push(Cow::Borrowed(name));
                continue;
            }
            self.findings.add(&at, RefusalCode::ParameterFormat, || {
                let label = &part.label;
                match name {
                    None => format!(
                        "{label}: parameter_name is missing; the template has the named parameters {}",
                        placeholder_list(names.iter().copied())
                    ),
                    Some(name) if names.contains(&name) => {
                        format!("{label}: {{{{{name}}}}} is given more than once")
                    }
                    Some(name) => {
                        let nearest = suggest::nearest(name, names.iter().copied());
                        let hint = match nearest {
                            Some(nearest) => format!("did you mean `{nearest}`?"),
                            None => placeholder_list(names.iter().copied()),
                        };
                        let name = truncated(name);
                        format!("{label}: the template has no parameter `{name}`: {hint}")
                    }
                }
            });
        }
        (Json::Object(members), given)
    }

    /// The text that a parameter gives for a placeholder. WhatsApp shows a currency or a date as its
    /// fallback value.
    fn text(
        &mut self,
        part: &Part,
        placeholder: &str,
        parameter: &Position<'d>,
        kind: OriginKind,
    ) -> Json<'d> {
        let parameter_type = parameter.field("type").as_str().map(str::to_ascii_lowercase);
        let value = match parameter_type.as_deref() {
            Some(it @ ("currency" | "date_time")) if kind == OriginKind::FilledText => {
                self.fallback_value(part, parameter, it)
            }
            _ => self.typed_value(part, parameter, "text"),
        };
        self.add_value(part, value.as_ref(), &format!("{{{{{placeholder}}}}}"), kind)
    }

    fn fallback_value(
        &mut self,
        part: &Part,
        parameter: &Position<'d>,
        parameter_type: &str,
    ) -> Option<Position<'d>> {
        let object = self.typed_object(part, parameter, parameter_type)?;
        if parameter_type == "currency" {
            let (code, amount) = (object.field("code"), object.field("amount_1000"));
            let is_code = |it: &str| {
                it.len() == CURRENCY_LETTERS && it.bytes().all(|it| it.is_ascii_alphabetic())
            };
            if self.is_present(part, &code) && !code.as_str().is_some_and(is_code) {
                self.report_invalid(part, &code, "code must be an ISO 4217 code, such as `USD`");
            }
            if self.is_present(part, &amount) && amount.value.and_then(Json::as_i64).is_none() {
                let message = "amount_1000 must be a whole number: the amount times 1000";
                self.report_invalid(part, &amount, message);
            }
        }
        let value = object.field("fallback_value");
        self.is_present(part, &value).then_some(value)
    }

    /// The object of a parameter that must have this type.
    pub(super) fn typed_object(
        &mut self,
        part: &Part,
        parameter: &Position<'d>,
        expected: &str,
    ) -> Option<Position<'d>> {
        let value = self.typed_value(part, parameter, expected)?;
        if !matches!(value.value, Some(Json::Object(_))) {
            let message = format!("{expected} must be an object, not {}", value.kind());
            self.report_invalid(part, &value, &message);
            return None;
        }
        Some(value)
    }

    /// The value of a parameter that must have this type; it is a member with the same name.
    pub(super) fn typed_value(
        &mut self,
        part: &Part,
        parameter: &Position<'d>,
        expected: &str,
    ) -> Option<Position<'d>> {
        if !matches!(parameter.value, Some(Json::Object(_))) {
            let message = format!("a parameter must be an object, not {}", parameter.kind());
            self.report_invalid(part, parameter, &message);
            return None;
        }
        let at = parameter.field("type");
        if !self.is_present(part, &at) {
            return None;
        }
        let Some(found) = at.as_str() else {
            let message = format!("type must be a string, not {}", at.kind());
            self.report_invalid(part, &at, &message);
            return None;
        };
        if !found.eq_ignore_ascii_case(expected) {
            self.report_format(part, &at, expected, found);
            return None;
        }
        let value = parameter.field(expected);
        self.is_present(part, &value).then_some(value)
    }

    /// Reports a parameter of another type than the template takes.
    pub(super) fn report_format(
        &mut self,
        part: &Part,
        at: &Position<'_>,
        expected: &str,
        received: &str,
    ) {
        self.findings.add(at, RefusalCode::ParameterFormat, || {
            let (expected, received) = (expected.to_uppercase(), received.to_uppercase());
            let received = truncated(&received);
            format!("{}: Format mismatch, expected {expected}, received {received}", part.label)
        });
    }

    pub(super) fn report_invalid(&mut self, part: &Part, at: &Position<'_>, message: &str) {
        self.findings
            .add(at, RefusalCode::ParameterInvalid, || format!("{}: {message}", part.label));
    }

    /// Whether a value is present; reports an absent one.
    pub(super) fn is_present(&mut self, part: &Part, at: &Position<'_>) -> bool {
        if at.value.is_none() {
            self.findings.add(at, RefusalCode::ParameterMissing, || {
                format!("{}: {} is missing", part.label, at.name())
            });
        }
        at.value.is_some()
    }
}

/// Begins with Meta's words, and names the missing parameters.
fn count_message(
    part: &Part,
    count: usize,
    placeholders: &Placeholders<'_>,
    given: &[Cow<'_, str>],
) -> String {
    let expected = placeholders.count();
    let message = format!(
        "{}: number of localizable_params ({count}) does not match the expected number of params ({expected})",
        part.label
    );
    let missing = placeholders.names().into_iter().filter(|it| !given.contains(it));
    match placeholder_list(missing) {
        missing if missing.is_empty() => message,
        missing => format!("{message}; missing: {missing}"),
    }
}

/// `{{a}}, {{b}}`.
fn placeholder_list(names: impl Iterator<Item = impl AsRef<str>>) -> String {
    names.map(|it| format!("{{{{{}}}}}", it.as_ref())).collect::<Vec<_>>().join(", ")
}
