//! Reads a document against a rulebook's table in one pass: every violation is noted, and what
//! is kept of the document is written down in canonical form on the way.

mod alternatives;
mod samples;

use crate::document::{
    pointer::{Step, pointer},
    text::has_byte,
};
use crate::{
    document::{Document, Json, suggest},
    rulebook::{
        Field, FieldType, ObjectList, ObjectSchema, ParameterFormat, Presence, SampleFormat,
        StringFormat, StringRule, TaggedList, TaggedObject, VariantContent,
    },
    validation::{
        formats, placeholders,
        warnings::{Reached, WarningCollector},
    },
    violation::{
        Rule, TextViolation, Violation, ViolationCollector, Violations, Warnings, shortened,
    },
};

/// Where the reader stands, what it found, and what it has written.
pub(crate) struct Reader<'d> {
    path: Vec<Step<'d>>,
    report: ViolationCollector,
    /// How many placeholders the text or address just read in this object holds; not known when
    /// it is missing or faulty.
    placeholders: Option<usize>,
    /// Their names, where they have any.
    names: Vec<&'d str>,
    /// How placeholders are written in this document.
    format: ParameterFormat,
    canonical: Vec<u8>,
    /// Collects warnings, if somebody wants them.
    advisor: Option<WarningCollector>,
}

impl<'d> Reader<'d> {
    /// Reads the whole document as `part`; answers the canonical text of the fields `kept`
    /// names, as one JSON object, or everything that is wrong. `also` adds what no table says.
    pub(crate) fn read(
        document: &'d Document<'d>,
        part: &'static ObjectSchema,
        kept: impl Fn(&Field) -> bool,
        also: impl FnOnce(&mut ViolationCollector),
    ) -> Result<String, Violations> {
        let mut reader = Self::new(None);
        reader.root(document, part, kept);
        also(&mut reader.report);
        reader.verdict().0
    }

    /// Reads the whole document likewise, and also answers what is worth a warning.
    pub(crate) fn check(
        document: &'d Document<'d>,
        part: &'static ObjectSchema,
        kept: impl Fn(&Field) -> bool,
        also: impl FnOnce(&mut ViolationCollector),
    ) -> (Result<String, Violations>, Warnings) {
        let mut reader = Self::new(Some(WarningCollector::new(part)));
        reader.root(document, part, kept);
        also(&mut reader.report);
        let (verdict, advisor) = reader.verdict();
        (verdict, advisor.map(WarningCollector::warnings).unwrap_or_default())
    }

    fn new(advisor: Option<WarningCollector>) -> Self {
        Self {
            path: Vec::with_capacity(8),
            report: ViolationCollector::default(),
            placeholders: None,
            names: Vec::new(),
            format: ParameterFormat::Positional,
            canonical: Vec::with_capacity(1_024),
            advisor,
        }
    }

    fn root(
        &mut self,
        document: &'d Document<'d>,
        part: &'static ObjectSchema,
        kept: impl Fn(&Field) -> bool,
    ) {
        if document.has_duplicates() {
            self.duplicates(document.root());
        }
        if !matches!(document.root(), Json::Object(_)) {
            return self.wrong_type("an object", document.root());
        }
        self.write("{");
        for field in part.fields {
            let before = self.canonical.len();
            self.field(field, document.root());
            if !kept(field) {
                self.canonical.truncate(before);
            }
        }
        self.write("}");
        self.unread(document.root(), None, Reached::Object(part));
    }

    fn verdict(self) -> (Result<String, Violations>, Option<WarningCollector>) {
        let canonical = String::from_utf8(self.canonical).ok();
        (self.report.verdict(canonical), self.advisor)
    }

    fn field(&mut self, field: &'static Field, object: &'d Json<'d>) {
        let has_placeholders = self.placeholders.is_some_and(|count| count > 0);
        let (used, required) = match field.presence {
            Presence::Required | Presence::RequiredOrInlined => (true, true),
            Presence::Forbidden(_) => (false, false),
            Presence::Optional | Presence::DefaultsTo(_) => (true, false),
            Presence::RequiredWithPlaceholders => (has_placeholders, true),
            Presence::OptionalWithPlaceholders => (has_placeholders, false),
            Presence::OnlyWithPlaceholders => (has_placeholders && self.asks_for(field), true),
        };
        match object.get(field.name) {
            Some(value) if used => {
                self.write_key(field.name);
                self.at(Step::Key(field.name), |reader| reader.value(&field.field_type, value));
            }
            None if self.only_item(field, object) => {}
            None if used && required => self.missing(field.name, field.about, object),
            Some(_) => self.at(Step::Key(field.name), |reader| match field.presence {
                Presence::Forbidden(rule) => {
                    reader.fault(TextViolation::new(rule, "is not taken here").hint(field.about));
                }
                Presence::OnlyWithPlaceholders => reader.samples_of_nothing(),
                _ => reader.unused(),
            }),
            None => {
                if let Presence::DefaultsTo(word) = field.presence {
                    self.write_key(field.name);
                    self.write_string(word);
                }
            }
        }
    }

