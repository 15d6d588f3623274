//! Reads a document against a rulebook's table. A single pass collects every violation and writes
//! the stored fields in canonical form.

mod alternatives;
mod canonical;
mod lists;
mod samples;

use crate::{
    document::{
        Document, Json,
        byte_classes::ByteClasses,
        pointer::{Segment, pointer},
        suggest,
    },
    rulebook::{
        Field, FieldType, ObjectList, ObjectSchema, ParameterFormat, Presence, SampleFormat,
        SampleRule, StringFormat, StringRule, TaggedList, TaggedObject, VariantContent,
    },
    validation::{
        formats,
        placeholders::{self, PlaceholderCount},
        warnings::{ResolvedSchema, WarningCollector},
    },
    violation::{
        Rule, TextViolation, Violation, ViolationCollector, Violations, Warnings, is_or_are,
        pluralized, truncated,
    },
};

/// The reader's position in the document, its findings and its output.
pub(crate) struct Reader<'d> {
    path: Vec<Segment<'d>>,
    violations: ViolationCollector,
    /// The placeholders of the text or URL last read in this object.
    placeholder_count: PlaceholderCount,
    /// The names of these placeholders, if the document uses named ones.
    placeholder_names: Vec<&'d str>,
    /// How placeholders are written in this document.
    parameter_format: ParameterFormat,
    canonical: Vec<u8>,
    /// Collects warnings if the caller requested them.
    warnings: Option<WarningCollector>,
}

impl<'d> Reader<'d> {
    /// Reads the whole document as `schema`. Returns the canonical JSON of the fields selected by
    /// `is_stored` as one object, or every violation. `extra_checks` adds checks that the table
    /// cannot express.
    pub(crate) fn read(
        document: &'d Document<'d>,
        schema: &'static ObjectSchema,
        is_stored: impl Fn(&Field) -> bool,
        extra_checks: impl FnOnce(&mut ViolationCollector),
    ) -> Result<String, Violations> {
        let mut reader = Self::new(None);
        reader.read_root(document, schema, is_stored);
        extra_checks(&mut reader.violations);
        reader.finish().0
    }

    /// Reads the whole document like [`Reader::read`] and also returns the warnings.
    pub(crate) fn check(
        document: &'d Document<'d>,
        schema: &'static ObjectSchema,
        is_stored: impl Fn(&Field) -> bool,
        extra_checks: impl FnOnce(&mut ViolationCollector),
    ) -> (Result<String, Violations>, Warnings) {
        let mut reader = Self::new(Some(WarningCollector::new(schema)));
        reader.read_root(document, schema, is_stored);
        extra_checks(&mut reader.violations);
        let (result, warnings) = reader.finish();
        (result, warnings.map(WarningCollector::into_warnings).unwrap_or_default())
    }

    fn new(warnings: Option<WarningCollector>) -> Self {
        Self {
            path: Vec::with_capacity(8),
            violations: ViolationCollector::default(),
            placeholder_count: PlaceholderCount::Unknown,
            placeholder_names: Vec::new(),
            parameter_format: ParameterFormat::Positional,
            canonical: Vec::with_capacity(1_024),
            warnings,
        }
    }

    fn read_root(
        &mut self,
        document: &'d Document<'d>,
        schema: &'static ObjectSchema,
        is_stored: impl Fn(&Field) -> bool,
    ) {
        if document.has_duplicates() {
            self.report_duplicates(document.root());
        }
        if !matches!(document.root(), Json::Object(_)) {
            return self.report_wrong_type("an object", document.root());
        }
        self.write("{");
        let mut known = 0;
        for field in schema.fields {
            let start = self.canonical.len();
            known += usize::from(self.read_field(field, schema.fields, document.root()));
            if !is_stored(field) {
                self.canonical.truncate(start);
            }
        }
        self.write("}");
        self.warn_of_unread(document.root(), known, None, ResolvedSchema::Object(schema));
    }

    fn finish(self) -> (Result<String, Violations>, Option<WarningCollector>) {
        let canonical = String::from_utf8(self.canonical).ok();
        (self.violations.into_result(canonical), self.warnings)
    }

