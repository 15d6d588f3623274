//! Line and column numbers of positions in a text.

/// A line and a column, both counted from 1; columns count characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::commands) struct Position {
    pub(in crate::commands) line: usize,
    pub(in crate::commands) column: usize,
}

/// Converts byte offsets of a text to positions.
pub(in crate::commands) struct Lines<'t> {
    text: &'t str,
    /// Offsets with their positions: the start of each line, and every 1,024 characters in long lines.
    marks: Vec<(usize, Position)>,
}

impl<'t> Lines<'t> {
    pub(in crate::commands) fn new(text: &'t str) -> Self {
        // Marks within a line keep lookups fast in a file that is one long line.
        const MARK_DISTANCE: usize = 1_024;
        let mut here = Position { line: 1, column: 1 };
        let mut marks = vec![(0, here)];
        for (at, character) in text.char_indices() {
            here.column += 1;
            if character == '\n' {
                here = Position { line: here.line + 1, column: 1 };
            }
            if here.column % MARK_DISTANCE == 1 {
                marks.push((at + character.len_utf8(), here));
            }
        }
        Self { text, marks }
    }

    /// The position of a byte offset, which must be a character boundary.
    pub(in crate::commands) fn position(&self, at: usize) -> Position {
        let next = self.marks.partition_point(|(mark, _)| *mark <= at);
        let (mark, position) = self.marks[next.saturating_sub(1)];
        let passed = self.text.get(mark..at).map_or(0, |text| text.chars().count());
        Position { column: position.column + passed, ..position }
    }

    /// The offset of the start of a line; the end of the text if there is no such line.
    pub(in crate::commands) fn start_of(&self, line: usize) -> usize {
        let first = self.marks.partition_point(|(_, position)| position.line < line);
        self.marks.get(first).map_or(self.text.len(), |(at, _)| *at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_count_lines_and_characters_from_one() {
        let text = "é\n\n日本x\r\n";
        let lines = Lines::new(text);
        let at = |at| {
            let Position { line, column } = lines.position(at);
            (line, column)
        };
        assert_eq!((at(0), at(2), at(3), at(4)), ((1, 1), (1, 2), (2, 1), (3, 1)));
        assert_eq!((at(7), at(10), at(text.len())), ((3, 2), (3, 3), (4, 1)));
        assert_eq!((lines.start_of(1), lines.start_of(3), lines.start_of(9)), (0, 4, text.len()));
    }

    #[test]
    fn columns_of_long_lines_are_exact() {
        let text = format!("a\n{}\nb", "é".repeat(5_000));
        let lines = Lines::new(&text);
        for column in [1, 2, 1_023, 1_024, 1_025, 1_026, 3_000, 5_001] {
            let position = lines.position(2 + 2 * (column - 1));
            assert_eq!(position, Position { line: 2, column });
        }
        assert_eq!(lines.start_of(3), text.len() - 1);
    }
}