    fn value(&mut self, shape: &'static FieldType, value: &'d Json<'d>) {
        match shape {
            FieldType::String(rule) => self.placeholders = self.text(rule, value),
            FieldType::Choice(words) => {
                self.choice(words.iter().copied(), value);
            }
            FieldType::ParameterFormat => {
                let word = self.choice(ParameterFormat::VALUES.iter().copied(), value);
                self.format = word.and_then(ParameterFormat::parse).unwrap_or(self.format);
            }
            FieldType::ChoiceList(words) => self.words(words, value),
            FieldType::Bool => match value {
                Json::Bool(true) => self.write("true"),
                Json::Bool(false) => self.write("false"),
                other => self.wrong_type("a boolean", other),
            },
            FieldType::PositiveInteger => self.number(value),
            FieldType::Integer(least, most) => self.integer(*least, *most, value),
            FieldType::Id(rule) => self.id(rule, value),
            FieldType::SingleString(rule) => self.one(rule, value),
            FieldType::Object(part) => self.object(part, value),
            FieldType::Map(part) => self.map(part, value),
            FieldType::AnyJson(max) => self.anything(*max, value),
            FieldType::TaggedObject(tagged) => self.tagged(tagged, value),
            FieldType::TaggedList(list) => self.list(list, value),
            FieldType::ObjectList(parts) => self.parts(parts, value),
            FieldType::Samples(samples) => self.samples(*samples, value),
        }
    }

    fn text(&mut self, rule: &StringRule, value: &'d Json<'d>) -> Option<usize> {
        let Json::String(text) = value else {
            self.wrong_type("a string", value);
            return None;
        };
        let mut faults = Vec::new();
        let mut placeholders = formats::check_in(self.format, rule, text, &mut faults);
        if faults.is_empty() && placeholders.is_none() && may_hold_placeholders(rule.format) {
            placeholders = Some(0);
        }
        if self.format == ParameterFormat::Named
            && placeholders.is_some()
            && rule.format != StringFormat::Link
        {
            self.names = placeholders::names(text);
        }
        for fault in faults {
            self.fault(fault);
        }
        if let Some(advisor) = &mut self.advisor {
            advisor.text(rule, text, || pointer(&self.path));
        }
        self.write_string(text);
        placeholders
    }

    fn id(&mut self, rule: &StringRule, value: &'d Json<'d>) {
        match value.as_u64() {
            Some(number) => self.write_string(itoa::Buffer::new().format(number)),
            None => self.placeholders = self.text(rule, value),
        }
    }

    fn number(&mut self, value: &'d Json<'d>) {
        match value.as_u64() {
            Some(number) => self.write(itoa::Buffer::new().format(number)),
            None => self.wrong_type("a whole number from 1", value),
        }
    }

    fn integer(&mut self, least: i64, most: i64, value: &'d Json<'d>) {
        let Some(number) = value.as_i64() else {
            return self.wrong_type("a whole number", value);
        };
        if !(least..=most).contains(&number) {
            let message = format!("is {number}; {least} to {most} are allowed");
            let hint = format!("write a number from {least} to {most}");
            self.fault(TextViolation::new(Rule::NumberRange, message).hint(hint));
        }
        self.write(itoa::Buffer::new().format(number));
    }

