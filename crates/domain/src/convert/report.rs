//! The report of a conversion: its notes, and the origin of each component and button.

use super::{Issue, Level, Note};
use crate::document::pointer::is_within;

#[derive(Default)]
pub(super) struct ConversionReport {
    pub(super) notes: Vec<Note>,
    /// For each component of the result, its index in the source.
    pub(super) components: Vec<usize>,
    /// For each button of the result, its index in the source.
    pub(super) buttons: Vec<usize>,
}

impl ConversionReport {
    pub(super) fn add(
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

    /// Whether the issue has been reported.
    pub(super) fn has(&self, issue: Issue) -> bool {
        self.notes.iter().any(|note| note.id == issue.id())
    }

    /// Maps a pointer into the result to one into the source, where dropped components and buttons
    /// still count.
    pub(super) fn source_pointer(&self, pointer: &str) -> String {
        let mut segments: Vec<String> = pointer.split('/').map(str::to_owned).collect();
        for (at, array, origins) in
            [(1, "components", &self.components), (3, "buttons", &self.buttons)]
        {
            let Some([name, index]) = segments.get_mut(at..at + 2) else { break };
            let origin = index.parse().ok().and_then(|index: usize| origins.get(index));
            if let (true, Some(origin)) = (*name == array, origin) {
                *index = origin.to_string();
            }
        }
        segments.join("/")
    }

    /// Whether the value at that pointer, or one inside it, has been reported as incomplete.
    pub(super) fn is_incomplete(&self, pointer: &str) -> bool {
        let is_incomplete =
            |note: &Note| note.level == Level::Incomplete && is_within(&note.pointer, pointer);
        self.notes.iter().any(is_incomplete)
    }
}