    /// Reads all fields of an object. Returns how many of them it has.
    fn read_fields(&mut self, fields: &'static [Field], object: &'d Json<'d>) -> usize {
        let mut known = 0;
        for field in fields {
            known += usize::from(self.read_field(field, fields, object));
        }
        known
    }

    /// Reads one field of an object that has these `fields`. Returns whether the object has it.
    fn read_field(
        &mut self,
        field: &'static Field,
        fields: &'static [Field],
        object: &'d Json<'d>,
    ) -> bool {
        let has_placeholders = self.placeholder_count.is_any();
        let (used, required) = match field.presence {
            Presence::Required | Presence::RequiredOrInlined => (true, true),
            Presence::Forbidden(_) => (false, false),
            Presence::Optional | Presence::DefaultsTo(_) => (true, false),
            Presence::RequiredWithPlaceholders => (has_placeholders, true),
            Presence::OptionalWithPlaceholders => (has_placeholders, false),
            Presence::OnlyWithPlaceholders => {
                let is_used = has_placeholders && self.has_sample_format(field);
                (is_used, is_used && !self.may_have_other_format(fields, object))
            }
        };
        let value = object.get(field.name);
        match value {
            Some(value) if used => {
                self.write_key(field.name);
                self.at(Segment::Key(field.name), |reader| {
                    reader.read_value(&field.field_type, value);
                });
            }
            None if self.read_inlined_item(field, object) => {}
            None if used && required => self.report_missing(field.name, field.about, object),
            Some(_) => self.at(Segment::Key(field.name), |reader| match field.presence {
                Presence::Forbidden(rule) => {
                    reader
                        .report(TextViolation::new(rule, "is not allowed here").hint(field.about));
                }
                Presence::OnlyWithPlaceholders => reader.report_unexpected_samples(),
                _ => reader.warn_of_unused_samples(),
            }),
            None => {
                if let Presence::DefaultsTo(default) = field.presence {
                    self.write_key(field.name);
                    self.write_plain(default);
                }
            }
        }
        value.is_some()
    }

    fn read_value(&mut self, field_type: &'static FieldType, value: &'d Json<'d>) {
        match field_type {
            FieldType::String(rule) => self.placeholder_count = self.read_text(rule, value),
            FieldType::Choice(choices) => {
                self.read_choice(choices.iter().copied(), value);
            }
            FieldType::ParameterFormat => {
                let choice = self.read_choice(ParameterFormat::VALUES.iter().copied(), value);
                self.parameter_format =
                    choice.and_then(ParameterFormat::parse).unwrap_or(self.parameter_format);
            }
            FieldType::ChoiceList(choices) => self.read_choice_list(choices, value),
            FieldType::Bool => match value {
                Json::Bool(true) => self.write("true"),
                Json::Bool(false) => self.write("false"),
                other => self.report_wrong_type("a boolean", other),
            },
            FieldType::PositiveInteger => self.read_positive_integer(value),
            FieldType::Integer(min, max) => self.read_integer(*min, *max, value),
            FieldType::Id(rule) => self.read_id(rule, value),
            FieldType::SingleString(rule) => self.read_one_string(rule, value),
            FieldType::Object(schema) => self.read_object(schema, value),
            FieldType::Map(schema) => self.read_map(schema, value),
            FieldType::AnyJson(max_bytes) => self.read_any_json(*max_bytes, value),
            FieldType::TaggedObject(tagged) => self.read_tagged(tagged, value),
            FieldType::TaggedList(list) => self.read_tagged_list(list, value),
            FieldType::ObjectList(list) => self.read_object_list(list, value),
            FieldType::Samples(rule) => self.read_samples(*rule, value),
        }
    }

