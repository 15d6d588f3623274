//! The entries of a buffered index that are in memory.

use std::collections::{HashMap, HashSet};

use galley_domain::id::TemplateId;

use super::Hash;

/// Entries merged for each entry added: a merge ends before the next one is due.
const MERGED_PER_ADDED: usize = 2;

/// How far the table contains the entries of the rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Progress {
    /// All entries of the rows up to this id.
    pub(super) merged_id: u64,
    /// The highest id of the rows that are being merged, and the last hash of them that is in the
    /// table.
    pub(super) merging: Option<(u64, Hash)>,
}

/// The entries of committed rows that are not in the table yet, or not all of them.
#[derive(Debug, Default)]
pub(super) struct Buffer {
    newest: HashMap<Hash, TemplateId>,
    /// How many rows are newer than those of the last merge, including deleted ones.
    added: usize,
    /// The current merge, with rows older than those of `newest`.
    merge: Option<Merge>,
    merged_id: u64,
    /// The highest id of a known row.
    pub(super) highest_id: u64,
}

#[derive(Debug)]
pub(super) struct Merge {
    /// In the order of the hashes. An entry that was removed has no id.
    entries: Vec<(Hash, Option<TemplateId>)>,
    /// How many of them are in the table.
    merged: usize,
    /// The highest id of these rows.
    last_id: u64,
}

impl Merge {
    fn new(mut entries: Vec<(Hash, Option<TemplateId>)>, last_id: u64) -> Self {
        entries.sort_unstable_by_key(|(hash, _)| *hash);
        Self { entries, merged: 0, last_id }
    }

    fn position(&self, hash: &Hash) -> Option<usize> {
        self.entries.binary_search_by(|(entry, _)| entry.cmp(hash)).ok()
    }
}

/// What a transaction changes in an index.
#[derive(Debug, Default)]
pub(in crate::sqlite) struct Changes {
    pub(super) added: HashMap<Hash, TemplateId>,
    pub(super) removed: HashSet<(Hash, TemplateId)>,
    pub(super) step: Option<MergeStep>,
    /// What was done, in order, so that the latest changes can be undone.
    log: Vec<Change>,
}

/// One change, with what it replaced.
#[derive(Debug)]
struct Change {
    hash: Hash,
    /// The row with the hash that was added before.
    added: Option<TemplateId>,
    /// The row whose removal is new.
    removed: Option<TemplateId>,
}

impl Changes {
    /// Adds the entry of a row that the transaction inserts.
    pub(in crate::sqlite) fn add(&mut self, hash: Hash, id: TemplateId) {
        let added = self.added.insert(hash, id);
        self.log.push(Change { hash, added, removed: None });
    }

    /// Removes the entry of a row that no longer has the hash.
    pub(super) fn remove(&mut self, hash: Hash, id: TemplateId) {
        let added = self.added.get(&hash).copied();
        if added == Some(id) {
            self.added.remove(&hash);
        }
        let removed = self.removed.insert((hash, id)).then_some(id);
        self.log.push(Change { hash, added, removed });
    }

    /// How many changes there are.
    pub(in crate::sqlite) fn position(&self) -> usize {
        self.log.len()
    }

    /// Undoes the changes after the first `position` ones.
    pub(in crate::sqlite) fn undo_to(&mut self, position: usize) {
        for Change { hash, added, removed } in self.log.drain(position..).rev() {
            match added {
                Some(id) => self.added.insert(hash, id),
                None => self.added.remove(&hash),
            };
            if let Some(id) = removed {
                self.removed.remove(&(hash, id));
            }
        }
    }
}

/// The entries of a merge that one transaction writes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct MergeStep {
    pub(super) entries: Vec<(Hash, TemplateId)>,
    pub(super) progress: Progress,
    /// How many entries of the merge are in the table afterwards.
    merged: usize,
}

