//! A whole document as checks see it. The table has judged each piece by then: what is not as
//! the table says has been told, and is passed over here.

use std::fmt::{self, Write as _};

use crate::{
    document::Json,
    rulebook::Category,
    violation::{TextViolation, TextWarning, Violation, ViolationCollector, Warnings},
};

/// A named rule about several fields at once.
#[derive(Clone, Copy)]
pub struct Check {
    /// What it looks after.
    pub name: &'static str,
    pub(crate) run: fn(&DocumentView<'_>, &mut ViolationCollector),
}

impl fmt::Debug for Check {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.name)
    }
}

/// A document that is being judged.
pub(crate) struct DocumentView<'d> {
    pub(crate) root: ObjectView<'d>,
    /// What it is sent for, if that is told.
    pub(crate) category: Option<Category>,
    // Every check asks for these: they are looked up once.
    components: Vec<ObjectView<'d>>,
    buttons: Vec<ObjectView<'d>>,
}

impl<'d> DocumentView<'d> {
    pub(crate) fn of(root: &'d Json<'d>) -> Self {
        let category = root.get("category").and_then(Json::as_str).and_then(Category::parse);
        let place = Place { steps: [("", 0); DEEPEST], depth: 0 };
        let root = ObjectView { place, word: "", json: root };
        let components: Vec<_> = root.components().collect();
        let buttons = components.iter().find(|it| it.is("BUTTONS"));
        let buttons = buttons.into_iter().flat_map(|it| it.buttons()).collect();
        Self { root, category, components, buttons }
    }

    pub(crate) fn components(&self) -> impl Iterator<Item = ObjectView<'d>> + Clone {
        self.components.iter().copied()
    }

    /// The message and each of its cards: whatever has components.
    pub(crate) fn holders(&self) -> impl Iterator<Item = ObjectView<'d>> {
        let cards = self.component("CAROUSEL").into_iter().flat_map(ObjectView::cards);
        [self.root].into_iter().chain(cards)
    }

    pub(crate) fn component(&self, word: &str) -> Option<ObjectView<'d>> {
        self.components().find(|it| it.is(word))
    }

    /// The buttons of the message, not of its cards.
    pub(crate) fn buttons(&self) -> impl Iterator<Item = ObjectView<'d>> + Clone {
        self.buttons.iter().copied()
    }
}

// How many items lists may have, for the table and for the checks: what goes beyond is not read.
/// There are no more components than kinds.
pub(crate) const MAX_COMPONENTS: usize = 7;
pub(crate) const MAX_BUTTONS: usize = 10;
pub(crate) const MAX_CARDS: usize = 10;

/// Components, cards, components, buttons.
const DEEPEST: usize = 4;

/// Where a piece stands: through which lists, and at which item of each.
#[derive(Clone, Copy)]
struct Place {
    steps: [(&'static str, usize); DEEPEST],
    depth: usize,
}

/// One object of the document, and where it stands.
#[derive(Clone, Copy)]
pub(crate) struct ObjectView<'d> {
    place: Place,
    /// Its type, if it tells one.
    word: &'d str,
    json: &'d Json<'d>,
}

impl<'d> ObjectView<'d> {
    pub(crate) fn components(self) -> impl Iterator<Item = ObjectView<'d>> + use<'d> {
        self.items("components", MAX_COMPONENTS)
    }

    pub(crate) fn buttons(self) -> impl Iterator<Item = ObjectView<'d>> + use<'d> {
        self.items("buttons", MAX_BUTTONS)
    }

    pub(crate) fn cards(self) -> impl Iterator<Item = ObjectView<'d>> + use<'d> {
        self.items("cards", MAX_CARDS)
    }

    /// The first component of that type.
    pub(crate) fn component(self, word: &str) -> Option<ObjectView<'d>> {
        self.components().find(|it| it.is(word))
    }

    /// The items of a list, as many as are read.
    fn items(
        self,
        list: &'static str,
        most: usize,
    ) -> impl Iterator<Item = ObjectView<'d>> + use<'d> {
        let items = match self.json.get(list) {
            Some(Json::Array(items)) => &items[..items.len().min(most)],
            _ => &[],
        };
        let Place { steps, depth } = self.place;
        items.iter().enumerate().map(move |(index, json)| {
            let mut place = Place { steps, depth: depth + 1 };
            place.steps[depth] = (list, index);
            let word = json.get("type").and_then(Json::as_str).unwrap_or_default();
            ObjectView { place, word, json }
        })
    }

    pub(crate) fn get(self, field: &str) -> Option<&'d Json<'d>> {
        self.json.get(field)
    }

    pub(crate) fn has(self, field: &str) -> bool {
        self.get(field).is_some()
    }

    pub(crate) fn text(self, field: &str) -> Option<&'d str> {
        self.get(field).and_then(Json::as_str)
    }

    /// Whether its type is this one.
    pub(crate) fn is(self, word: &str) -> bool {
        self.word.eq_ignore_ascii_case(word)
    }

    /// Whether a field holds this word, in any letter case.
    pub(crate) fn says(self, field: &str, word: &str) -> bool {
        self.text(field).is_some_and(|text| text.eq_ignore_ascii_case(word))
    }

    /// Notes a fault of the piece itself.
    pub(crate) fn tell(
        self,
        report: &mut ViolationCollector,
        fault: impl FnOnce() -> TextViolation,
    ) {
        self.note(report, "", fault);
    }

    /// Notes a fault of one of its fields.
    pub(crate) fn tell_at(
        self,
        field: &'static str,
        report: &mut ViolationCollector,
        fault: impl FnOnce() -> TextViolation,
    ) {
        self.note(report, field, fault);
    }

    /// Takes back whatever was told of a field, because it should not be there at all.
    pub(crate) fn take_back(self, field: &str, report: &mut ViolationCollector) {
        let place = self.pointer(field);
        report.retract(|told| {
            let below = told.pointer.strip_prefix(&place);
            below.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        });
    }

    /// Warns of something about one of its fields.
    pub(crate) fn warn(self, field: &str, warnings: &mut Warnings, note: TextWarning) {
        warnings.add(|| note.into_warning(self.pointer(field)));
    }

    fn note(
        self,
        report: &mut ViolationCollector,
        field: &str,
        fault: impl FnOnce() -> TextViolation,
    ) {
        report.add(|| {
            let TextViolation { rule, message, hint, span } = fault();
            Violation { pointer: self.pointer(field), rule, message, hint, span }
        });
    }

    /// Where one of its fields stands, or it itself.
    fn pointer(self, field: &str) -> String {
        let mut pointer = String::new();
        for (list, index) in &self.place.steps[..self.place.depth] {
            let _ = write!(pointer, "/{list}/{index}");
        }
        if !field.is_empty() {
            let _ = write!(pointer, "/{field}");
        }
        pointer
    }
}
