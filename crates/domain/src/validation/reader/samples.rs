//! Samples: example values for placeholders, in all accepted notations.

use super::{
    Field, FieldType, Json, ParameterFormat, PlaceholderCount, Reader, Rule, SampleFormat,
    SampleRule, Segment, StringFormat, StringRule, TextViolation, pluralized, truncated,
};
use crate::document::byte_classes::ByteClasses;

/// The rule for a sample value.
const fn sample(multiline: bool) -> StringRule {
    StringRule { max: usize::MAX, whatsapp_max: None, multiline, format: StringFormat::Free }
}

impl<'d> Reader<'d> {
    /// Whether the samples of this field have the document's `parameter_format`.
    pub(super) fn has_sample_format(&self, field: &Field) -> bool {
        match &field.field_type {
            FieldType::Samples(SampleRule { format: SampleFormat::Named, .. }) => {
                self.parameter_format == ParameterFormat::Named
            }
            FieldType::Samples(_) => self.parameter_format == ParameterFormat::Positional,
            _ => true,
        }
    }

    /// Whether the document may be meant to have the other `parameter_format`: its placeholders are
    /// not valid in this one, and one of the `fields` has samples for the other one. Then it is not
    /// known which samples are missing.
    pub(super) fn may_have_other_format(&self, fields: &[Field], object: &Json<'_>) -> bool {
        let is_of_other_format =
            |field: &&Field| !self.has_sample_format(field) && object.get(field.name).is_some();
        !self.placeholder_count.is_exact() && fields.iter().any(|it| is_of_other_format(&it))
    }

    /// Reports samples that are not allowed, unless the text they belong to is missing or invalid.
    pub(super) fn report_unexpected_samples(&mut self) {
        let (message, hint) = if !self.placeholder_count.is_exact() {
            return;
        } else if self.placeholder_count == PlaceholderCount::NONE {
            ("belongs to a text without placeholders", "leave it out".to_owned())
        } else if self.parameter_format == ParameterFormat::Named {
            let hint = "leave it out: `parameter_format` is NAMED";
            ("does not match `parameter_format`", hint.to_owned())
        } else {
            let hint = "leave it out, or add `\"parameter_format\": \"NAMED\"`";
            ("does not match `parameter_format`", hint.to_owned())
        };
        self.report(TextViolation::new(Rule::SamplesNotAllowed, message).hint(hint));
    }

    /// Reads a single string, or a list with one string.
    pub(super) fn read_one_string(&mut self, rule: &StringRule, value: &'d Json<'d>) {
        self.write("[");
        match value {
            Json::String(_) => {
                self.read_text(rule, value);
            }
            Json::Array(items) => match items.as_slice() {
                [item] => {
                    self.at(Segment::Index(0), |reader| reader.read_text(rule, item));
                }
                items => {
                    let count = pluralized(Json::count(items), "item");
                    let message = format!("has {count}; exactly 1 is required");
                    let hint = "write a single string, or a list with one string";
                    self.report(TextViolation::new(Rule::SamplesCount, message).hint(hint));
                }
            },
            other => self.report_wrong_type("a string, or a list with one string", other),
        }
        self.write("]");
    }

    pub(super) fn read_samples(&mut self, rule: SampleRule, value: &'d Json<'d>) {
        let as_format = |format: SampleFormat| SampleRule { format, ..rule };
        let text_rule = &sample(rule.multiline);
        match (rule.format, value) {
            (SampleFormat::Nested, Json::Array(outer)) => {
                self.write("[");
                match outer.as_slice() {
                    [inner @ Json::Array(_)] => {
                        self.at(Segment::Index(0), |reader| {
                            reader.read_samples(as_format(SampleFormat::Flat), inner);
                        });
                    }
                    [other] => {
                        self.at(Segment::Index(0), |reader| {
                            reader.report_wrong_type("a list", other);
                        });
                    }
                    _ => {
                        let count = pluralized(Json::count(outer), "item");
                        let message = format!("has {count}; exactly 1 list is required");
                        let hint = "write `[[\"first sample\", \"second sample\"]]`";
                        self.report(TextViolation::new(Rule::SamplesCount, message).hint(hint));
                        self.read_surplus_lists(text_rule, outer);
                    }
                }
                self.write("]");
            }
            (SampleFormat::Single, Json::String(_)) => {
                self.read_text(text_rule, value);
            }
            (SampleFormat::LenientNested, Json::Array(items))
                if items.iter().any(|item| matches!(item, Json::Array(_))) =>
            {
                self.read_samples(as_format(SampleFormat::Nested), value);
            }
            (SampleFormat::LenientNested, Json::Array(items)) if items.len() > 1 => {
                let message =
                    format!("is a flat list with {}", pluralized(Json::count(items), "sample"));
                let hint = "put the samples into a list of their own: `[[\"first\", \"second\"]]`";
                self.report(TextViolation::new(Rule::SamplesFlat, message).hint(hint));
                self.read_sample_list(text_rule, items);
            }
            (SampleFormat::LenientNested, _) => {
                self.write("[");
                self.read_samples(as_format(SampleFormat::LenientFlat), value);
                self.write("]");
            }
            (SampleFormat::LenientFlat, Json::String(_)) => {
                self.read_single_sample(text_rule, value);
            }
            (SampleFormat::Named, Json::Array(values)) => {
                self.read_named_samples(text_rule, values);
            }
            (
                SampleFormat::Single | SampleFormat::Flat | SampleFormat::LenientFlat,
                Json::Array(values),
            ) => {
                self.read_sample_list(text_rule, values);
            }
            (SampleFormat::Single | SampleFormat::LenientFlat, other) => {
                self.report_wrong_type("a string or a list", other);
            }
            (_, other) => self.report_wrong_type("a list", other),
        }
    }

