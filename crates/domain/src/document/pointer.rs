//! JSON pointers (RFC 6901): the segments of a path and how they are written.

use super::text::has_byte;

/// The most bytes that [`pointer`] writes, counted as in a JSON string, where one character can
/// take six bytes.
const MAX_POINTER_BYTES: usize = 300;

/// A pointer with at most so many bytes cannot be too long, whatever its characters.
const MAX_SHORT_BYTES: usize = MAX_POINTER_BYTES / 6;

/// One step of a path.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Segment<'k> {
    /// The key of an object's member.
    Key(&'k str),
    /// The index of an array's item.
    Index(usize),
}

impl Segment<'_> {
    /// Appends the segment to a pointer and escapes it.
    pub(crate) fn append_to(self, pointer: &mut String) {
        pointer.push('/');
        match self {
            Self::Key(key) => {
                // Few keys need escaping, and copying the whole key is fast.
                if !has_byte(key, |byte| matches!(byte, b'~' | b'/')) {
                    return pointer.push_str(key);
                }
                for character in key.chars() {
                    match character {
                        '~' => pointer.push_str("~0"),
                        '/' => pointer.push_str("~1"),
                        other => pointer.push(other),
                    }
                }
            }
            Self::Index(index) => pointer.push_str(itoa::Buffer::new().format(index)),
        }
    }
}

/// The JSON pointer of a path. A pointer that would get too long ends at the last segment that
/// fits, so that a document with huge keys cannot cause a huge response.
pub(crate) fn pointer<'s>(path: impl IntoIterator<Item = &'s Segment<'s>>) -> String {
    let mut pointer = String::with_capacity(MAX_SHORT_BYTES);
    for segment in path {
        let end = pointer.len();
        segment.append_to(&mut pointer);
        if is_too_long(&pointer) {
            pointer.truncate(end);
            break;
        }
    }
    pointer
}

/// Counts bytes only if the length does not decide it.
fn is_too_long(pointer: &str) -> bool {
    pointer.len() > MAX_SHORT_BYTES
        && pointer.chars().map(width_in_json).sum::<usize>() > MAX_POINTER_BYTES
}

/// Whether `pointer` names the value at `ancestor` or one inside it.
pub(crate) fn is_within(pointer: &str, ancestor: &str) -> bool {
    let rest = pointer.strip_prefix(ancestor);
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// The number of bytes that a character takes in a JSON string.
fn width_in_json(character: char) -> usize {
    match character {
        '\0'..='\u{1f}' => 6,
        '"' | '\\' => 2,
        other => other.len_utf8(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segments_are_escaped_and_separated_by_slashes() {
        assert_eq!(pointer(&[]), "");
        assert_eq!(pointer(&[Segment::Key("a/b~c"), Segment::Index(12)]), "/a~1b~0c/12");
    }

    #[test]
    fn a_pointer_ends_before_the_segment_that_makes_it_too_long() {
        let key = "\u{1}".repeat(49);
        let path = [Segment::Key(&key), Segment::Key("abcd"), Segment::Key("e"), Segment::Index(1)];
        assert_eq!(pointer(&path), format!("/{key}/abcd"));
    }

    #[test]
    fn a_pointer_is_within_itself_and_its_ancestors() {
        assert!(is_within("/a/1", "/a/1") && is_within("/a/1", "/a") && is_within("/a/1", ""));
        assert!(!is_within("/a/12", "/a/1") && !is_within("/a", "/a/1"));
    }
}
