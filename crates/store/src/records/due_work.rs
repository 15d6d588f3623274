//! What workers have to do, and when.

use jiff::Timestamp;

/// What has work now, and when more is due.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DueWork<T> {
    /// Work now.
    pub now: Vec<T>,
    /// The earliest real time at which more work is due.
    pub next_at: Option<Timestamp>,
}

impl<T> DueWork<T> {
    /// Sorts what has work at some time by whether that has come.
    pub(crate) fn at(
        at: Timestamp,
        work: impl IntoIterator<Item = (T, Option<Timestamp>)>,
    ) -> Self {
        let mut due = Self::default();
        for (it, due_at) in work {
            match due_at {
                Some(due_at) if due_at <= at => due.now.push(it),
                Some(later) => due.next_at = Some(due.next_at.map_or(later, |it| it.min(later))),
                None => {}
            }
        }
        due
    }
}

impl<T> Default for DueWork<T> {
    fn default() -> Self {
        Self { now: Vec::new(), next_at: None }
    }
}
