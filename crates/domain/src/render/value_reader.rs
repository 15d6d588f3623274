//! Reads the values that a client sends for a template and reports what is wrong with them.

use crate::{
    document::{Json, cursor::Cursor, suggest},
    violation::{Rule, TextViolation, ViolationCollector, truncated},
};

/// A required value, described for the violation that reports it as missing.
pub(super) struct ExpectedValue<'t> {
    pub(super) description: String,
    /// The sample that the template has for it.
    pub(super) sample: Option<&'t str>,
}

/// Reads the value at one position.
pub(super) struct ValueReader<'v, 'k> {
    cursor: Cursor<'v, 'k>,
}

impl<'v, 'k> ValueReader<'v, 'k> {
    pub(super) fn root(values: &'v Json<'v>) -> Self {
        Self { cursor: Cursor::root(values) }
    }

    pub(super) fn field<'q>(&self, key: &'q str) -> ValueReader<'v, 'q>
    where
        'k: 'q,
    {
        ValueReader { cursor: self.cursor.field(key) }
    }

    /// The member whose key is the index of a button.
    pub(super) fn button(&self, index: usize) -> Self {
        Self { cursor: self.cursor.numbered_field(index) }
    }

    pub(super) fn item(&self, index: usize) -> Self {
        Self { cursor: self.cursor.item(index) }
    }

    /// The value; `null` counts as absent.
    pub(super) fn value(&self) -> Option<&'v Json<'v>> {
        self.cursor.value()
    }

    /// The items of an array; empty for any other value.
    pub(super) fn array(&self) -> &'v [Json<'v>] {
        self.cursor.array()
    }

    /// Whether the value is an object or absent; reports any other.
    pub(super) fn expect_object(&self, hint: &str, violations: &mut ViolationCollector) -> bool {
        let fits = matches!(self.value(), None | Some(Json::Object(_)));
        if !fits {
            self.report_wrong_type("an object", hint, violations);
        }
        fits
    }

    /// Whether the value is an array or absent; reports any other.
    pub(super) fn expect_array(&self, hint: &str, violations: &mut ViolationCollector) -> bool {
        let fits = matches!(self.value(), None | Some(Json::Array(_)));
        if !fits {
            self.report_wrong_type("a list", hint, violations);
        }
        fits
    }

    /// Reports a value where the template takes none. Empty arrays and objects are accepted.
    pub(super) fn expect_nothing(&self, message: &str, violations: &mut ViolationCollector) {
        let empty = match self.value() {
            None => true,
            Some(Json::Array(items)) => items.iter().all(|it| matches!(it, Json::Null)),
            Some(Json::Object(_)) => self.cursor.members(|_| true).next().is_none(),
            Some(_) => false,
        };
        if !empty {
            self.report(violations, || {
                TextViolation::new(Rule::ValueSuperfluous, message).hint("leave it out")
            });
        }
    }

    /// Reports unknown members: ignoring them would hide typos.
    pub(super) fn reject_unknown_members(
        &self,
        known: &[&str],
        violations: &mut ViolationCollector,
    ) {
        for (key, member) in self.cursor.members(|key| !known.contains(&key)) {
            violations.add_at(&member, || {
                let hint = match suggest::nearest(key, known.iter().copied()) {
                    Some(name) => format!("did you mean `{name}`?"),
                    None => format!("known members: `{}`", known.join("`, `")),
                };
                let message = format!("unknown member `{}`", truncated(key));
                TextViolation::new(Rule::ValueSuperfluous, message).hint(hint)
            });
        }
    }

    /// Reports members whose key is not the index of one of these buttons.
    pub(super) fn reject_unknown_buttons(
        &self,
        indices: &[usize],
        violations: &mut ViolationCollector,
    ) {
        let is_index = |key: &str, index: usize| itoa::Buffer::new().format(index) == key;
        let is_known = |key: &str| indices.iter().any(|index| is_index(key, *index));
        for (key, member) in self.cursor.members(|key| !is_known(key)) {
            violations.add_at(&member, || {
                let message = if key.parse().is_ok_and(|index| is_index(key, index)) {
                    format!("button {key} does not take a value")
                } else {
                    format!("`{}` is not the index of a button", truncated(key))
                };
                let indices: Vec<String> = indices.iter().map(usize::to_string).collect();
                let hint = format!("buttons that take a value: `{}`", indices.join("`, `"));
                TextViolation::new(Rule::ValueSuperfluous, message).hint(hint)
            });
        }
    }

    /// Reports each array item beyond the first `count`.
    pub(super) fn reject_extra_items(&self, count: usize, violations: &mut ViolationCollector) {
        for (index, item) in self.array().iter().enumerate().skip(count) {
            if let Json::Omitted(more) = item {
                self.report(violations, || {
                    let are = if count == 1 { "is" } else { "are" };
                    let message = format!("has {} items; {count} {are} expected", index + more);
                    let hint = "remove the superfluous ones";
                    TextViolation::new(Rule::ValueSuperfluous, message).hint(hint)
                });
                violations.count_omitted(more.saturating_sub(1));
                continue;
            }
            if !matches!(item, Json::Null) {
                self.item(index).report(violations, || {
                    let are = if count == 1 { "is" } else { "are" };
                    let message = format!("is one too many; {count} {are} expected");
                    TextViolation::new(Rule::ValueSuperfluous, message).hint("remove it")
                });
            }
        }
    }

    /// An array of exactly `count` strings; `None` if one of them is missing or not a string.
    pub(super) fn strings<'t>(
        &self,
        count: usize,
        expected: impl Fn(usize) -> ExpectedValue<'t>,
        check: impl Fn(&str) -> Vec<TextViolation>,
        violations: &mut ViolationCollector,
    ) -> Option<Vec<&'v str>> {
        let string =
            |index: usize| self.item(index).required_string(|| expected(index), &check, violations);
        let strings: Vec<Option<&str>> = (0..count).map(string).collect();
        self.reject_extra_items(count, violations);
        strings.into_iter().collect()
    }

    /// A required string; reports what `check` finds in it.
    pub(super) fn required_string<'t>(
        &self,
        expected: impl FnOnce() -> ExpectedValue<'t>,
        check: impl FnOnce(&str) -> Vec<TextViolation>,
        violations: &mut ViolationCollector,
    ) -> Option<&'v str> {
        if self.value().is_none() {
            self.report_missing(expected, violations);
        }
        self.optional_string(check, violations)
    }

    /// An optional string; reports what `check` finds in it.
    pub(super) fn optional_string(
        &self,
        check: impl FnOnce(&str) -> Vec<TextViolation>,
        violations: &mut ViolationCollector,
    ) -> Option<&'v str> {
        match self.value()? {
            Json::String(text) => {
                self.report_all(check(text), violations);
                Some(text)
            }
            Json::Number(number) => {
                let hint = format!("write it in quotes: `\"{number}\"`");
                self.report_wrong_type("a string", &hint, violations);
                None
            }
            _ => {
                self.report_wrong_type("a string", "write a string", violations);
                None
            }
        }
    }

    /// An optional integer; reports one out of range.
    pub(super) fn optional_integer(
        &self,
        min: i64,
        max: i64,
        violations: &mut ViolationCollector,
    ) -> Option<i64> {
        let Some(number) = self.value()?.as_i64() else {
            let hint = format!("write a number from {min} to {max}");
            self.report_wrong_type("a whole number", &hint, violations);
            return None;
        };
        if !(min..=max).contains(&number) {
            self.report(violations, || {
                let message = format!("is {number}; {min} to {max} are allowed");
                let hint = format!("write a number from {min} to {max}");
                TextViolation::new(Rule::NumberRange, message).hint(hint)
            });
        }
        Some(number)
    }

    pub(super) fn report_missing<'t>(
        &self,
        expected: impl FnOnce() -> ExpectedValue<'t>,
        violations: &mut ViolationCollector,
    ) {
        self.report(violations, || {
            let ExpectedValue { description, sample } = expected();
            let hint = match sample {
                Some(sample) => format!("for example `{}`", truncated(sample)),
                None => "add it".to_owned(),
            };
            TextViolation::new(Rule::ValueMissing, format!("is missing: {description}")).hint(hint)
        });
    }

    pub(super) fn report_wrong_type(
        &self,
        expected: &str,
        hint: &str,
        violations: &mut ViolationCollector,
    ) {
        let found = self.value().map_or("nothing", Json::kind);
        self.report(violations, || {
            let message = format!("must be {expected}, not {found}");
            TextViolation::new(Rule::WrongType, message).hint(hint)
        });
    }

    pub(super) fn report_all(
        &self,
        found: Vec<TextViolation>,
        violations: &mut ViolationCollector,
    ) {
        for violation in found {
            self.report(violations, || violation);
        }
    }

    /// Reports a violation, which is built only if the collector still lists violations.
    pub(super) fn report(
        &self,
        violations: &mut ViolationCollector,
        violation: impl FnOnce() -> TextViolation,
    ) {
        violations.add_at(&self.cursor, violation);
    }
}
