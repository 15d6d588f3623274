//! Samples: values that show what placeholders stand for, in the spellings that people use.

use super::{
    Field, FieldType, Json, ParameterFormat, Reader, Rule, SampleFormat, Step, StringFormat,
    StringRule, TextViolation, shortened,
};

/// The form of a sample value.
const SAMPLE: StringRule = StringRule {
    max: usize::MAX,
    whatsapp_max: None,
    multiline: false,
    format: StringFormat::Free,
};

impl<'d> Reader<'d> {
    /// Whether samples in this field are those of the document's format.
    pub(super) fn asks_for(&self, field: &Field) -> bool {
        match &field.field_type {
            FieldType::Samples(SampleFormat::Named) => self.format == ParameterFormat::Named,
            FieldType::Samples(_) => self.format == ParameterFormat::Positional,
            _ => true,
        }
    }

    /// Samples where none belong, unless the text that they are for could not be read.
    pub(super) fn samples_of_nothing(&mut self) {
        let Some(count) = self.placeholders else { return };
        let (message, hint) = if count == 0 {
            ("stands beside a text without placeholders", "leave it out".to_owned())
        } else if self.format == ParameterFormat::Named {
            ("is of the other format", "leave it out: `parameter_format` is NAMED".to_owned())
        } else {
            let hint = "leave it out, or add `\"parameter_format\": \"NAMED\"`";
            ("is of the other format", hint.to_owned())
        };
        self.fault(TextViolation::new(Rule::SamplesNotAllowed, message).hint(hint));
    }

    /// A string by itself, or in a list.
    pub(super) fn one(&mut self, rule: &StringRule, value: &'d Json<'d>) {
        self.write("[");
        match value {
            Json::String(_) => {
                self.text(rule, value);
            }
            Json::Array(items) => match items.as_slice() {
                [item] => {
                    self.at(Step::Index(0), |reader| reader.text(rule, item));
                }
                items => {
                    let message = format!("holds {} strings; exactly one is expected", items.len());
                    let hint = "write one string, by itself or in a list";
                    self.fault(TextViolation::new(Rule::SamplesCount, message).hint(hint));
                }
            },
            other => self.wrong_type("a string, or a list with one", other),
        }
        self.write("]");
    }

    pub(super) fn samples(&mut self, samples: SampleFormat, value: &'d Json<'d>) {
        match (samples, value) {
            (SampleFormat::Nested, Json::Array(outer)) => {
                self.write("[");
                match outer.as_slice() {
                    [inner @ Json::Array(_)] => {
                        self.at(Step::Index(0), |reader| reader.samples(SampleFormat::Flat, inner));
                    }
                    [other] => self.at(Step::Index(0), |reader| reader.wrong_type("a list", other)),
                    _ => {
                        let message =
                            format!("holds {} lists; exactly one is expected", outer.len());
                        let hint = "write `[[\"first sample\", \"second sample\"]]`";
                        self.fault(TextViolation::new(Rule::SamplesCount, message).hint(hint));
                    }
                }
                self.write("]");
            }
            (SampleFormat::Single, Json::String(_)) => {
                self.text(&SAMPLE, value);
            }
            (SampleFormat::LenientNested, Json::Array(items))
                if items.iter().any(|it| it.as_str().is_none()) =>
            {
                self.samples(SampleFormat::Nested, value);
            }
            (SampleFormat::LenientNested, _) => {
                self.write("[");
                self.samples(SampleFormat::LenientFlat, value);
                self.write("]");
            }
            (SampleFormat::LenientFlat, Json::String(_)) => self.single(value),
            (SampleFormat::Named, Json::Array(values)) => self.named(values),
            (
                SampleFormat::Single | SampleFormat::Flat | SampleFormat::LenientFlat,
                Json::Array(values),
            ) => {
                self.sample_list(values);
            }
            (SampleFormat::Single | SampleFormat::LenientFlat, other) => {
                self.wrong_type("a string or a list", other);
            }
            (_, other) => self.wrong_type("a list", other),
        }
    }

    fn sample_list(&mut self, values: &'d [Json<'d>]) {
        let wanted = self.counted(values.len());
        self.write("[");
        for (index, value) in values.iter().take(wanted).enumerate() {
            self.comma();
            self.at(Step::Index(index), |reader| reader.text(&SAMPLE, value));
        }
        self.write("]");
    }

    /// How many samples are wanted; another number is a fault.
    fn counted(&mut self, given: usize) -> usize {
        let wanted = self.placeholders.unwrap_or_default();
        if given != wanted {
            let message = format!("holds {given} samples for {wanted} different placeholders");
            let hint = if given < wanted {
                format!("add {}", wanted - given)
            } else {
                format!("remove {}", given - wanted)
            };
            self.fault(TextViolation::new(Rule::SamplesCount, message).hint(hint));
        }
        wanted
    }

    /// One sample by itself, kept as a list.
    fn single(&mut self, value: &'d Json<'d>) {
        self.counted(1);
        self.write("[");
        self.text(&SAMPLE, value);
        self.write("]");
    }

    /// Samples that name what they are for, in any order.
    fn named(&mut self, values: &'d [Json<'d>]) {
        const NAME: &str = "param_name";
        const ABOUT: &str = "the name of the placeholder";
        let wanted = self.counted(values.len());
        let mut names = std::mem::take(&mut self.names);
        self.write("[");
        for (index, value) in values.iter().take(wanted).enumerate() {
            self.comma();
            self.at(Step::Index(index), |reader| {
                let Json::Object(_) = value else { return reader.wrong_type("an object", value) };
                reader.write("{");
                match value.get(NAME) {
                    Some(Json::String(name)) => {
                        match names.iter().position(|it| it == name) {
                            Some(at) => {
                                names.swap_remove(at);
                            }
                            None => {
                                reader.at(Step::Key(NAME), |it| it.no_such_name(name, &names));
                            }
                        }
                        reader.write_key(NAME);
                        reader.write_string(name);
                    }
                    Some(other) => {
                        reader.at(Step::Key(NAME), |it| it.wrong_type("a string", other));
                    }
                    None => reader.missing(NAME, ABOUT, value),
                }
                match value.get("example") {
                    Some(sample) => {
                        reader.write_key("example");
                        reader.at(Step::Key("example"), |it| it.text(&SAMPLE, sample));
                    }
                    None => reader.missing("example", "the sample value", value),
                }
                reader.write("}");
            });
        }
        self.write("]");
    }

    fn no_such_name(&mut self, name: &str, names: &[&str]) {
        let message =
            format!("`{}` is no placeholder of the text, or has its sample", shortened(name));
        let bare = name.trim_matches(['{', '}', ' ']);
        let hint = if bare != name && names.contains(&bare) {
            format!("write it without braces: `{}`", shortened(bare))
        } else {
            "name each placeholder of the text once".to_owned()
        };
        self.fault(TextViolation::new(Rule::SampleName, message).hint(hint));
    }
}
