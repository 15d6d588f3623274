//! Lines and columns of a text, as people count them.

/// A place that people can go to. Both count from 1; columns count characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::commands) struct Position {
    pub(in crate::commands) line: usize,
    pub(in crate::commands) column: usize,
}

/// Knows the positions in a text.
pub(in crate::commands) struct Lines<'t> {
    text: &'t str,
    /// Some places with their positions: where each line begins, and a few in long lines.
    marks: Vec<(usize, Position)>,
}

impl<'t> Lines<'t> {
    pub(in crate::commands) fn new(text: &'t str) -> Self {
        // A file may be one line of millions of characters; nobody counts through that each time.
        const APART: usize = 1_024;
        let mut here = Position { line: 1, column: 1 };
        let mut marks = vec![(0, here)];
        for (at, character) in text.char_indices() {
            here.column += 1;
            if character == '\n' {
                here = Position { line: here.line + 1, column: 1 };
            }
            if here.column % APART == 1 {
                marks.push((at + character.len_utf8(), here));
            }
        }
        Self { text, marks }
    }

    /// The position of a byte of the text, which begins a character or is the end.
    pub(in crate::commands) fn position(&self, at: usize) -> Position {
        let next = self.marks.partition_point(|(mark, _)| *mark <= at);
        let (mark, position) = self.marks[next.saturating_sub(1)];
        let passed = self.text.get(mark..at).map_or(0, |text| text.chars().count());
        Position { column: position.column + passed, ..position }
    }

    /// Where a line begins; the end of the text, if there is no such line.
    pub(in crate::commands) fn begin(&self, line: usize) -> usize {
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
        assert_eq!((lines.begin(1), lines.begin(3), lines.begin(9)), (0, 4, text.len()));
    }

    #[test]
    fn a_long_line_is_counted_like_a_short_one() {
        let text = format!("a\n{}\nb", "é".repeat(5_000));
        let lines = Lines::new(&text);
        for column in [1, 2, 1_023, 1_024, 1_025, 1_026, 3_000, 5_001] {
            let position = lines.position(2 + 2 * (column - 1));
            assert_eq!(position, Position { line: 2, column });
        }
        assert_eq!(lines.begin(3), text.len() - 1);
    }
}
