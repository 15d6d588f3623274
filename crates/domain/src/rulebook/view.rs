//! The document as cross-field checks see it. The reader has already checked each field against
//! the schema and reported what does not match; the checks ignore such values.

use std::fmt;

use crate::{
    document::{Json, cursor::Cursor, pointer},
    rulebook::Category,
    violation::{Rule, TextViolation, TextWarning, ViolationCollector, Warnings},
};

/// A named rule about several fields.
#[derive(Clone, Copy)]
pub struct Check {
    /// What the rule is about.
    pub name: &'static str,
    pub(crate) run: fn(&DocumentView<'_>, &mut ViolationCollector),
}

impl fmt::Debug for Check {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.name)
    }
}

/// A template document that is being checked.
pub(crate) struct DocumentView<'d> {
    pub(crate) root: ObjectView<'d>,
    /// The category, if the document has a valid one.
    pub(crate) category: Option<Category>,
    // Cached because every check reads them.
    components: Vec<ObjectView<'d>>,
    buttons: Vec<ObjectView<'d>>,
}

impl<'d> DocumentView<'d> {
    pub(crate) fn new(root: &'d Json<'d>) -> Self {
        let category = root.get("category").and_then(Json::as_str).and_then(Category::parse);
        let root = ObjectView { cursor: Cursor::root(root), kind: "" };
        let components: Vec<_> = root.components().collect();
        let buttons = components.iter().find(|it| it.is("BUTTONS"));
        let buttons = buttons.into_iter().flat_map(|it| it.buttons()).collect();
        Self { root, category, components, buttons }
    }

    pub(crate) fn components(&self) -> impl Iterator<Item = ObjectView<'d>> + Clone {
        self.components.iter().copied()
    }

    /// The objects that have components: the message and each of its cards.
    pub(crate) fn component_owners(&self) -> impl Iterator<Item = ObjectView<'d>> {
        let cards = self.component("CAROUSEL").into_iter().flat_map(ObjectView::cards);
        [self.root].into_iter().chain(cards)
    }

    /// The first component of that type.
    pub(crate) fn component(&self, kind: &str) -> Option<ObjectView<'d>> {
        self.components.iter().find(|it| it.is(kind)).copied()
    }

    /// The first button of that type, not on a card.
    pub(crate) fn button(&self, kind: &str) -> Option<ObjectView<'d>> {
        self.buttons.iter().find(|it| it.is(kind)).copied()
    }

    /// The buttons of the message, not of its cards.
    pub(crate) fn buttons(&self) -> impl Iterator<Item = ObjectView<'d>> + Clone {
        self.buttons.iter().copied()
    }
}

// Limits on array lengths, for the schema and for the checks. Items beyond them are not read.
/// One component of each type.
pub(crate) const MAX_COMPONENTS: usize = 7;
pub(crate) const MAX_BUTTONS: usize = 10;
pub(crate) const MAX_CARDS: usize = 10;

/// An object of the document and its position.
#[derive(Clone, Copy)]
pub(crate) struct ObjectView<'d> {
    cursor: Cursor<'d, 'static>,
    /// The value of its `type`; empty if it has none.
    kind: &'d str,
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
    pub(crate) fn component(&self, kind: &str) -> Option<ObjectView<'d>> {
        let components = self.cursor.field("components");
        let mut items = components.array().iter().take(MAX_COMPONENTS);
        let index = items.position(|it| kind_of(it).eq_ignore_ascii_case(kind))?;
        Some(Self::at(components.item(index)))
    }

    fn at(cursor: Cursor<'d, 'static>) -> Self {
        Self { cursor, kind: cursor.value().map_or("", kind_of) }
    }

    /// The first `max` items of an array.
    fn items(
        self,
        array: &'static str,
        max: usize,
    ) -> impl Iterator<Item = ObjectView<'d>> + use<'d> {
        self.cursor.field(array).items().take(max).map(Self::at)
    }

    pub(crate) fn get(&self, field: &str) -> Option<&'d Json<'d>> {
        self.cursor.get(field)
    }

    /// The object in a field.
    pub(crate) fn object(&self, field: &'static str) -> Option<Self> {
        let object = self.cursor.field(field);
        matches!(object.value(), Some(Json::Object(_))).then(|| Self::at(object))
    }

    /// The string in a field, or the strings of the list in it, each with its position.
    pub(crate) fn strings(&self, field: &'static str) -> impl Iterator<Item = (&'d str, Self)> {
        let field = self.cursor.field(field);
        let positions = std::iter::once(field).chain(field.items());
        positions.filter_map(|it| Some((it.value()?.as_str()?, Self::at(it))))
    }

    pub(crate) fn has(&self, field: &str) -> bool {
        self.get(field).is_some()
    }

    pub(crate) fn text(&self, field: &str) -> Option<&'d str> {
        self.cursor.get_str(field)
    }

    /// Whether its type is this one.
    pub(crate) fn is(&self, kind: &str) -> bool {
        self.kind.eq_ignore_ascii_case(kind)
    }

    /// Whether a field has this value, ignoring case.
    pub(crate) fn field_equals(&self, field: &str, value: &str) -> bool {
        self.text(field).is_some_and(|text| text.eq_ignore_ascii_case(value))
    }

    /// Reports a violation by the object itself.
    pub(crate) fn report(
        &self,
        violations: &mut ViolationCollector,
        violation: impl FnOnce() -> TextViolation,
    ) {
        violations.add_at(&self.cursor, violation);
    }

    /// Reports a violation by one of its fields.
    pub(crate) fn report_field(
        &self,
        field: &'static str,
        violations: &mut ViolationCollector,
        violation: impl FnOnce() -> TextViolation,
    ) {
        violations.add_at(&self.cursor.field(field), violation);
    }

    /// Discards the violations inside a field that must not be present at all.
    pub(crate) fn retract_field(&self, field: &str, violations: &mut ViolationCollector) {
        let ancestor = self.cursor.field(field).pointer();
        violations.retract(|it| pointer::is_within(&it.pointer, &ancestor));
    }

    /// Removes the violations of one rule from one of its fields.
    pub(crate) fn retract_rule(
        &self,
        field: &str,
        rule: Rule,
        violations: &mut ViolationCollector,
    ) {
        let ancestor = self.cursor.field(field).pointer();
        violations.retract(|it| it.rule == rule && pointer::is_within(&it.pointer, &ancestor));
    }

    /// Adds a warning about one of its fields.
    pub(crate) fn warn(&self, field: &str, warnings: &mut Warnings, warning: TextWarning) {
        warnings.add(|| warning.into_warning(self.cursor.field(field).pointer()));
    }
}

fn kind_of<'d>(object: &'d Json<'d>) -> &'d str {
    object.get("type").and_then(Json::as_str).unwrap_or_default()
}
