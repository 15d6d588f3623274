//! Texts with numbered or named placeholders.

use std::borrow::Cow;

use crate::{
    document::Json,
    render::{
        Filled, array_field, fill,
        message::Parameter,
        str_field, text_field, value,
        value_reader::{ExpectedValue, ValueReader},
    },
    rulebook::ParameterFormat,
    validation::placeholders,
    violation::{TextViolation, ViolationCollector},
};

/// The text of a component, which may have placeholders.
pub(super) struct TextTemplate<'t, 'a> {
    pub(super) component: &'t Json<'a>,
    /// The name of the component in messages, and of the member with its values.
    pub(super) name: &'static str,
    pub(super) format: ParameterFormat,
    pub(super) max: LengthLimit,
}

/// A length limit in characters.
#[derive(Clone, Copy)]
pub(super) enum LengthLimit {
    /// Limits the text including its values.
    FilledText(usize),
    /// Limits the values in total.
    Values(usize),
}

impl<'a> TextTemplate<'_, 'a> {
    /// The text filled with its values; `None` if the component has no text.
    pub(super) fn fill(
        &self,
        values: &ValueReader<'a, '_>,
        violations: &mut ViolationCollector,
    ) -> Option<Filled<'a>> {
        let text = text_field(self.component, "text")?;
        let names = match self.format {
            ParameterFormat::Positional => Vec::new(),
            ParameterFormat::Named => placeholders::names(&text),
        };
        let count = match self.format {
            ParameterFormat::Positional => fill::placeholder_count(&text),
            ParameterFormat::Named => names.len(),
        };
        if count == 0 {
            let message = "this template does not take values here";
            values.expect_nothing(message, violations);
            return Some(Filled { text: Some(text), parameters: Vec::new() });
        }
        let strings = match self.format {
            ParameterFormat::Positional => self.numbered_strings(count, values, violations),
            ParameterFormat::Named => self.named_strings(&names, values, violations),
        };
        let Some(strings) = strings else { return Some(Filled::default()) };
        let (max, fixed) = match self.max {
            LengthLimit::FilledText(max) => (max, 0),
            LengthLimit::Values(max) => (max, fill::fixed_length(&text, &names)),
        };
        let filled = fill::fill_named(&text, &names, &strings, max + fixed);
        let name = |index| names.get(index).map(|name: &&str| (*name).to_owned());
        let parameter = |(index, text)| Parameter::Text { parameter_name: name(index), text };
        Some(match filled {
            Ok(filled) => Filled {
                text: Some(Cow::Owned(filled)),
                parameters: strings.into_iter().enumerate().map(parameter).collect(),
            },
            Err(length) => {
                values.report(violations, || match self.max {
                    LengthLimit::FilledText(_) => value::filled_text_too_long(length, max),
                    LengthLimit::Values(_) => value::values_too_long(length - fixed, max),
                });
                Filled::default()
            }
        })
    }

    fn numbered_strings(
        &self,
        count: usize,
        values: &ValueReader<'a, '_>,
        violations: &mut ViolationCollector,
    ) -> Option<Vec<&'a str>> {
        let hint = "the placeholders are numbered: write their values in a list, `[\"…\"]`";
        if !values.expect_array(hint, violations) {
            return None;
        }
        let expected =
            |index: usize| self.expected(&(index + 1).to_string(), self.numbered_sample(index));
        values.strings(count, expected, check, violations)
    }

    fn named_strings(
        &self,
        names: &[&str],
        values: &ValueReader<'a, '_>,
        violations: &mut ViolationCollector,
    ) -> Option<Vec<&'a str>> {
        let hint = "the placeholders are named: write an object, `{\"first_name\": \"…\"}`";
        if !values.expect_object(hint, violations) {
            return None;
        }
        values.reject_unknown_members(names, violations);
        let string = |name: &&str| {
            let expected = || self.expected(name, self.named_sample(name));
            values.field(name).required_string(expected, check, violations)
        };
        let strings: Vec<Option<&str>> = names.iter().map(string).collect();
        strings.into_iter().collect()
    }

    fn expected<'s>(&self, placeholder: &str, sample: Option<&'s str>) -> ExpectedValue<'s> {
        let description = format!("the value of `{{{{{placeholder}}}}}` in the {}", self.name);
        ExpectedValue { description, sample }
    }

    fn numbered_sample(&self, index: usize) -> Option<&str> {
        let samples = array_field(self.component.get("example"), &format!("{}_text", self.name));
        let samples = match samples {
            [Json::Array(samples)] => samples,
            samples => samples,
        };
        samples.get(index)?.as_str()
    }

    fn named_sample(&self, name: &str) -> Option<&str> {
        let key = format!("{}_text_named_params", self.name);
        let samples = array_field(self.component.get("example"), &key);
        let sample = samples.iter().find(|it| str_field(it, "param_name") == Some(name))?;
        str_field(sample, "example")
    }
}

/// Checks a value of any length; the limit applies to the text.
fn check(value: &str) -> Vec<TextViolation> {
    value::check_line(value, usize::MAX)
}