    /// Reads the values of several lists where one is expected, whichever is going to be kept.
    fn read_surplus_lists(&mut self, rule: &StringRule, lists: &'d [Json<'d>]) {
        for (index, list) in lists.iter().enumerate() {
            let Json::Array(values) = list else { continue };
            self.at(Segment::Index(index), |reader| {
                for (index, value) in Json::kept(values).iter().enumerate() {
                    reader.at(Segment::Index(index), |reader| reader.read_text(rule, value));
                }
            });
        }
    }

    fn read_sample_list(&mut self, rule: &StringRule, values: &'d [Json<'d>]) {
        let expected = self.check_sample_count(Json::count(values));
        self.write("[");
        for (index, value) in Json::kept(values).iter().take(expected).enumerate() {
            self.write_comma();
            self.at(Segment::Index(index), |reader| reader.read_text(rule, value));
        }
        self.write("]");
    }

    /// Checks the number of samples and returns how many of them to read. If some placeholders are
    /// invalid, reports only a number that does not fit after any correction.
    fn check_sample_count(&mut self, given: usize) -> usize {
        let (min, max) = match self.placeholder_count {
            PlaceholderCount::Unknown => return given,
            PlaceholderCount::Exact(count) => (count, count),
            PlaceholderCount::Between { min, max } => (min, max),
        };
        if !(min..=max).contains(&given) {
            let samples = pluralized(given, "sample");
            let placeholders = pluralized(max, "distinct placeholder");
            let range = if min == max { String::new() } else { format!("{min} to ") };
            let message = format!("has {samples} for {range}{placeholders}");
            let hint = if given < min {
                format!("add {}", pluralized(min - given, "sample"))
            } else {
                format!("remove {}", pluralized(given - max, "sample"))
            };
            self.report(TextViolation::new(Rule::SamplesCount, message).hint(hint));
        }
        given.min(max)
    }

    /// Reads a single sample and writes it as a list.
    fn read_single_sample(&mut self, rule: &StringRule, value: &'d Json<'d>) {
        self.check_sample_count(1);
        self.write("[");
        self.read_text(rule, value);
        self.write("]");
    }

    /// Reads samples that name their placeholder, in any order.
    fn read_named_samples(&mut self, rule: &StringRule, values: &'d [Json<'d>]) {
        const NAME: &str = "param_name";
        const ABOUT: &str = "the name of the placeholder";
        let expected = self.check_sample_count(Json::count(values));
        let mut names = std::mem::take(&mut self.placeholder_names);
        // The name of a sample may be that of a placeholder which is still to be corrected.
        let are_names_known = self.placeholder_count.is_exact();
        self.write("[");
        for (index, value) in Json::kept(values).iter().take(expected).enumerate() {
            self.write_comma();
            self.at(Segment::Index(index), |reader| {
                let Json::Object(_) = value else {
                    return reader.report_wrong_type("an object", value);
                };
                reader.write("{");
                match value.get(NAME) {
                    Some(Json::String(name)) => {
                        match names.iter().position(|other| other == name) {
                            Some(at) => {
                                names.swap_remove(at);
                            }
                            None if !are_names_known => {}
                            None => {
                                reader.at(Segment::Key(NAME), |reader| {
                                    reader.report_unknown_sample_name(name, &names);
                                });
                            }
                        }
                        reader.write_key(NAME);
                        reader.write_string(name, ByteClasses::of(name));
                    }
                    Some(other) => {
                        reader.at(Segment::Key(NAME), |reader| {
                            reader.report_wrong_type("a string", other);
                        });
                    }
                    None => reader.report_missing(NAME, ABOUT, value),
                }
                match value.get("example") {
                    Some(sample) => {
                        reader.write_key("example");
                        reader.at(Segment::Key("example"), |reader| reader.read_text(rule, sample));
                    }
                    None => reader.report_missing("example", "the sample value", value),
                }
                reader.write("}");
            });
        }
        self.write("]");
    }

    fn report_unknown_sample_name(&mut self, name: &str, names: &[&str]) {
        let message = format!(
            "`{}` is not a placeholder of the text, or already has a sample",
            truncated(name)
        );
        let bare = name.trim_matches(['{', '}', ' ']);
        let hint = if bare != name && names.contains(&bare) {
            format!("write it without braces: `{}`", truncated(bare))
        } else {
            "name each placeholder of the text once".to_owned()
        };
        self.report(TextViolation::new(Rule::SampleName, message).hint(hint));
    }
}