impl Buffer {
    /// The buffer of a store that was just opened, with the rows after `merged_id`.
    pub(super) fn load(
        progress: Progress,
        rows: impl IntoIterator<Item = (TemplateId, Option<Hash>)>,
    ) -> Self {
        let merged_id = progress.merged_id;
        let mut buffer = Self { merged_id, highest_id: merged_id, ..Self::default() };
        let mut merging = Vec::new();
        for (id, hash) in rows {
            match progress.merging {
                Some((last_id, merged_to)) if id.get() <= last_id => {
                    merging.extend(hash.filter(|hash| *hash > merged_to).map(|it| (it, Some(id))));
                }
                _ => {
                    buffer.newest.extend(hash.map(|hash| (hash, id)));
                    buffer.added += 1;
                }
            }
            buffer.highest_id = buffer.highest_id.max(id.get());
        }
        if let Some((last_id, _)) = progress.merging {
            buffer.highest_id = buffer.highest_id.max(last_id);
            buffer.merge = Some(Merge::new(merging, last_id));
        }
        buffer
    }

    pub(super) fn find(&self, hash: &Hash) -> Option<TemplateId> {
        self.newest.get(hash).copied().or_else(|| {
            let merge = self.merge.as_ref()?;
            merge.entries[merge.position(hash)?].1
        })
    }

    fn add(&mut self, hash: Hash, id: TemplateId) {
        self.newest.insert(hash, id);
        self.added += 1;
        self.highest_id = self.highest_id.max(id.get());
    }

    fn remove(&mut self, hash: &Hash, id: TemplateId) {
        if self.newest.get(hash) == Some(&id) {
            self.newest.remove(hash);
        } else if let Some(merge) = &mut self.merge
            && let Some(found) = merge.position(hash)
            && merge.entries[found].1 == Some(id)
        {
            merge.entries[found].1 = None;
        }
    }

    /// The entries that a transaction with these changes merges.
    pub(super) fn next_step(&self, changes: &Changes) -> Option<MergeStep> {
        let merge = self.merge.as_ref()?;
        let left = merge.entries.len() - merge.merged;
        let count = left.min(MERGED_PER_ADDED * changes.added.len());
        if count == 0 && left > 0 {
            return None;
        }
        let merged = merge.merged + count;
        let entries = &merge.entries[merge.merged..merged];
        let progress = match entries.last() {
            Some((hash, _)) if count < left => {
                Progress { merged_id: self.merged_id, merging: Some((merge.last_id, *hash)) }
            }
            _ => Progress { merged_id: merge.last_id, merging: None },
        };
        let entries = entries.iter().filter_map(|(hash, id)| Some((*hash, (*id)?)));
        let entries = entries.filter(|entry| !changes.removed.contains(entry)).collect();
        Some(MergeStep { entries, progress, merged })
    }

    /// Applies the changes of a transaction that has been committed.
    pub(super) fn apply(&mut self, changes: Changes) {
        for (hash, id) in &changes.removed {
            self.remove(hash, *id);
        }
        for (hash, id) in changes.added {
            self.add(hash, id);
        }
        let Some(step) = changes.step else { return };
        self.merged_id = step.progress.merged_id;
        match &mut self.merge {
            Some(merge) if step.progress.merging.is_some() => merge.merged = step.merged,
            merge => *merge = None,
        }
    }

    /// The next merge, if it is due. To sort its entries takes a while, in which the buffer can be read.
    pub(super) fn due_merge(&self, max_entries: usize) -> Option<Merge> {
        let is_due = self.merge.is_none() && self.added >= max_entries;
        let entries = || self.newest.iter().map(|(hash, id)| (*hash, Some(*id))).collect();
        is_due.then(|| Merge::new(entries(), self.highest_id))
    }

