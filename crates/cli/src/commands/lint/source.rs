//! Locates values in a JSON text: by JSON pointer, and single characters of a string even if they are
//! escaped.

use std::{iter, ops::Range};

use galley_domain::violation::Span;

/// The byte range of a value and, for a member of an object, of its key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SourceLocation {
    pub(super) key: Option<Range<usize>>,
    pub(super) value: Range<usize>,
}

/// The outermost value.
pub(super) fn root(text: &str) -> Range<usize> {
    let start = skip_space(text, 0);
    start..value_end(text, start)
}

/// Locates a pointer inside a value. A missing member leads to the object or list that lacks it. Of
/// members with the same name, the first is found; for the last segment, `repeat` selects a later one
/// (1 is the second).
pub(super) fn find(text: &str, root: Range<usize>, pointer: &str, repeat: usize) -> SourceLocation {
    let mut location = SourceLocation { key: None, value: root };
    let mut segments = pointer.split('/').skip(1).peekable();
    while let Some(segment) = segments.next() {
        let skipped = if segments.peek().is_none() { repeat } else { 0 };
        let segment = segment.replace("~1", "/").replace("~0", "~");
        let is_it = |(index, child): &(usize, SourceLocation)| match &child.key {
            Some(key) => decoded(text, key.clone()).map(|(it, _)| it).eq(segment.chars()),
            None => segment.parse() == Ok(*index),
        };
        let found = children(text, location.value.start).enumerate().filter(is_it).nth(skipped);
        match found {
            Some((_, child)) => location = child,
            None => return SourceLocation { key: None, value: location.value },
        }
    }
    location
}

/// The members or items of the object or list at `at`.
pub(super) fn children(text: &str, at: usize) -> impl Iterator<Item = SourceLocation> {
    let opening = byte(text, at);
    let mut at = skip_space(text, at + 1);
    iter::from_fn(move || {
        let end = !matches!(opening, Some(b'{' | b'['));
        if end || matches!(byte(text, at), None | Some(b'}' | b']')) {
            return None;
        }
        let key = (opening == Some(b'{')).then(|| at..string_end(text, at));
        if let Some(key) = &key {
            let colon = skip_space(text, key.end);
            at = skip_space(text, colon + 1);
        }
        let value = at..value_end(text, at);
        at = skip_space(text, value.end);
        if byte(text, at) == Some(b',') {
            at = skip_space(text, at + 1);
        }
        Some(SourceLocation { key, value })
    })
}

/// The byte range of some characters of a string; `string` is its range including the quotes.
pub(super) fn characters(text: &str, string: Range<usize>, span: Span) -> Range<usize> {
    let mut ranges = decoded(text, string.clone()).map(|(_, range)| range).skip(span.start);
    let Some(first) = ranges.next() else { return string };
    let wanted = span.end.saturating_sub(span.start + 1);
    let last = ranges.take(wanted).last().unwrap_or_else(|| first.clone());
    first.start..last.end
}

/// The first bracket that is nested deeper than `max_depth`. The text is valid JSON up to there.
pub(super) fn nested_deeper(text: &str, max_depth: usize) -> Option<Range<usize>> {
    let (mut at, mut depth) = (0, 0);
    while let Some(found) = byte(text, at) {
        match found {
            b'"' => {
                at = string_end(text, at);
                continue;
            }
            b'{' | b'[' if depth == max_depth => return Some(at..at + 1),
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth -= 1,
            _ => {}
        }
        at += 1;
    }
    None
}

/// The characters of a string, each with its byte range.
fn decoded(text: &str, string: Range<usize>) -> impl Iterator<Item = (char, Range<usize>)> {
    let mut at = string.start + 1;
    let end = string.end.saturating_sub(1);
    iter::from_fn(move || {
        let rest = text.get(at..end).filter(|rest| !rest.is_empty())?;
        let (character, length) = match rest.strip_prefix('\\') {
            Some(escape) => unescaped(escape),
            None => rest.chars().next().map(|it| (it, it.len_utf8()))?,
        };
        let range = at..at + length;
        at = range.end;
        Some((character, range))
    })
}

/// The character of an escape sequence, and the length of the sequence with its backslash.
fn unescaped(escape: &str) -> (char, usize) {
    let unit = |from: usize| {
        let digits = escape.get(from..from + 4)?;
        u16::from_str_radix(digits, 16).ok()
    };
    let plain = match escape.bytes().next() {
        Some(b'b') => '\u{8}',
        Some(b'f') => '\u{c}',
        Some(b'n') => '\n',
        Some(b'r') => '\r',
        Some(b't') => '\t',
        Some(b'u') => {
            let low = escape.get(5..7).filter(|it| *it == "\\u").and_then(|_| unit(7));
            let units = [unit(1), low];
            // A pair of surrogates is one character.
            let mut read = char::decode_utf16(units.into_iter().flatten());
            let character = read.next().and_then(Result::ok);
            let length = if character.is_some_and(|it| it.len_utf16() == 2) { 12 } else { 6 };
            return (character.unwrap_or(char::REPLACEMENT_CHARACTER), length);
        }
        Some(other) => char::from(other),
        None => '\\',
    };
    (plain, 2)
}

fn byte(text: &str, at: usize) -> Option<u8> {
    text.as_bytes().get(at).copied()
}

fn skip_space(text: &str, at: usize) -> usize {
    let rest = text.as_bytes().get(at..).unwrap_or_default();
    let space = |byte: &&u8| matches!(byte, b' ' | b'\t' | b'\n' | b'\r');
    at + rest.iter().take_while(space).count()
}

