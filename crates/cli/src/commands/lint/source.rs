//! Finds the places of values in a text that is known to be JSON: of what a pointer leads to, and
//! of single characters of a string, however they are escaped.

use std::{iter, ops::Range};

use galley_domain::violation::Span;

/// Where a value stands and, if it is a member, its key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Spot {
    pub(super) key: Option<Range<usize>>,
    pub(super) value: Range<usize>,
}

/// The outermost value.
pub(super) fn root(text: &str) -> Range<usize> {
    let start = skip_space(text, 0);
    start..value_end(text, start)
}

/// Where the pointer leads inside a value. What is missing leads to the object or list that lacks
/// it. Of members with the same name the first is found, as readers do, or a later one at the last
/// step of the pointer: `repeat` 1 is the second.
pub(super) fn find(text: &str, root: Range<usize>, pointer: &str, repeat: usize) -> Spot {
    let mut spot = Spot { key: None, value: root };
    let mut steps = pointer.split('/').skip(1).peekable();
    while let Some(step) = steps.next() {
        let skipped = if steps.peek().is_none() { repeat } else { 0 };
        let step = step.replace("~1", "/").replace("~0", "~");
        let is_it = |(index, child): &(usize, Spot)| match &child.key {
            Some(key) => decoded(text, key.clone()).map(|(it, _)| it).eq(step.chars()),
            None => step.parse() == Ok(*index),
        };
        let found = children(text, spot.value.start).enumerate().filter(is_it).nth(skipped);
        match found {
            Some((_, child)) => spot = child,
            None => return Spot { key: None, value: spot.value },
        }
    }
    spot
}

/// The members or items of the object or list at `at`; nothing else has any.
pub(super) fn children(text: &str, at: usize) -> impl Iterator<Item = Spot> {
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
        Some(Spot { key, value })
    })
}

/// Where some characters of a string stand; `string` is the place of the string with its quotes.
pub(super) fn characters(text: &str, string: Range<usize>, span: Span) -> Range<usize> {
    let mut places = decoded(text, string.clone()).map(|(_, place)| place).skip(span.start);
    let Some(first) = places.next() else { return string };
    let wanted = span.end.saturating_sub(span.start + 1);
    let last = places.take(wanted).last().unwrap_or_else(|| first.clone());
    first.start..last.end
}

/// The first bracket that is nested deeper than `most`. The text is JSON only up to there.
pub(super) fn nested_deeper(text: &str, most: usize) -> Option<Range<usize>> {
    let (mut at, mut depth) = (0, 0);
    while let Some(found) = byte(text, at) {
        match found {
            b'"' => {
                at = string_end(text, at);
                continue;
            }
            b'{' | b'[' if depth == most => return Some(at..at + 1),
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth -= 1,
            _ => {}
        }
        at += 1;
    }
    None
}

/// The characters of a string, each with the place where it is written.
fn decoded(text: &str, string: Range<usize>) -> impl Iterator<Item = (char, Range<usize>)> {
    let mut at = string.start + 1;
    let end = string.end.saturating_sub(1);
    iter::from_fn(move || {
        let rest = text.get(at..end).filter(|rest| !rest.is_empty())?;
        let (character, length) = match rest.strip_prefix('\\') {
            Some(escape) => unescaped(escape),
            None => rest.chars().next().map(|it| (it, it.len_utf8()))?,
        };
        let place = at..at + length;
        at = place.end;
        Some((character, place))
    })
}

/// What stands behind a backslash, and how long it is with the backslash.
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
            // A pair of surrogates is one character; anything else stands for itself.
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
            // A number or a word; inside of something deeper, also what divides values.
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
                    let spot = find(text, root(text), pointer, 0);
                    let read: Value = serde_json::from_str(&text[spot.value]).unwrap();
                    assert_eq!(read, *value, "{pointer} in {text}");
                    found += 1;
                });
                assert!(found > 0);
            }
        }
    }

    #[test]
    fn keys_are_found_with_their_members_and_what_is_missing_leads_to_who_lacks_it() {
        let found = |pointer: &str| {
            let spot = find(NASTY, root(NASTY), pointer, 0);
            (spot.key.map(|key| &NASTY[key]), &NASTY[spot.value])
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
    fn of_members_with_one_name_each_is_found() {
        let text = r#"{"a":{"b":1},"a":{"b":2,"\u0062":3}}"#;
        let found = |pointer: &str, repeat| &text[find(text, root(text), pointer, repeat).value];
        assert_eq!(found("/a/b", 0), "1");
        assert_eq!(found("/a", 1), r#"{"b":2,"\u0062":3}"#);
        assert_eq!(found("/a", 2), text, "there is no third");
    }

    #[test]
    fn characters_are_found_however_they_are_written() {
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
    fn the_bracket_that_is_too_deep_is_found() {
        assert_eq!(nested_deeper("[\"[[[\", {\"a\": [1]}, [2]]", 2), Some(14..15));
        assert_eq!(nested_deeper("[[], [], {}]", 2), None);
    }
}