    fn read_text(&mut self, rule: &StringRule, value: &'d Json<'d>) -> PlaceholderCount {
        let Json::String(text) = value else {
            self.report_wrong_type("a string", value);
            return PlaceholderCount::Unknown;
        };
        let classes = ByteClasses::of(text);
        let mut violations = Vec::new();
        let placeholders =
            formats::check_in(self.parameter_format, rule, text, classes, &mut violations);
        if self.parameter_format == ParameterFormat::Named
            && placeholders.is_exact()
            && rule.format != StringFormat::Link
        {
            self.placeholder_names = placeholders::names(text);
        }
        for violation in violations {
            self.report(violation);
        }
        if let Some(warnings) = &mut self.warnings {
            warnings.text(rule, text, classes, || pointer(&self.path));
        }
        self.write_string(text, classes);
        placeholders
    }

    fn read_id(&mut self, rule: &StringRule, value: &'d Json<'d>) {
        match value.as_positive_integer() {
            Some(number) => self.write_plain(itoa::Buffer::new().format(number)),
            None => self.placeholder_count = self.read_text(rule, value),
        }
    }

    fn read_positive_integer(&mut self, value: &'d Json<'d>) {
        match value.as_positive_integer() {
            Some(number) => self.write(itoa::Buffer::new().format(number)),
            None => self.report_wrong_type("a positive integer", value),
        }
    }

    fn read_integer(&mut self, min: i64, max: i64, value: &'d Json<'d>) {
        let Some(number) = value.as_i64() else {
            return self.report_wrong_type("a whole number", value);
        };
        if !(min..=max).contains(&number) {
            let message = format!("is {number}, but must be from {min} to {max}");
            let hint = format!("write a number from {min} to {max}");
            self.report(TextViolation::new(Rule::NumberRange, message).hint(hint));
        }
        self.write(itoa::Buffer::new().format(number));
    }