    fn choice(
        &mut self,
        words: impl Iterator<Item = &'static str> + Clone,
        value: &'d Json<'d>,
    ) -> Option<&'static str> {
        let Json::String(text) = value else {
            self.wrong_type("a string", value);
            return None;
        };
        if let Some(word) = words.clone().find(|word| word.eq_ignore_ascii_case(text)) {
            self.write_plain(word);
            return Some(word);
        }
        if let Some(advisor) = &mut self.advisor {
            advisor.word(text, || pointer(&self.path));
        }
        let listed = words.clone().collect::<Vec<_>>().join(", ");
        let message = format!("`{}` is none of {listed}", shortened(text));
        let hint = match suggest::nearest(text, words) {
            Some(word) => format!("did you mean `{word}`?"),
            None => format!("write one of {listed}"),
        };
        self.fault(TextViolation::new(Rule::NotAChoice, message).hint(hint));
        None
    }

    fn object(&mut self, part: &'static ObjectSchema, value: &'d Json<'d>) {
        let Json::Object(_) = value else { return self.wrong_type("an object", value) };
        self.write("{");
        for field in part.fields {
            self.field(field, value);
        }
        self.write("}");
        self.unread(value, None, Reached::Object(part));
    }

    fn tagged(&mut self, tagged: &'static TaggedObject, value: &'d Json<'d>) {
        let Json::Object(_) = value else { return self.wrong_type("an object", value) };
        self.placeholders = None;
        if let Some(advisor) = &mut self.advisor {
            advisor.begin();
        }
        self.write("{");
        let reached = self.variant(tagged, value);
        self.write("}");
        self.unread(value, Some(tagged), reached);
    }

    fn variant(&mut self, tagged: &'static TaggedObject, object: &'d Json<'d>) -> Reached {
        let Some(tag) = object.get(tagged.tag) else {
            self.missing(tagged.tag, tagged.about, object);
            return Reached::Fork(tagged);
        };
        self.write_key(tagged.tag);
        let word = self.at(Step::Key(tagged.tag), |reader| reader.choice(tagged.tag_values(), tag));
        let variant = tagged.variants.iter().find(|variant| Some(variant.value) == word);
        match variant.map(|variant| &variant.content) {
            Some(VariantContent::Fields(part)) => {
                part.fields.iter().for_each(|it| self.field(it, object));
                Reached::Object(part)
            }
            Some(VariantContent::Tagged(inner)) => self.variant(inner, object),
            None => Reached::Fork(tagged),
        }
    }

    fn list(&mut self, list: &'static TaggedList, value: &'d Json<'d>) {
        let Json::Array(items) = value else { return self.wrong_type("a list", value) };
        self.at_least(list.min, list.item.title, items);
        let items = self.up_to(list.max, items);
        self.write("[");
        for (index, item) in items.iter().enumerate() {
            self.comma();
            self.at(Step::Index(index), |reader| reader.tagged(list.item, item));
        }
        self.write("]");
        self.tags(list, items);
    }

    fn parts(&mut self, parts: &'static ObjectList, value: &'d Json<'d>) {
        let Json::Array(items) = value else { return self.wrong_type("a list", value) };
        self.at_least(parts.min, parts.title, items);
        self.write("[");
        for (index, item) in self.up_to(parts.max, items).iter().enumerate() {
            self.comma();
            self.at(Step::Index(index), |reader| reader.object(parts.item, item));
        }
        self.write("]");
    }

    fn words(&mut self, words: &'static [&'static str], value: &'d Json<'d>) {
        let Json::Array(items) = value else { return self.wrong_type("a list", value) };
        self.write("[");
        for (index, item) in self.up_to(words.len(), items).iter().enumerate() {
            self.comma();
            self.at(Step::Index(index), |reader| reader.choice(words.iter().copied(), item));
        }
        self.write("]");
    }

    fn at_least(&mut self, min: usize, title: &str, items: &'d [Json<'d>]) {
        if items.len() < min {
            let message = format!("has {} items; at least {min} are needed", items.len());
            let article = if title.starts_with(['a', 'e', 'i', 'o']) { "an" } else { "a" };
            self.fault(
                TextViolation::new(Rule::TooFew, message).hint(format!("add {article} {title}")),
            );
        }
    }

    /// The items that are read: what goes beyond the limit is one fault.
    fn up_to(&mut self, max: usize, items: &'d [Json<'d>]) -> &'d [Json<'d>] {
        if items.len() > max {
            let message = format!("has {} items; at most {max} are allowed", items.len());
            let hint = format!("remove {}", items.len() - max);
            self.fault(TextViolation::new(Rule::TooMany, message).hint(hint));
        }
        &items[..items.len().min(max)]
    }

    /// What a list says about its items as a whole: which may not repeat, which has to be there.
    fn tags(&mut self, list: &'static TaggedList, items: &'d [Json<'d>]) {
        let word_of = |item: &'d Json<'d>| {
            let tag = item.get(list.item.tag)?.as_str()?;
            list.item.tag_values().find(|word| word.eq_ignore_ascii_case(tag))
        };
        let words: Vec<Option<&str>> = items.iter().map(word_of).collect();
        if list.unique {
            for (index, word) in words.iter().enumerate() {
                let first = words.iter().position(|other| other == word);
                if let (Some(word), Some(first)) = (word, first.filter(|first| *first < index)) {
                    let message = format!("is a second {word}; the first is item {first}");
                    let hint = format!("keep one {word}");
                    let fault = TextViolation::new(Rule::ComponentRepeated, message).hint(hint);
                    self.at(Step::Index(index), |reader| reader.fault(fault));
                }
            }
        }
        // An item that nobody could read has been complained of; it may be the one sought.
        if let Some(needed) = list.required
            && words.iter().all(|word| word.is_some_and(|word| word != needed))
        {
            let hint = format!("add `{{\"{}\": \"{needed}\", …}}`", list.item.tag);
            self.fault(
                TextViolation::new(Rule::BodyMissing, format!("holds no {needed}")).hint(hint),
            );
        }
    }

    /// Points at every member whose key stood before in its object.
    fn duplicates(&mut self, value: &'d Json<'d>) {
        match value {
            Json::Array(items) => {
                for (index, item) in items.iter().enumerate() {
                    self.at(Step::Index(index), |reader| reader.duplicates(item));
                }
            }
            Json::Object(members) => {
                for member in members {
                    self.at(Step::Key(&member.key), |reader| {
                        if member.repeated {
                            let fault = TextViolation::new(
                                Rule::DuplicateKey,
                                "is named twice in this object",
                            );
                            reader.fault(fault.hint("keep one of them"));
                        }
                        reader.duplicates(&member.value);
                    });
                }
            }
            _ => {}
        }
    }

    /// A known field that is not needed here, because no placeholder asks for samples.
    fn unused(&mut self) {
        if let Some(advisor) = &mut self.advisor {
            advisor.samples(|| pointer(&self.path));
        }
    }

    /// Points at every member of an object that nobody has read.
    fn unread(
        &mut self,
        object: &'d Json<'d>,
        tagged: Option<&'static TaggedObject>,
        reached: Reached,
    ) {
        if let Some(advisor) = &mut self.advisor {
            let member = |key: &str| pointer(self.path.iter().chain([&Step::Key(key)]));
            advisor.members(object, tagged, reached, member);
        }
    }

    fn missing(&mut self, name: &'static str, about: &'static str, object: &'d Json<'d>) {
        let Json::Object(members) = object else { return };
        let misspelt = suggest::nearest(name, members.iter().map(|member| &*member.key))
            .filter(|key| *key != name);
        let hint = match misspelt {
            Some(key) => format!("`{}` stands there: did you mean `{name}`?", shortened(key)),
            None => about.to_owned(),
        };
        let fault = TextViolation::new(Rule::Required, "is required").hint(hint);
        self.at(Step::Key(name), |reader| reader.fault(fault));
    }

    fn wrong_type(&mut self, expected: &str, found: &Json<'_>) {
        let message = format!("must be {expected}, not {}", found.kind());
        self.fault(TextViolation::new(Rule::WrongType, message).hint(format!("write {expected}")));
    }

    fn fault(&mut self, TextViolation { rule, message, hint, span }: TextViolation) {
        let pointer = || pointer(&self.path);
        self.report.add(|| Violation { pointer: pointer(), rule, message, hint, span });
    }

    fn at<T>(&mut self, step: Step<'d>, read: impl FnOnce(&mut Self) -> T) -> T {
        self.path.push(step);
        let value = read(self);
        self.path.pop();
        value
    }

    fn write(&mut self, text: &str) {
        self.canonical.extend_from_slice(text.as_bytes());
    }

    fn write_string(&mut self, text: &str) {
        if has_byte(text, |byte| byte < 0x20 || byte == b'"' || byte == b'\\') {
            serde_json::to_writer(&mut self.canonical, text).expect("a string is JSON");
        } else {
            self.write_plain(text);
        }
    }

    /// A string in which nothing has to be escaped.
    fn write_plain(&mut self, text: &str) {
        self.canonical.reserve(text.len() + 2);
        self.write("\"");
        self.write(text);
        self.write("\"");
    }

    fn write_key(&mut self, key: &'static str) {
        self.comma();
        self.write_plain(key);
        self.write(":");
    }

    fn comma(&mut self) {
        if !matches!(self.canonical.last(), Some(b'{' | b'[')) {
            self.write(",");
        }
    }
}

fn may_hold_placeholders(form: StringFormat) -> bool {
    matches!(
        form,
        StringFormat::WithPlaceholders
            | StringFormat::UrlWithSuffix
            | StringFormat::Headline
            | StringFormat::Message
            | StringFormat::CardMessage
            | StringFormat::Link
    )
}
