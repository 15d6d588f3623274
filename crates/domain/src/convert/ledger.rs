//! What is written down while a document is converted: notes, and where each piece came from.

use super::{Issue, Level, Note};

#[derive(Default)]
pub(super) struct Ledger {
    pub(super) notes: Vec<Note>,
    /// The place in the source of each component of the result.
    pub(super) components: Vec<usize>,
    /// The same for its buttons.
    pub(super) buttons: Vec<usize>,
}

impl Ledger {
    pub(super) fn note(
        &mut self,
        issue: Issue,
        pointer: impl Into<String>,
        message: impl Into<String>,
        hint: impl Into<String>,
    ) {
        self.notes.push(Note {
            pointer: pointer.into(),
            id: issue.id(),
            level: issue.level(),
            message: message.into(),
            hint: Some(hint.into()),
            span: None,
        });
    }

    /// Whether this was noted before.
    pub(super) fn has(&self, issue: Issue) -> bool {
        self.notes.iter().any(|note| note.id == issue.id())
    }

    /// The place in the source of what stands at a place of the result. What was left out has
    /// moved all that stood behind it.
    pub(super) fn in_source(&self, pointer: &str) -> String {
        let mut steps: Vec<String> = pointer.split('/').map(str::to_owned).collect();
        for (at, list, origins) in
            [(1, "components", &self.components), (3, "buttons", &self.buttons)]
        {
            let Some([name, index]) = steps.get_mut(at..at + 2) else { break };
            let origin = index.parse().ok().and_then(|index: usize| origins.get(index));
            if let (true, Some(origin)) = (*name == list, origin) {
                *index = origin.to_string();
            }
        }
        steps.join("/")
    }

    /// Whether something at that place, or below it, is known to be missing.
    pub(super) fn misses(&self, pointer: &str) -> bool {
        let below = |note: &Note| {
            let rest = note.pointer.strip_prefix(pointer);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        self.notes.iter().any(|note| note.level == Level::Incomplete && below(note))
    }
}