fn value_end(text: &str, start: usize) -> usize {
    let (mut at, mut depth) = (start, 0_usize);
    while let Some(found) = byte(text, at) {
        match found {
            b'"' => at = string_end(text, at),
            b'{' | b'[' => {
                depth += 1;
                at += 1;
            }
            b'}' | b']' => {
                depth = depth.saturating_sub(1);
                at += 1;
            }
            // A number or a literal; below the top level also a separator.
            _ if depth > 0 => at += 1,
            _ => {
                let plain = |byte: &u8| !b",]} \t\r\n".contains(byte);
                let rest = &text.as_bytes()[at..];
                at += rest.iter().take_while(|byte| plain(byte)).count();
            }
        }
        if depth == 0 {
            return at;
        }
    }
    at
}

/// The end of the string that begins at `start`, its closing quote included.
fn string_end(text: &str, start: usize) -> usize {
    let mut at = start + 1;
    loop {
        match byte(text, at) {
            None => return text.len(),
            Some(b'"') => return at + 1,
            Some(b'\\') => at += 2,
            Some(_) => at += 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    const NASTY: &str = "\n { \"a/b~\" : [ 1 , -2.5e3,true ,null, \"}]\\\"\\\\\" ,[],{} ] ,\t\"\\u0061\":\r\n{\"\": \"x\"}, \"é日\":{\"a\":[[{\"a\":0}]]},\"\\ud83d\\ude00\":{} } ";

    fn all(value: &Value, pointer: &str, each: &mut impl FnMut(&str, &Value)) {
        each(pointer, value);
        match value {
            Value::Array(items) => {
                for (index, item) in items.iter().enumerate() {
                    all(item, &format!("{pointer}/{index}"), each);
                }
            }
            Value::Object(members) => {
                for (key, member) in members {
                    let key = key.replace('~', "~0").replace('/', "~1");
                    all(member, &format!("{pointer}/{key}"), each);
                }
            }
            _ => {}
        }
    }

    #[test]
    fn every_value_is_found_by_its_pointer() {
        let sample = include_str!("../../../../../bench/sample.json");
        for text in [NASTY, sample, "7", " \"x\" ", "[]", "{\n}", "[[],[[1]]]"] {
            let whole: Value = serde_json::from_str(text).unwrap();
            for text in [text, &whole.to_string(), &format!("{whole:#}")] {
                let mut found = 0;
                all(&whole, "", &mut |pointer, value| {
                    let location = find(text, root(text), pointer, 0);
                    let read: Value = serde_json::from_str(&text[location.value]).unwrap();
                    assert_eq!(read, *value, "{pointer} in {text}");
                    found += 1;
                });
                assert!(found > 0);
            }
        }
    }

    #[test]
    fn members_are_found_with_their_keys_and_missing_ones_lead_to_their_parent() {
        let found = |pointer: &str| {
            let location = find(NASTY, root(NASTY), pointer, 0);
            (location.key.map(|key| &NASTY[key]), &NASTY[location.value])
        };
        assert_eq!(found("/a/"), (Some("\"\""), "\"x\""));
        assert_eq!(found("/\u{1f600}"), (Some("\"\\ud83d\\ude00\""), "{}"));
        assert_eq!(found("/a~1b~0/1"), (None, "-2.5e3"));
        for missing in ["/a/b", "/a/b/c/d", "/a/0"] {
            assert_eq!(found(missing), (None, "{\"\": \"x\"}"), "{missing}");
        }
        assert_eq!(found("/é日/a/7").1, "[[{\"a\":0}]]");
    }

    #[test]
    fn each_member_with_a_repeated_name_is_found() {
        let text = r#"{"a":{"b":1},"a":{"b":2,"\u0062":3}}"#;
        let found = |pointer: &str, repeat| &text[find(text, root(text), pointer, repeat).value];
        assert_eq!(found("/a/b", 0), "1");
        assert_eq!(found("/a", 1), r#"{"b":2,"\u0062":3}"#);
        assert_eq!(found("/a", 2), text, "there is no third");
    }

    #[test]
    fn escaped_characters_are_found() {
        let text = r#"["aé日😀\n\"\\\/\u00e9\ud83d\ude00b\ud800\u0041"]"#;
        // The last escape but one has no partner: such a text is not JSON, but may not panic.
        let string = 1..text.len() - 1;
        let written: Vec<&str> = (0..13)
            .map(|at| &text[characters(text, string.clone(), Span { start: at, end: at + 1 })])
            .collect();
        let expected = [
            "a",
            "é",
            "日",
            "😀",
            r"\n",
            "\\\"",
            r"\\",
            r"\/",
            r"\u00e9",
            r"\ud83d\ude00",
            "b",
            r"\ud800",
            r"\u0041",
        ];
        assert_eq!(written, expected);
        let some = characters(text, string.clone(), Span { start: 3, end: 10 });
        assert_eq!(&text[some], r#"😀\n\"\\\/\u00e9\ud83d\ude00"#);
        let beyond = characters(text, string.clone(), Span { start: 12, end: 99 });
        assert_eq!(&text[beyond], r"\u0041");
        assert_eq!(characters(text, string.clone(), Span { start: 99, end: 100 }), string);
    }

    #[test]
    fn the_first_bracket_beyond_the_maximum_depth_is_found() {
        assert_eq!(nested_deeper("[\"[[[\", {\"a\": [1]}, [2]]", 2), Some(14..15));
        assert_eq!(nested_deeper("[[], [], {}]", 2), None);
    }
}