    fn read_choice(
        &mut self,
        choices: impl Iterator<Item = &'static str> + Clone,
        value: &'d Json<'d>,
    ) -> Option<&'static str> {
        let Json::String(text) = value else {
            self.report_wrong_type("a string", value);
            return None;
        };
        if let Some(choice) = find_choice(choices.clone(), text) {
            self.write_plain(choice);
            return Some(choice);
        }
        if let Some(warnings) = &mut self.warnings {
            warnings.choice(text, || pointer(&self.path));
        }
        let list = choices.clone().collect::<Vec<_>>().join(", ");
        let message = format!("`{}` is not one of {list}", truncated(text));
        let hint = match suggest::nearest(text, choices) {
            Some(choice) => format!("did you mean `{choice}`?"),
            None => format!("write one of {list}"),
        };
        self.report(TextViolation::new(Rule::NotAChoice, message).hint(hint));
        None
    }

    fn read_object(&mut self, schema: &'static ObjectSchema, value: &'d Json<'d>) {
        let Json::Object(_) = value else { return self.report_wrong_type("an object", value) };
        self.write("{");
        let known = self.read_fields(schema.fields, value);
        self.write("}");
        self.warn_of_unread(value, known, None, ResolvedSchema::Object(schema));
    }

    fn read_tagged(&mut self, tagged: &'static TaggedObject, value: &'d Json<'d>) {
        let Json::Object(_) = value else { return self.report_wrong_type("an object", value) };
        self.placeholder_count = PlaceholderCount::Unknown;
        if let Some(warnings) = &mut self.warnings {
            warnings.begin_object();
        }
        self.write("{");
        let (known, resolved) = self.read_variant(tagged, value);
        self.write("}");
        self.warn_of_unread(value, known, Some(tagged), resolved);
    }

    /// Reads the tag and the fields that it selects. Returns how many of them the object has, and
    /// their schema.
    fn read_variant(
        &mut self,
        tagged: &'static TaggedObject,
        object: &'d Json<'d>,
    ) -> (usize, ResolvedSchema) {
        let Some(tag) = object.get(tagged.tag) else {
            self.report_missing(tagged.tag, tagged.about, object);
            return (0, ResolvedSchema::AnyOf(tagged));
        };
        self.write_key(tagged.tag);
        let choice = self
            .at(Segment::Key(tagged.tag), |reader| reader.read_choice(tagged.tag_values(), tag));
        let variant = tagged.variants.iter().find(|variant| Some(variant.value) == choice);
        match variant.map(|variant| &variant.content) {
            Some(VariantContent::Fields(schema)) => {
                let known = self.read_fields(schema.fields, object);
                (1 + known, ResolvedSchema::Object(schema))
            }
            Some(VariantContent::Tagged(inner)) => {
                let (known, resolved) = self.read_variant(inner, object);
                (1 + known, resolved)
            }
            None => (1, ResolvedSchema::AnyOf(tagged)),
        }
    }

    /// Reports every member whose key appears earlier in its object.
    fn report_duplicates(&mut self, value: &'d Json<'d>) {
        match value {
            Json::Array(items) => {
                for (index, item) in items.iter().enumerate() {
                    self.at(Segment::Index(index), |reader| reader.report_duplicates(item));
                }
            }
            Json::Object(members) => {
                for member in members {
                    self.at(Segment::Key(&member.key), |reader| {
                        if member.repeated {
                            reader.report_with(|| {
                                let message = "appears more than once in this object";
                                let violation = TextViolation::new(Rule::DuplicateKey, message);
                                violation.hint("keep only one of them")
                            });
                        }
                        reader.report_duplicates(&member.value);
                    });
                }
            }
            _ => {}
        }
    }

    /// Warns of samples next to a text without placeholders.
    fn warn_of_unused_samples(&mut self) {
        if let Some(warnings) = &mut self.warnings {
            warnings.unused_samples(|| pointer(&self.path));
        }
    }

    /// Warns of every member of an object that no field reads. `known` of the members are fields.
    fn warn_of_unread(
        &mut self,
        object: &'d Json<'d>,
        known: usize,
        tagged: Option<&'static TaggedObject>,
        resolved: ResolvedSchema,
    ) {
        // In most objects every member is a field.
        let is_known = matches!(object, Json::Object(members) if members.len() == known);
        if let Some(warnings) = self.warnings.as_mut().filter(|_| !is_known) {
            let member = |key: &str| pointer(self.path.iter().chain([&Segment::Key(key)]));
            warnings.members(object, tagged, resolved, member);
        }
    }

    fn report_missing(&mut self, name: &'static str, about: &'static str, object: &'d Json<'d>) {
        let Json::Object(members) = object else { return };
        if self.violations.is_full() {
            return self.violations.count_omitted(1);
        }
        let misspelling = suggest::nearest(name, members.iter().map(|member| &*member.key))
            .filter(|key| *key != name);
        let hint = match misspelling {
            Some(key) => format!("found `{}`: did you mean `{name}`?", truncated(key)),
            None => about.to_owned(),
        };
        let violation = TextViolation::new(Rule::Required, "is required").hint(hint);
        self.at(Segment::Key(name), |reader| reader.report(violation));
    }

    fn report_wrong_type(&mut self, expected: &str, found: &Json<'_>) {
        self.report_with(|| {
            let message = format!("must be {expected}, not {}", found.kind());
            let hint = format!("write {expected}");
            TextViolation::new(Rule::WrongType, message).hint(hint)
        });
    }

    /// Adds a violation at the current position.
    fn report(&mut self, violation: TextViolation) {
        self.report_with(|| violation);
    }

    /// Adds a violation like [`Reader::report`], which is not created if it is only counted: a
    /// document of 256 KB can break tens of thousands of rules.
    fn report_with(&mut self, violation: impl FnOnce() -> TextViolation) {
        let pointer = || pointer(&self.path);
        self.violations.add(|| {
            let TextViolation { rule, message, hint, span } = violation();
            Violation { pointer: pointer(), rule, message, hint, span }
        });
    }

    /// Calls `read` one step deeper in the document.
    fn at<T>(&mut self, step: Segment<'d>, read: impl FnOnce(&mut Self) -> T) -> T {
        self.path.push(step);
        let value = read(self);
        self.path.pop();
        value
    }
}

/// The choice with this name, ignoring case. Most names are written like the choice, and comparing
/// them exactly is faster.
fn find_choice(
    mut choices: impl Iterator<Item = &'static str> + Clone,
    name: &str,
) -> Option<&'static str> {
    let exact = choices.clone().find(|choice| *choice == name);
    exact.or_else(|| choices.find(|choice| choice.eq_ignore_ascii_case(name)))
}
