//! Reads lists: their items, their length and their required tags.

use super::{
    Json, ObjectList, Reader, Rule, Segment, TaggedList, TextViolation, find_choice, is_or_are,
    pluralized,
};

impl<'d> Reader<'d> {
    pub(super) fn read_tagged_list(&mut self, list: &'static TaggedList, value: &'d Json<'d>) {
        let Json::Array(items) = value else { return self.report_wrong_type("a list", value) };
        self.check_min(list.min, list.item.title, items);
        let items = self.check_max(list.max, items);
        self.write("[");
        for (index, item) in items.iter().enumerate() {
            self.write_comma();
            self.at(Segment::Index(index), |reader| reader.read_tagged(list.item, item));
        }
        self.write("]");
        self.check_tags(list, items);
    }

    pub(super) fn read_object_list(&mut self, list: &'static ObjectList, value: &'d Json<'d>) {
        let Json::Array(items) = value else { return self.report_wrong_type("a list", value) };
        self.check_min(list.min, list.title, items);
        self.write("[");
        for (index, item) in self.check_max(list.max, items).iter().enumerate() {
            self.write_comma();
            self.at(Segment::Index(index), |reader| reader.read_object(list.item, item));
        }
        self.write("]");
    }

    pub(super) fn read_choice_list(
        &mut self,
        choices: &'static [&'static str],
        value: &'d Json<'d>,
    ) {
        let Json::Array(items) = value else { return self.report_wrong_type("a list", value) };
        self.write("[");
        for (index, item) in self.check_max(choices.len(), items).iter().enumerate() {
            self.write_comma();
            self.at(Segment::Index(index), |reader| {
                reader.read_choice(choices.iter().copied(), item)
            });
        }
        self.write("]");
    }

    fn check_min(&mut self, min: usize, title: &str, items: &'d [Json<'d>]) {
        if items.len() < min {
            let count = pluralized(items.len(), "item");
            let message = format!("has {count}; at least {min} {} required", is_or_are(min));
            let article = if title.starts_with(['a', 'e', 'i', 'o']) { "an" } else { "a" };
            let hint = format!("add {article} {title}");
            self.report(TextViolation::new(Rule::TooFew, message).hint(hint));
        }
    }

    /// The items up to the limit. Further ones are a single violation and are not read.
    fn check_max(&mut self, max: usize, items: &'d [Json<'d>]) -> &'d [Json<'d>] {
        let count = Json::count(items);
        if count > max {
            let message = format!(
                "has {}; at most {max} {} allowed",
                pluralized(count, "item"),
                is_or_are(max)
            );
            let hint = format!("remove {}", pluralized(count - max, "item"));
            self.report(TextViolation::new(Rule::TooMany, message).hint(hint));
        }
        &items[..items.len().min(max)]
    }

    /// Checks which tags appear in a list: unique tags once, a required tag at least once.
    fn check_tags(&mut self, list: &'static TaggedList, items: &'d [Json<'d>]) {
        let tag_of = |item: &'d Json<'d>| {
            let tag = item.get(list.item.tag)?.as_str()?;
            find_choice(list.item.tag_values(), tag)
        };
        let tags: Vec<Option<&str>> = items.iter().map(tag_of).collect();
        if list.unique {
            for (index, tag) in tags.iter().enumerate() {
                let first = tags.iter().position(|other| other == tag);
                if let (Some(tag), Some(first)) = (tag, first.filter(|first| *first < index)) {
                    let message = format!("is a second {tag}; the first is item {first}");
                    let hint = format!("keep only one {tag}");
                    let violation = TextViolation::new(Rule::ComponentRepeated, message).hint(hint);
                    self.at(Segment::Index(index), |reader| reader.report(violation));
                }
            }
        }
        // An item with an invalid tag is already reported, and may be meant as the required one.
        if let Some(required) = list.required
            && tags.iter().all(|tag| tag.is_some_and(|tag| tag != required))
        {
            let message = format!("contains no {required}");
            let hint = format!("add `{{\"{}\": \"{required}\", …}}`", list.item.tag);
            self.report(TextViolation::new(Rule::BodyMissing, message).hint(hint));
        }
    }
}
