//! What one step of retention deletes.

use crate::{
    StoreError,
    stored_row::{Row, StoredRow as _},
};

/// Maximum number of deleted templates whose rows one transaction deletes.
pub(super) const MAX_PURGE_TEMPLATES: i64 = 200;

/// Maximum number of versions that one transaction deletes.
const MAX_PURGE_VERSIONS: u64 = 1_000;

/// Maximum number of quota bytes that one transaction deletes: few enough that no write waits long.
const MAX_PURGE_BYTES: i64 = 8 << 20;

/// A deleted template whose last event has expired.
pub(super) struct DeletedTemplate {
    /// The number of that event.
    seq: u64,
    id: i64,
    /// How many former versions it has.
    former: u64,
    /// The quota bytes of all its versions.
    bytes: i64,
}

impl DeletedTemplate {
    /// The template in a row.
    pub(super) fn read(row: &Row<'_>) -> Result<Self, StoreError> {
        Ok(Self {
            seq: row.number("seq")?,
            id: row.value("id")?,
            former: row.number("former")?,
            bytes: row.value("bytes")?,
        })
    }
}

/// What a step of retention deletes: events, and the rows of templates that no event is about any
/// more.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct PurgePlan {
    /// The last of the events.
    pub(super) last: u64,
    /// The ids of the templates.
    pub(super) templates: Vec<i64>,
    /// Their quota bytes.
    pub(super) bytes: i64,
    /// The id of a template that is too large for one transaction: only its oldest former versions
    /// are deleted, and the next steps continue with it.
    pub(super) partial: Option<i64>,
}

impl PurgePlan {
    /// Plans the deletion of the expired events up to `last`; `deleted` are the first
    /// [`MAX_PURGE_TEMPLATES`] of the templates whose deletion is among them. The last event moves
    /// back to the last template for which there is room.
    pub(super) fn new(last: u64, deleted: &[DeletedTemplate]) -> Self {
        let mut plan = Self { last, templates: Vec::new(), bytes: 0, partial: None };
        let mut versions = 0;
        for template in deleted {
            versions += template.former + 1;
            let has_room =
                versions <= MAX_PURGE_VERSIONS && plan.bytes + template.bytes <= MAX_PURGE_BYTES;
            let is_first = plan.templates.is_empty();
            if !has_room && (!is_first || template.former > 0) {
                plan.last = template.seq - 1;
                plan.partial = is_first.then_some(template.id);
                return plan;
            }
            plan.templates.push(template.id);
            plan.bytes += template.bytes;
        }
        // There may be more of them.
        if let Some(newest) = deleted.last()
            && i64::try_from(deleted.len()).is_ok_and(|read| read >= MAX_PURGE_TEMPLATES)
        {
            plan.last = newest.seq;
        }
        plan
    }
}

/// The oldest former versions of a template: one, or as many as one transaction deletes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct OldestVersions {
    /// The number of the last of them.
    pub(super) last: i64,
    /// Their quota bytes.
    pub(super) bytes: i64,
}

impl OldestVersions {
    /// How many versions to read.
    pub(super) const MAX: i64 = MAX_PURGE_VERSIONS.cast_signed();

    /// Chooses among single versions, oldest first. `None` if there are none.
    pub(super) fn choose(versions: &[Self]) -> Option<Self> {
        let (first, others) = versions.split_first()?;
        let mut chosen = *first;
        for version in others {
            let bytes = chosen.bytes + version.bytes;
            if bytes > MAX_PURGE_BYTES {
                break;
            }
            chosen = Self { last: version.last, bytes };
        }
        Some(chosen)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn deleted(seq: u64, former: u64) -> DeletedTemplate {
        DeletedTemplate { seq, id: 100 + i64::try_from(seq).unwrap(), former, bytes: 10 }
    }

    #[test]
    fn a_purge_ends_at_the_last_template_that_it_has_room_for() {
        let plan =
            |last, templates: Vec<i64>, bytes| PurgePlan { last, templates, bytes, partial: None };
        assert_eq!(PurgePlan::new(9, &[]), plan(9, vec![], 0));
        let few = [deleted(3, 0), deleted(5, 7)];
        assert_eq!(PurgePlan::new(9, &few), plan(9, vec![103, 105], 20));
        let many = [deleted(3, 600), deleted(5, 600)];
        assert_eq!(PurgePlan::new(9, &many), plan(4, vec![103], 10));
        let large = |seq| DeletedTemplate { bytes: MAX_PURGE_BYTES / 2 + 1, ..deleted(seq, 0) };
        let purge = PurgePlan::new(9, &[large(3), large(5)]);
        assert_eq!(purge, plan(4, vec![103], MAX_PURGE_BYTES / 2 + 1));
        let most: Vec<_> = (1..=200).map(|seq| deleted(seq, 0)).collect();
        assert_eq!(PurgePlan::new(999, &most).last, 200);
    }

    #[test]
    fn a_template_that_is_too_large_for_a_purge_loses_its_oldest_versions_first() {
        let large = DeletedTemplate { bytes: MAX_PURGE_BYTES + 1, ..deleted(3, 1) };
        for template in [large, deleted(3, 1_000)] {
            let expected = PurgePlan { last: 2, templates: vec![], bytes: 0, partial: Some(103) };
            assert_eq!(PurgePlan::new(9, &[template, deleted(5, 0)]), expected);
        }
        // A single version cannot be divided.
        let single = DeletedTemplate { bytes: MAX_PURGE_BYTES + 1, ..deleted(3, 0) };
        assert_eq!(PurgePlan::new(9, &[single]).templates, [103]);

        let choose = |bytes: &[i64]| {
            let versions = (1..).zip(bytes).map(|(last, &bytes)| OldestVersions { last, bytes });
            OldestVersions::choose(&versions.collect::<Vec<_>>()).map(|it| (it.last, it.bytes))
        };
        assert_eq!(choose(&[]), None);
        assert_eq!(choose(&[1, 2, 3]), Some((3, 6)));
        assert_eq!(choose(&[MAX_PURGE_BYTES + 1, 1]), Some((1, MAX_PURGE_BYTES + 1)));
        assert_eq!(choose(&[MAX_PURGE_BYTES - 1, 1, 1]), Some((2, MAX_PURGE_BYTES)));
    }
}
