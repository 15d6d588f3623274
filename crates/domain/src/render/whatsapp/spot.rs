//! A place among the values that were sent: what stands there, and complaints about it.

use crate::{
    document::{Json, suggest},
    render::intake::{Need, below, keys},
    violation::{Rule, TextViolation, Violation, ViolationCollector, shortened},
};

/// The way to it is only spelt out when there is something to tell.
pub(super) struct Spot<'v, 'p> {
    value: Option<&'v Json<'v>>,
    step: Step<'p>,
    above: Option<&'p Spot<'v, 'p>>,
}

enum Step<'p> {
    Key(&'p str),
    Index(usize),
}

impl<'v> Spot<'v, '_> {
    pub(super) fn root(value: &'v Json<'v>) -> Self {
        Self { value: Some(value), step: Step::Key(""), above: None }
    }

    /// A member of the object that stands here.
    pub(super) fn key<'q>(&'q self, key: &'q str) -> Spot<'v, 'q> {
        let value = self.value.and_then(|value| value.get(key));
        Spot { value, step: Step::Key(key), above: Some(self) }
    }

    /// A key that nothing is asked of but its name. What stands there does not matter, and looking
    /// for it would take long among many.
    pub(super) fn stranger<'q>(&'q self, key: &'q str) -> Spot<'v, 'q> {
        Spot { value: None, step: Step::Key(key), above: Some(self) }
    }

    /// An item of the list that stands here.
    pub(super) fn item<'q>(&'q self, index: usize) -> Spot<'v, 'q> {
        let value = self.items().get(index).filter(|it| !matches!(it, Json::Null));
        Spot { value, step: Step::Index(index), above: Some(self) }
    }

    /// What stands here; `null` is nothing.
    pub(super) fn value(&self) -> Option<&'v Json<'v>> {
        self.value
    }

    /// The items, if it is a list.
    pub(super) fn items(&self) -> &'v [Json<'v>] {
        if let Some(Json::Array(items)) = self.value { items } else { &[] }
    }

    /// Whether an object or nothing at all stands here; anything else is told.
    pub(super) fn is_object(&self, hint: &str, report: &mut ViolationCollector) -> bool {
        let fits = matches!(self.value, None | Some(Json::Object(_)));
        if !fits {
            self.wrong_type("an object", hint, report);
        }
        fits
    }

    /// Whether a list or nothing at all stands here; anything else is told.
    pub(super) fn is_list(&self, hint: &str, report: &mut ViolationCollector) -> bool {
        let fits = matches!(self.value, None | Some(Json::Array(_)));
        if !fits {
            self.wrong_type("a list", hint, report);
        }
        fits
    }

    /// Points at each member that is none of these: passing it over would hide a slip.
    pub(super) fn only(&self, known: &[&str], report: &mut ViolationCollector) {
        let Some(object) = self.value else { return };
        for key in keys(object).filter(|key| !known.contains(key)) {
            self.stranger(key).tell(report, || {
                let hint = match suggest::nearest(key, known.iter().copied()) {
                    Some(name) => format!("did you mean `{name}`?"),
                    None => format!("values stand in `{}`", known.join("`, `")),
                };
                let message = format!("`{}` is no place for values", shortened(key));
                TextViolation::new(Rule::ValueSuperfluous, message).hint(hint)
            });
        }
    }

    /// Points at each item behind the first `count`.
    pub(super) fn at_most(&self, count: usize, report: &mut ViolationCollector) {
        for (index, item) in self.items().iter().enumerate().skip(count) {
            if !matches!(item, Json::Null) {
                self.item(index).tell(report, || {
                    let message = format!("is too many: there is a place for {count}");
                    TextViolation::new(Rule::ValueSuperfluous, message).hint("remove it")
                });
            }
        }
    }

    /// Nothing is taken here, as `why` says: it is absent or empty.
    pub(super) fn nothing(&self, why: &str, report: &mut ViolationCollector) {
        let empty = match self.value {
            None => true,
            Some(Json::Array(items)) => items.iter().all(|it| matches!(it, Json::Null)),
            Some(object @ Json::Object(_)) => keys(object).next().is_none(),
            Some(_) => false,
        };
        if !empty {
            self.tell(report, || {
                TextViolation::new(Rule::ValueSuperfluous, why).hint("leave it out")
            });
        }
    }

    /// The string that has to stand here, which `check` looks at.
    pub(super) fn string<'t>(
        &self,
        need: impl FnOnce() -> Need<'t>,
        check: impl FnOnce(&str) -> Vec<TextViolation>,
        report: &mut ViolationCollector,
    ) -> Option<&'v str> {
        if self.value.is_none() {
            self.missing(need, report);
        }
        self.optional(check, report)
    }

    /// The string that may stand here, which `check` looks at.
    pub(super) fn optional(
        &self,
        check: impl FnOnce(&str) -> Vec<TextViolation>,
        report: &mut ViolationCollector,
    ) -> Option<&'v str> {
        match self.value? {
            Json::String(text) => {
                self.faults(check(text), report);
                Some(text)
            }
            Json::Number(number) => {
                let hint = format!("write it in quotes: `\"{number}\"`");
                self.wrong_type("a string", &hint, report);
                None
            }
            _ => {
                self.wrong_type("a string", "write a string", report);
                None
            }
        }
    }

    /// The whole number from the first to the last that stands here, if one does.
    pub(super) fn integer(
        &self,
        least: i64,
        most: i64,
        report: &mut ViolationCollector,
    ) -> Option<i64> {
        let Some(number) = self.value?.as_i64() else {
            self.wrong_type("a whole number", &format!("write {least} to {most}"), report);
            return None;
        };
        if !(least..=most).contains(&number) {
            self.tell(report, || {
                let message = format!("is {number}; {least} to {most} are allowed");
                let hint = format!("write a number from {least} to {most}");
                TextViolation::new(Rule::NumberRange, message).hint(hint)
            });
        }
        Some(number)
    }

    pub(super) fn missing<'t>(
        &self,
        need: impl FnOnce() -> Need<'t>,
        report: &mut ViolationCollector,
    ) {
        self.tell(report, || {
            let Need { what, sample } = need();
            let hint = match sample {
                Some(sample) => format!("like `{}`", shortened(sample)),
                None => "write it here".to_owned(),
            };
            TextViolation::new(Rule::ValueMissing, format!("is missing: {what}")).hint(hint)
        });
    }

    pub(super) fn wrong_type(&self, expected: &str, hint: &str, report: &mut ViolationCollector) {
        let found = self.value.map_or("nothing", Json::kind);
        self.tell(report, || {
            let message = format!("must be {expected}, not {found}");
            TextViolation::new(Rule::WrongType, message).hint(hint)
        });
    }

    pub(super) fn faults(&self, faults: Vec<TextViolation>, report: &mut ViolationCollector) {
        for fault in faults {
            self.tell(report, || fault);
        }
    }

    /// Notes a fault; it is only made when there is room to tell it.
    pub(super) fn tell(
        &self,
        report: &mut ViolationCollector,
        fault: impl FnOnce() -> TextViolation,
    ) {
        report.add(|| {
            let TextViolation { rule, message, hint, span } = fault();
            Violation { pointer: self.pointer(), rule, message, hint, span }
        });
    }

    fn pointer(&self) -> String {
        let Some(above) = self.above else { return String::new() };
        match self.step {
            Step::Key(key) => below(&above.pointer(), key),
            Step::Index(index) => format!("{}/{index}", above.pointer()),
        }
    }
}
