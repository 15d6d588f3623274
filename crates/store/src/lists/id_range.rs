//! The range of template ids that a list reads, and its direction.

use galley_domain::id::TemplateId;

use crate::{ListOrder, ListQuery, encoding::key};

/// A range of template ids, bounds excluded, iterated from newest to oldest, or ascending.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct IdRange {
    pub(crate) newer_than: Option<TemplateId>,
    pub(crate) older_than: Option<TemplateId>,
    pub(crate) ascending: bool,
}

impl IdRange {
    pub(crate) const ALL: Self = Self { newer_than: None, older_than: None, ascending: false };

    /// The range that a page is read from: what follows the cursor `after`, or what precedes the
    /// cursor `before`, nearest first.
    pub(crate) fn of(query: &ListQuery) -> Self {
        let is_oldest_first = query.order == ListOrder::OldestFirst;
        let all = Self { ascending: is_oldest_first != query.before.is_some(), ..Self::ALL };
        match query.before.or(query.after) {
            Some(cursor) => all.resuming_after(cursor),
            None => all,
        }
    }

    /// The range on the other side of the cursor, starting with the cursor's template. `None` if
    /// the query has no cursor or does not check that side.
    pub(crate) fn beyond_cursor(query: &ListQuery) -> Option<Self> {
        let cursor = query.before.or(query.after.filter(|_| query.check_previous))?;
        let ascending = !Self::of(query).ascending;
        let with_cursor = if ascending { cursor.get() - 1 } else { cursor.get() + 1 };
        let all = Self { ascending, ..Self::ALL };
        Some(TemplateId::new(with_cursor).map_or(all, |start| all.resuming_after(start)))
    }

    /// The rest of the range after `last`, in iteration order.
    pub(crate) fn resuming_after(self, last: TemplateId) -> Self {
        if self.ascending {
            Self { newer_than: Some(last), ..self }
        } else {
            Self { older_than: Some(last), ..self }
        }
    }

    /// The part of the range before `end`, in iteration order.
    pub(crate) fn stopping_before(self, end: TemplateId) -> Self {
        if self.ascending {
            Self { older_than: Some(end), ..self }
        } else {
            Self { newer_than: Some(end), ..self }
        }
    }

    pub(crate) fn contains(self, id: TemplateId) -> bool {
        self.newer_than.is_none_or(|other| other < id)
            && self.older_than.is_none_or(|other| id < other)
    }

    /// The lower and upper bound as SQL parameters, both excluded.
    pub(crate) fn bounds(self) -> (i64, i64) {
        let above = self.newer_than.map_or(0, |id| key(id.get()));
        (above, self.older_than.map_or(i64::MAX, |id| key(id.get())))
    }

    /// The SQL sort direction.
    pub(crate) fn order(self) -> &'static str {
        if self.ascending { "ASC" } else { "DESC" }
    }

    /// Sorts ids into iteration order.
    pub(crate) fn sort(self, ids: &mut [TemplateId]) {
        ids.sort_unstable();
        if !self.ascending {
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

    /// The ids from 1 to 9 that are in a range, in iteration order.
    fn ids_in(range: IdRange) -> Vec<u64> {
        let mut ids: Vec<_> = (1..=9).map(id).filter(|id| range.contains(*id)).collect();
        range.sort(&mut ids);
        let (above, below) = range.bounds();
        assert!(ids.iter().all(|id| (above + 1..below).contains(&key(id.get()))), "{range:?}");
        ids.iter().map(|id| id.get()).collect()
    }

    #[test]
    fn the_cursor_separates_a_page_from_the_range_beyond_it() {
        let all = ListQuery::new(AccountId::new(1).unwrap(), 10);
        assert_eq!(ids_in(IdRange::of(&all)), [9, 8, 7, 6, 5, 4, 3, 2, 1]);
        assert_eq!(IdRange::beyond_cursor(&all), None);
        let after = ListQuery { after: Some(id(4)), ..all.clone() };
        assert_eq!(ids_in(IdRange::of(&after)), [3, 2, 1]);
        assert_eq!(IdRange::beyond_cursor(&after), None, "the query does not check that side");
        let check_previous = ListQuery { check_previous: true, ..after };
        assert_eq!(ids_in(IdRange::beyond_cursor(&check_previous).unwrap()), [4, 5, 6, 7, 8, 9]);
        let before = ListQuery { before: Some(id(4)), ..all };
        assert_eq!(ids_in(IdRange::of(&before)), [5, 6, 7, 8, 9]);
        assert_eq!(ids_in(IdRange::beyond_cursor(&before).unwrap()), [4, 3, 2, 1]);
    }

    #[test]
    fn oldest_first_turns_the_ranges_round() {
        let all = ListQuery {
            order: ListOrder::OldestFirst,
            check_previous: true,
            ..ListQuery::new(AccountId::new(1).unwrap(), 10)
        };
        assert_eq!(ids_in(IdRange::of(&all)), [1, 2, 3, 4, 5, 6, 7, 8, 9]);
        let after = ListQuery { after: Some(id(4)), ..all.clone() };
        assert_eq!(ids_in(IdRange::of(&after)), [5, 6, 7, 8, 9]);
        assert_eq!(ids_in(IdRange::beyond_cursor(&after).unwrap()), [4, 3, 2, 1]);
        let before = ListQuery { before: Some(id(1)), ..all };
        assert!(ids_in(IdRange::of(&before)).is_empty());
        assert_eq!(ids_in(IdRange::beyond_cursor(&before).unwrap()), [1, 2, 3, 4, 5, 6, 7, 8, 9]);
    }

    #[test]
    fn an_id_splits_a_range_in_iteration_order() {
        let ascending = IdRange { ascending: true, ..IdRange::ALL };
        assert_eq!(ids_in(IdRange::ALL.resuming_after(id(4))), [3, 2, 1]);
        assert_eq!(ids_in(IdRange::ALL.stopping_before(id(7))), [9, 8]);
        assert_eq!(ids_in(ascending.resuming_after(id(7))), [8, 9]);
        assert_eq!(ids_in(ascending.stopping_before(id(4))), [1, 2, 3]);
        assert_eq!((IdRange::ALL.order(), ascending.order()), ("DESC", "ASC"));
    }
}
