//! Field types with more than one accepted notation, and free-form JSON.

use super::{
    Field, Json, ObjectSchema, Reader, ResolvedSchema, Rule, Segment, TextViolation, pluralized,
};

impl<'d> Reader<'d> {
    /// Reads the only item of a list from the enclosing object, if that contains its fields.
    /// Returns whether it does.
    pub(super) fn read_inlined_item(
        &mut self,
        field: &'static Field,
        object: &'d Json<'d>,
    ) -> bool {
        let fields = field.inlined_fields();
        if !fields.iter().any(|field| object.get(field.name).is_some()) {
            return false;
        }
        self.write_key(field.name);
        self.write("[{");
        self.read_fields(fields, object);
        self.write("}]");
        true
    }

    /// Reads an object, or a list of `key` and `value` pairs.
    pub(super) fn read_map(&mut self, schema: &'static ObjectSchema, value: &'d Json<'d>) {
        let Json::Array(items) = value else { return self.read_object(schema, value) };
        let key_of = |item: &'d Json<'d>| item.get("key").and_then(Json::as_str);
        for (index, item) in items.iter().enumerate() {
            let key = key_of(item);
            let is_repeated = key.is_some() && items[..index].iter().any(|it| key_of(it) == key);
            self.at(Segment::Index(index), |reader| {
                reader.read_map_entry(schema, item);
                if is_repeated {
                    reader.at(Segment::Key("key"), |reader| {
                        let message = "appears twice in this list";
                        let violation = TextViolation::new(Rule::DuplicateKey, message);
                        reader.report(violation.hint("keep only one of them"));
                    });
                }
            });
        }
        self.write("{");
        for field in schema.fields {
            let found = items.iter().position(|item| key_of(item) == Some(field.name));
            if let Some((index, value)) = found.and_then(|at| Some((at, items[at].get("value")?))) {
                self.write_key(field.name);
                self.at(Segment::Index(index), |reader| {
                    reader.at(Segment::Key("value"), |reader| {
                        reader.read_value(&field.field_type, value);
                    });
                });
            }
        }
        self.write("}");
    }

    /// Checks that an item of such a list has both members. An unknown key is skipped, like an
    /// unknown member of an object.
    fn read_map_entry(&mut self, schema: &'static ObjectSchema, item: &'d Json<'d>) {
        let Json::Object(_) = item else { return self.report_wrong_type("an object", item) };
        match item.get("key") {
            None => self.report_missing("key", "the name of the member", item),
            Some(Json::String(key)) if schema.fields.iter().any(|field| field.name == *key) => {}
            Some(Json::String(key)) => {
                if let Some(warnings) = &mut self.warnings {
                    let pointer = super::pointer(self.path.iter().chain([&Segment::Key("key")]));
                    warnings.unknown_key(key, ResolvedSchema::Object(schema), pointer);
                }
            }
            Some(other) => {
                self.at(Segment::Key("key"), |reader| reader.report_wrong_type("a string", other));
            }
        }
        if item.get("value").is_none() {
            self.report_missing("value", "the value of the member", item);
        }
    }

    /// Reads any JSON value up to a size.
    pub(super) fn read_any_json(&mut self, max_bytes: usize, value: &'d Json<'d>) {
        let start = self.canonical.len();
        serde_json::to_writer(&mut self.canonical, value).expect("a document is JSON");
        let length = self.canonical.len() - start;
        if length > max_bytes {
            let message = format!("has {length} bytes; at most {max_bytes} are allowed");
            let hint = format!("shorten it by {}", pluralized(length - max_bytes, "byte"));
            self.report(TextViolation::new(Rule::TooLong, message).hint(hint));
        }
    }
}
