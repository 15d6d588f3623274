//! Takes the values out of the document that was sent, and notes whatever is wrong with them.

use crate::{
    document::{Json, suggest},
    violation::{Rule, TextViolation, Violation, ViolationCollector, shortened},
};

/// The members of the document.
const MEMBERS: [&str; 3] = ["header", "body", "buttons"];

pub(super) struct Intake<'v, 'r> {
    root: &'v Json<'v>,
    report: &'r mut ViolationCollector,
}

/// A value that has to be there.
pub(super) struct Need<'t> {
    /// What it is, for people.
    pub(super) what: String,
    /// What the template gives as a sample of it.
    pub(super) sample: Option<&'t str>,
}

/// A place in the document.
#[derive(Clone, Copy)]
pub(super) enum Place<'p> {
    /// `/body`, or whatever else somebody wrote there.
    Member(&'p str),
    /// `/body/2`.
    Item(&'static str, usize),
    /// `/buttons/x`.
    Key(&'static str, &'p str),
}

impl<'v, 'r> Intake<'v, 'r> {
    pub(super) fn new(root: &'v Json<'v>, report: &'r mut ViolationCollector) -> Self {
        Self { root, report }
    }

    /// Members that nobody knows. Passing them over would hide a slip.
    pub(super) fn strangers(&mut self) {
        for key in keys(self.root).filter(|key| !MEMBERS.contains(key)) {
            self.fault(Place::Member(key), || {
                let hint = match suggest::nearest(key, MEMBERS) {
                    Some(member) => format!("did you mean `{member}`?"),
                    None => "values stand in `header`, `body` and `buttons`".to_owned(),
                };
                let message = format!("`{}` is no place for values", shortened(key));
                TextViolation::new(Rule::ValueSuperfluous, message).hint(hint)
            });
        }
    }

    /// A member in which the template takes nothing: it is absent or empty.
    pub(super) fn nothing(&mut self, member: &'static str) {
        let empty = match self.root.get(member) {
            None => true,
            Some(Json::Array(items)) => !items.iter().any(is_there),
            Some(object @ Json::Object(_)) => keys(object).next().is_none(),
            Some(_) => false,
        };
        if !empty {
            self.fault(Place::Member(member), || {
                let message = format!("this template takes no values in `{member}`");
                TextViolation::new(Rule::ValueSuperfluous, message).hint("leave it out")
            });
        }
    }

    /// The strings of a member that is a list of exactly `count`, each of which `check` looks at.
    pub(super) fn list<'t>(
        &mut self,
        member: &'static str,
        count: usize,
        need: impl Fn(usize) -> Need<'t>,
        check: impl Fn(&str) -> Vec<TextViolation>,
    ) -> Vec<Option<&'v str>> {
        let items = match self.root.get(member) {
            None => &[][..],
            Some(Json::Array(items)) => items,
            Some(other) => {
                self.wrong_type(Place::Member(member), "a list of strings", other);
                return vec![None; count];
            }
        };
        let string = |index: usize| {
            let place = Place::Item(member, index);
            let string = self.string(place, items.get(index), || need(index))?;
            self.faults(place, check(string));
            Some(string)
        };
        let strings = (0..count).map(string).collect();
        for (index, item) in items.iter().enumerate().skip(count) {
            if is_there(item) {
                self.fault(Place::Item(member, index), || {
                    let message = format!("is too many: `{member}` takes {count}");
                    TextViolation::new(Rule::ValueSuperfluous, message).hint("remove it")
                });
            }
        }
        strings
    }

    /// The strings for the buttons that take one, each at the button's number.
    pub(super) fn buttons<'t>(
        &mut self,
        wanted: &[bool],
        need: impl Fn(usize) -> Need<'t>,
    ) -> Vec<Option<&'v str>> {
        const MEMBER: &str = "buttons";
        let given = self.root.get(MEMBER);
        if !wanted.contains(&true) {
            self.nothing(MEMBER);
            return vec![None; wanted.len()];
        }
        if let Some(other) = given.filter(|given| !matches!(given, Json::Object(_))) {
            self.wrong_type(Place::Member(MEMBER), "an object", other);
            return vec![None; wanted.len()];
        }
        let given = given.unwrap_or(&Json::Null);
        let numbers: Vec<String> =
            (0..wanted.len()).filter(|index| wanted[*index]).map(|it| it.to_string()).collect();
        for key in keys(given).filter(|key| !numbers.iter().any(|number| number == key)) {
            self.fault(Place::Key(MEMBER, key), || {
                let plain = key.parse::<usize>().is_ok_and(|number| number.to_string() == key);
                let message = if plain {
                    format!("button {key} takes no value")
                } else {
                    format!("`{}` is not the number of a button", shortened(key))
                };
                let hint =
                    format!("counted from 0, these take a value: `{}`", numbers.join("`, `"));
                TextViolation::new(Rule::ValueSuperfluous, message).hint(hint)
            });
        }
        let string = |index: usize| {
            let value = given.get(itoa::Buffer::new().format(index));
            wanted[index]
                .then(|| self.string(Place::Item(MEMBER, index), value, || need(index)))
                .flatten()
        };
        (0..wanted.len()).map(string).collect()
    }

    /// Notes what was found at a place.
    pub(super) fn faults(&mut self, place: Place<'_>, faults: Vec<TextViolation>) {
        for fault in faults {
            self.fault(place, || fault);
        }
    }

    fn string<'t>(
        &mut self,
        place: Place<'_>,
        value: Option<&'v Json<'v>>,
        need: impl FnOnce() -> Need<'t>,
    ) -> Option<&'v str> {
        match value {
            Some(Json::String(text)) => return Some(text),
            None | Some(Json::Null) => self.fault(place, || {
                let Need { what, sample } = need();
                let hint = match sample {
                    Some(sample) => format!("like `{}`", shortened(sample)),
                    None => "write a string here".to_owned(),
                };
                TextViolation::new(Rule::ValueMissing, format!("is missing: {what}")).hint(hint)
            }),
            Some(other) => self.wrong_type(place, "a string", other),
        }
        None
    }

    fn wrong_type(&mut self, place: Place<'_>, expected: &str, found: &Json<'_>) {
        self.fault(place, || {
            let hint = match (expected, found) {
                ("a string", Json::Number(number)) => format!("write it in quotes: `\"{number}\"`"),
                ("an object", _) => {
                    "write an object, with the numbers of buttons as keys: `{\"0\": \"…\"}`"
                        .to_owned()
                }
                _ => format!("write {expected}"),
            };
            let message = format!("must be {expected}, not {}", found.kind());
            TextViolation::new(Rule::WrongType, message).hint(hint)
        });
    }

    /// Notes a fault; it is only made when there is room to tell it.
    fn fault(&mut self, place: Place<'_>, fault: impl FnOnce() -> TextViolation) {
        self.report.add(|| {
            let TextViolation { rule, message, hint, span } = fault();
            Violation { pointer: place.pointer(), rule, message, hint, span }
        });
    }
}

impl Place<'_> {
    fn pointer(self) -> String {
        match self {
            Place::Member(key) => below("", key),
            Place::Item(member, index) => format!("/{member}/{index}"),
            Place::Key(member, key) => below(&format!("/{member}"), key),
        }
    }
}

/// The pointer of a key. One of absurd length is not repeated: its object is pointed at.
pub(super) fn below(parent: &str, key: &str) -> String {
    const LONGEST: usize = 50;
    if key.len() > LONGEST {
        return parent.to_owned();
    }
    format!("{parent}/{}", key.replace('~', "~0").replace('/', "~1"))
}

/// The keys of an object whose members are not absent.
pub(super) fn keys<'v>(object: &'v Json<'_>) -> impl Iterator<Item = &'v str> {
    let members = if let Json::Object(members) = object { &members[..] } else { &[] };
    members.iter().filter(|it| is_there(&it.value)).map(|it| &*it.key)
}

fn is_there(value: &Json<'_>) -> bool {
    !matches!(value, Json::Null)
}
