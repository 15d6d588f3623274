//! Shapes that a document may write in more than one way, or in any.

use super::{Field, Json, ObjectSchema, Reached, Reader, Rule, Step, TextViolation};

impl<'d> Reader<'d> {
    /// Reads the only item of a list whose fields stand in the object itself; tells whether they do.
    pub(super) fn only_item(&mut self, field: &'static Field, object: &'d Json<'d>) -> bool {
        let fields = field.inlined_fields();
        if !fields.iter().any(|it| object.get(it.name).is_some()) {
            return false;
        }
        self.write_key(field.name);
        self.write("[{");
        for it in fields {
            self.field(it, object);
        }
        self.write("}]");
        true
    }

    /// An object, or a list with a key and a value for each of its members.
    pub(super) fn map(&mut self, part: &'static ObjectSchema, value: &'d Json<'d>) {
        let Json::Array(items) = value else { return self.object(part, value) };
        let key_of = |item: &'d Json<'d>| item.get("key").and_then(Json::as_str);
        for (index, item) in items.iter().enumerate() {
            self.at(Step::Index(index), |reader| reader.entry(part, item));
        }
        self.write("{");
        for field in part.fields {
            let found = items.iter().position(|item| key_of(item) == Some(field.name));
            if let Some((index, value)) = found.and_then(|at| Some((at, items[at].get("value")?))) {
                self.write_key(field.name);
                self.at(Step::Index(index), |reader| {
                    reader.at(Step::Key("value"), |reader| reader.value(&field.field_type, value));
                });
            }
        }
        self.write("}");
    }

    /// Whether an item of such a list has both; one of an unknown key is passed over like a member
    /// that nobody knows.
    fn entry(&mut self, part: &'static ObjectSchema, item: &'d Json<'d>) {
        let Json::Object(_) = item else { return self.wrong_type("an object", item) };
        match item.get("key") {
            None => self.missing("key", "the name of the member", item),
            Some(Json::String(key)) if part.fields.iter().any(|field| field.name == *key) => {}
            Some(Json::String(key)) => {
                if let Some(advisor) = &mut self.advisor {
                    let place = super::pointer(self.path.iter().chain([&Step::Key("key")]));
                    advisor.unknown(key, Reached::Object(part), place);
                }
            }
            Some(other) => {
                self.at(Step::Key("key"), |reader| reader.wrong_type("a string", other));
            }
        }
        if item.get("value").is_none() {
            self.missing("value", "the value of the member", item);
        }
    }

    /// Whatever it is, up to a size.
    pub(super) fn anything(&mut self, max: usize, value: &'d Json<'d>) {
        let before = self.canonical.len();
        serde_json::to_writer(&mut self.canonical, value).expect("a document is JSON");
        let length = self.canonical.len() - before;
        if length > max {
            let message = format!("has {length} bytes; at most {max} are allowed");
            let hint = format!("shorten it by {}", length - max);
            self.fault(TextViolation::new(Rule::TooLong, message).hint(hint));
        }
    }
}
