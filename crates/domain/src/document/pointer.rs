//! Where the reader stands in a document.

pub(crate) enum Step<'d> {
    Key(&'d str),
    Index(usize),
}

/// The JSON pointer of a path. A path through keys of absurd length ends at the last place that
/// can be named shortly, so that a hostile document cannot make a large answer.
pub(crate) fn pointer<'s>(path: impl IntoIterator<Item = &'s Step<'s>>) -> String {
    // Counted as it is written in an answer, where one character can take six bytes.
    const LONGEST: usize = 300;
    let mut pointer = String::new();
    let mut written = 0;
    for step in path {
        let step = match step {
            Step::Key(key) => key.replace('~', "~0").replace('/', "~1"),
            Step::Index(index) => index.to_string(),
        };
        written += 1 + step.chars().map(width_in_json).sum::<usize>();
        if written > LONGEST {
            break;
        }
        pointer.push('/');
        pointer.push_str(&step);
    }
    pointer
}

/// How many bytes a character takes in a JSON string.
fn width_in_json(character: char) -> usize {
    match character {
        '\0'..='\u{1f}' => 6,
        '"' | '\\' => 2,
        other => other.len_utf8(),
    }
}
