//! The component `carousel`: cards, which have components of their own.

use super::{
    expected::ExpectedCards,
    position::Position,
    refusal::RefusalCode,
    translator::{Part, Scope, Translator, index_of},
};
use crate::document::{Json, pointer::Segment};

impl<'d> Translator<'d> {
    /// The values of the cards by index.
    pub(super) fn cards(
        &mut self,
        expected: Option<&ExpectedCards<'_>>,
        component: Option<&Position<'d>>,
        scope: &Scope<'d>,
    ) -> Json<'d> {
        let part = scope.part("carousel", "cards");
        let given = component.map(|it| it.field("cards"));
        let count = given.as_ref().map_or(0, Position::count);
        let Some(expected) = expected else {
            if let (Some(given), 1..) = (given, count) {
                self.findings.add(&given, RefusalCode::ParameterFormat, || {
                    format!("{}: the template has no cards", part.label)
                });
            }
            return Json::Null;
        };
        let expected_count = expected.count(count);
        let mut cards: Vec<Option<Json<'d>>> = Vec::new();
        cards.resize_with(expected_count, || None);
        for card in given.iter().flat_map(Position::items).take(expected_count) {
            let Some(index) = self.card_index(&part, &card, &cards) else { continue };
            let Some(expected) = expected.card(index) else { continue };
            let inner = part.inner(Segment::Index(index));
            let label = format!("{}: card {index}: ", part.label);
            let components = card.field("components");
            let scope = Scope { label, value: inner.value, components };
            cards[index] = Some(Json::Object(self.message(expected, &scope)));
        }
        let missing = (0..expected_count).filter(|index| cards[*index].is_none());
        let missing: Vec<String> = missing.map(|it| it.to_string()).collect();
        for index in &missing {
            self.reported.push(part.inner(Segment::Key(index)).value);
        }
        if count != expected_count {
            let message = || {
                let missing = match &missing[..] {
                    [] => String::new(),
                    missing => format!("; missing: card_index {}", missing.join(", ")),
                };
                format!(
                    "{}: number of cards ({count}) does not match the expected number of cards ({expected_count}){missing}",
                    part.label
                )
            };
            let code = RefusalCode::ParameterCount;
            match &given {
                Some(given) => self.findings.add(given, code, message),
                None => self.findings.add_at_end(&scope.components, code, message),
            }
        }
        Json::Array(cards.into_iter().map(|it| it.unwrap_or(Json::Null)).collect())
    }

    /// The index of a card, which must be free; reports any other.
    fn card_index(
        &mut self,
        part: &Part,
        card: &Position<'d>,
        cards: &[Option<Json<'d>>],
    ) -> Option<usize> {
        if !matches!(card.value, Some(Json::Object(_))) {
            let message = format!("a card must be an object, not {}", card.kind());
            self.report_invalid(part, card, &message);
            return None;
        }
        let at = card.field("card_index");
        if !self.is_present(part, &at) {
            return None;
        }
        let index = index_of(&at).filter(|index| matches!(cards.get(*index), Some(None)));
        if index.is_none() {
            let max = cards.len().saturating_sub(1);
            let message = format!("card_index must be 0 to {max}, a different one for each card");
            self.report_invalid(part, &at, &message);
        }
        index
    }
}