    /// Starts a merge with all entries of `newest`, to which no entry was added meanwhile.
    pub(super) fn start(&mut self, merge: Merge) {
        self.merge = Some(merge);
        self.newest.clear();
        self.added = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAX_ENTRIES: usize = 4;

    fn id(id: u64) -> TemplateId {
        TemplateId::new(id).unwrap()
    }

    /// A hash whose order is the reverse of the number's.
    fn hash(number: u8) -> Hash {
        [u8::MAX - number; 16]
    }

    fn added(numbers: &[u8]) -> Changes {
        let added = numbers.iter().map(|number| (hash(*number), id(u64::from(*number)))).collect();
        Changes { added, ..Changes::default() }
    }

    /// Commits the changes and returns the entries that were merged with them.
    fn commit(buffer: &mut Buffer, mut changes: Changes) -> Option<(Vec<u64>, Progress)> {
        changes.step = buffer.next_step(&changes);
        let step = changes.step.clone();
        buffer.apply(changes);
        if let Some(merge) = buffer.due_merge(MAX_ENTRIES) {
            buffer.start(merge);
        }
        step.map(|step| (step.entries.iter().map(|(_, id)| id.get()).collect(), step.progress))
    }

    #[test]
    fn entries_are_merged_in_the_order_of_their_hashes_two_for_each_new_one() {
        let mut buffer = Buffer::default();
        assert_eq!(commit(&mut buffer, added(&[1, 2, 3])), None);
        assert_eq!(commit(&mut buffer, added(&[4])), None);
        assert_eq!(commit(&mut buffer, Changes::default()), None);
        let (merged, progress) = commit(&mut buffer, added(&[5])).unwrap();
        assert_eq!(merged, [4, 3]);
        assert_eq!(progress, Progress { merged_id: 0, merging: Some((4, hash(3))) });
        let (merged, progress) = commit(&mut buffer, added(&[6])).unwrap();
        assert_eq!(merged, [2, 1]);
        assert_eq!(progress, Progress { merged_id: 4, merging: None });
        assert_eq!(commit(&mut buffer, added(&[7])), None);
        for known in 5..=7 {
            assert_eq!(buffer.find(&hash(known)), Some(id(u64::from(known))));
        }
        assert_eq!(buffer.find(&hash(1)), None, "it is in the table");
    }

    #[test]
    fn removed_entries_are_not_merged() {
        let mut buffer = Buffer::default();
        commit(&mut buffer, added(&[1, 2, 3, 4]));
        let removal = |number: u8| (hash(number), id(u64::from(number)));
        let changes = Changes { removed: HashSet::from([removal(2)]), ..Changes::default() };
        assert_eq!(commit(&mut buffer, changes), None);
        assert_eq!(buffer.find(&hash(2)), None);
        // One that is removed by the transaction that would merge it.
        let changes = Changes { removed: HashSet::from([removal(4)]), ..added(&[5, 6]) };
        assert_eq!(commit(&mut buffer, changes).unwrap().0, [3, 1]);
    }

    #[test]
    fn a_merge_continues_after_a_restart() {
        let mut buffer = Buffer::default();
        commit(&mut buffer, added(&[1, 2, 3, 4]));
        let (_, progress) = commit(&mut buffer, added(&[5])).unwrap();
        let rows = (1..=5).map(|number| (id(u64::from(number)), Some(hash(number))));
        let mut buffer = Buffer::load(progress, rows);
        assert_eq!(buffer.highest_id, 5);
        assert_eq!(buffer.find(&hash(1)), Some(id(1)));
        assert_eq!(buffer.find(&hash(5)), Some(id(5)));
        let (merged, progress) = commit(&mut buffer, added(&[6])).unwrap();
        assert_eq!(merged, [2, 1]);
        assert_eq!(progress, Progress { merged_id: 4, merging: None });
    }

    #[test]
    fn entries_that_are_removed_soon_do_not_delay_the_next_merge() {
        let mut buffer = Buffer::default();
        for number in 1..=4 {
            commit(&mut buffer, added(&[number]));
            let removed = HashSet::from([(hash(number), id(u64::from(number)))]);
            commit(&mut buffer, Changes { removed, ..Changes::default() });
        }
        let (merged, progress) = commit(&mut buffer, added(&[5])).unwrap();
        assert_eq!((merged, progress.merged_id), (vec![], 4));
        // Nor do restarts in between.
        let rows = (1..=4).map(|number| (id(number), None));
        let mut buffer = Buffer::load(Progress::default(), rows);
        assert_eq!(buffer.highest_id, 4);
        buffer.start(buffer.due_merge(MAX_ENTRIES).unwrap());
        assert_eq!(commit(&mut buffer, Changes::default()).unwrap().1.merged_id, 4);
    }
}
