//! Texts: a value for each placeholder, by number or by name.

use std::borrow::Cow;

use super::spot::Spot;
use crate::{
    document::Json,
    render::{Filled, fill, intake::Need, list, message::Parameter, text, value, word},
    rulebook::ParameterFormat,
    validation::placeholders,
    violation::ViolationCollector,
};

/// A text that may hold placeholders.
pub(super) struct Words<'t, 'a> {
    pub(super) component: &'t Json<'a>,
    /// What people call the part, and the member that its values stand in.
    pub(super) part: &'static str,
    pub(super) format: ParameterFormat,
    /// How long it may be, once it is filled.
    pub(super) max: Limit,
}

/// How long a text may be.
#[derive(Clone, Copy)]
pub(super) enum Limit {
    /// So many characters with its values.
    Filled(usize),
    /// So many characters of values.
    Values(usize),
}

impl<'a> Words<'_, 'a> {
    /// The text with its values in place; nothing when it is not there at all.
    pub(super) fn fill(
        &self,
        spot: &Spot<'a, '_>,
        report: &mut ViolationCollector,
    ) -> Option<Filled<'a>> {
        let text = text(self.component, "text")?;
        let names = match self.format {
            ParameterFormat::Positional => Vec::new(),
            ParameterFormat::Named => placeholders::names(&text),
        };
        let count = match self.format {
            ParameterFormat::Positional => fill::placeholders(&text),
            ParameterFormat::Named => names.len(),
        };
        if count == 0 {
            spot.nothing(&format!("the {} of this template takes no values", self.part), report);
            return Some(Filled { text: Some(text), parameters: Vec::new() });
        }
        let values = match self.format {
            ParameterFormat::Positional => self.by_number(count, spot, report),
            ParameterFormat::Named => self.by_name(&names, spot, report),
        };
        let Some(values) = values else { return Some(Filled::default()) };
        let (max, fixed) = match self.max {
            Limit::Filled(max) => (max, 0),
            Limit::Values(max) => (max, fill::fixed(&text, &names)),
        };
        let filled = fill::fill_named(&text, &names, &values, max + fixed);
        let name = |index| names.get(index).map(|name: &&str| (*name).to_owned());
        let parameter = |(index, text)| Parameter::Text { parameter_name: name(index), text };
        Some(match filled {
            Ok(filled) => Filled {
                text: Some(Cow::Owned(filled)),
                parameters: values.into_iter().enumerate().map(parameter).collect(),
            },
            Err(length) => {
                let fault = match self.max {
                    Limit::Filled(_) => value::too_long(length, max),
                    Limit::Values(_) => value::too_much(length - fixed, max),
                };
                spot.faults(vec![fault], report);
                Filled::default()
            }
        })
    }

    fn by_number(
        &self,
        count: usize,
        spot: &Spot<'a, '_>,
        report: &mut ViolationCollector,
    ) -> Option<Vec<&'a str>> {
        let hint = "the placeholders have numbers: write their values in a list, `[\"…\"]`";
        if !spot.is_list(hint, report) {
            return None;
        }
        let one = |index: usize| {
            let need = || self.need(&(index + 1).to_string(), self.numbered_sample(index));
            spot.item(index).string(need, plain, report)
        };
        let values: Vec<Option<&str>> = (0..count).map(one).collect();
        spot.at_most(count, report);
        values.into_iter().collect()
    }

    fn by_name(
        &self,
        names: &[&str],
        spot: &Spot<'a, '_>,
        report: &mut ViolationCollector,
    ) -> Option<Vec<&'a str>> {
        let hint = "the placeholders have names: write an object, `{\"first_name\": \"…\"}`";
        if !spot.is_object(hint, report) {
            return None;
        }
        spot.only(names, report);
        let one = |name: &&str| {
            let need = || self.need(name, self.named_sample(name));
            spot.key(name).string(need, plain, report)
        };
        let values: Vec<Option<&str>> = names.iter().map(one).collect();
        values.into_iter().collect()
    }

    fn need<'s>(&self, name: &str, sample: Option<&'s str>) -> Need<'s> {
        Need { what: format!("the value of `{{{{{name}}}}}` in the {}", self.part), sample }
    }

    fn numbered_sample(&self, index: usize) -> Option<&str> {
        let samples = list(self.component.get("example"), &format!("{}_text", self.part));
        let samples = match samples {
            [Json::Array(samples)] => samples,
            samples => samples,
        };
        samples.get(index)?.as_str()
    }

    fn named_sample(&self, name: &str) -> Option<&str> {
        let key = format!("{}_text_named_params", self.part);
        let samples = list(self.component.get("example"), &key);
        let sample = samples.iter().find(|it| word(it, "param_name") == Some(name))?;
        word(sample, "example")
    }
}

/// A value of any length: the text says how long it may be.
fn plain(value: &str) -> Vec<crate::violation::TextViolation> {
    value::on_one_line(value, usize::MAX)
}
