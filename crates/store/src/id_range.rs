//! Between which templates a list is walked, and which way; the same in every store.

use galley_domain::id::TemplateId;

use crate::{ListQuery, encoding::key};

/// From the newest to the oldest, or backwards.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct IdRange {
    pub(crate) newer_than: Option<TemplateId>,
    pub(crate) older_than: Option<TemplateId>,
    pub(crate) backwards: bool,
}

impl IdRange {
    pub(crate) const ALL: Self = Self { newer_than: None, older_than: None, backwards: false };

    /// Where the templates of a page are.
    pub(crate) fn of(listing: &ListQuery) -> Self {
        Self {
            newer_than: listing.before,
            older_than: listing.after,
            backwards: listing.before.is_some(),
        }
    }

    /// From the cursor, with the template it names, away from the page; none if the page has no
    /// such side.
    pub(crate) fn behind(listing: &ListQuery) -> Option<Self> {
        if let Some(before) = listing.before {
            let older_than = TemplateId::new(before.get() + 1);
            return Some(Self { older_than, ..Self::ALL });
        }
        let after = listing.after.filter(|_| listing.both_ways)?;
        Some(Self { newer_than: TemplateId::new(after.get() - 1), backwards: true, ..Self::ALL })
    }

    /// The rest, from this template on.
    pub(crate) fn from(self, last: TemplateId) -> Self {
        if self.backwards {
            Self { newer_than: Some(last), ..self }
        } else {
            Self { older_than: Some(last), ..self }
        }
    }

    /// The part before this template.
    pub(crate) fn up_to(self, last: TemplateId) -> Self {
        if self.backwards {
            Self { older_than: Some(last), ..self }
        } else {
            Self { newer_than: Some(last), ..self }
        }
    }

    pub(crate) fn holds(self, id: TemplateId) -> bool {
        self.newer_than.is_none_or(|other| other < id)
            && self.older_than.is_none_or(|other| id < other)
    }

    /// The ids it lies between, for a statement.
    pub(crate) fn bounds(self) -> (i64, i64) {
        let above = self.newer_than.map_or(0, |id| key(id.get()));
        (above, self.older_than.map_or(i64::MAX, |id| key(id.get())))
    }

    /// How ids follow one another, for a statement.
    pub(crate) fn order(self) -> &'static str {
        if self.backwards { "ASC" } else { "DESC" }
    }

    /// Puts ids in the order they are walked.
    pub(crate) fn sort(self, ids: &mut [TemplateId]) {
        ids.sort_unstable();
        if !self.backwards {
            ids.reverse();
        }
    }
}

#[cfg(test)]
mod tests {
    use galley_domain::id::AccountId;

    use super::*;

    fn id(id: u64) -> TemplateId {
        TemplateId::new(id).unwrap()
    }

    /// Which of the ids from 1 to 9 a stretch holds, as they are walked.
    fn walked(stretch: IdRange) -> Vec<u64> {
        let mut ids: Vec<_> = (1..=9).map(id).filter(|id| stretch.holds(*id)).collect();
        stretch.sort(&mut ids);
        let (above, below) = stretch.bounds();
        assert!(ids.iter().all(|id| (above + 1..below).contains(&key(id.get()))), "{stretch:?}");
        ids.iter().map(|id| id.get()).collect()
    }

    #[test]
    fn a_page_and_what_is_behind_it_are_the_two_sides_of_the_cursor() {
        let all = ListQuery::of(AccountId::new(1).unwrap(), 10);
        assert_eq!(walked(IdRange::of(&all)), [9, 8, 7, 6, 5, 4, 3, 2, 1]);
        assert_eq!(IdRange::behind(&all), None);
        let after = ListQuery { after: Some(id(4)), ..all.clone() };
        assert_eq!(walked(IdRange::of(&after)), [3, 2, 1]);
        assert_eq!(IdRange::behind(&after), None, "nobody asks");
        let both_ways = ListQuery { both_ways: true, ..after };
        assert_eq!(walked(IdRange::behind(&both_ways).unwrap()), [4, 5, 6, 7, 8, 9]);
        let before = ListQuery { before: Some(id(4)), ..all };
        assert_eq!(walked(IdRange::of(&before)), [5, 6, 7, 8, 9]);
        assert_eq!(walked(IdRange::behind(&before).unwrap()), [4, 3, 2, 1]);
    }

    #[test]
    fn a_template_divides_a_stretch_the_way_it_is_walked() {
        let backwards = IdRange { backwards: true, ..IdRange::ALL };
        assert_eq!(walked(IdRange::ALL.from(id(4))), [3, 2, 1]);
        assert_eq!(walked(IdRange::ALL.up_to(id(7))), [9, 8]);
        assert_eq!(walked(backwards.from(id(7))), [8, 9]);
        assert_eq!(walked(backwards.up_to(id(4))), [1, 2, 3]);
        assert_eq!((IdRange::ALL.order(), backwards.order()), ("DESC", "ASC"));
    }
}
