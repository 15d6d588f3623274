//! Invisible characters: which exist, and where emoji and scripts require them.

use icu_properties::{
    props::{
        BinaryProperty, EmojiModifier, EnumeratedProperty, ExtendedPictographic,
        IndicSyllabicCategory, JoiningType, LineBreak, Script, VariationSelector,
    },
    script::ScriptWithExtensions,
};

use super::limited;
use crate::{
    document::text::{is_directional, is_hidden},
    violation::{Span, TextWarning, WarningRule, pluralized},
};

/// Warns of each run of invisible characters in a string.
pub(super) fn check(text: &str, hint: &str) -> Vec<TextWarning> {
    // Most texts contain no such character, not even one that is accepted where it is.
    if !text.chars().any(is_hidden) {
        return Vec::new();
    }
    let text: Vec<char> = text.chars().collect();
    let runs = runs(&text);
    let warning = |(rule, span): &(WarningRule, Span)| {
        let message = message(*rule, &text[span.start..span.end]);
        TextWarning::new(*rule, message, hint).at(*span)
    };
    let rules = [WarningRule::InvisibleCharacter, WarningRule::BidiCharacter];
    let of = |rule| runs.iter().filter(move |(found, _)| *found == rule);
    rules.into_iter().flat_map(|rule| limited(of(rule), warning)).collect()
}

/// The runs of consecutive characters that the same rule is against, in one pass: looking up the
/// properties of a character and its neighbours is the expensive part.
fn runs(text: &[char]) -> Vec<(WarningRule, Span)> {
    let mut runs: Vec<(WarningRule, Span)> = Vec::new();
    for (at, character) in text.iter().enumerate() {
        let Some(rule) = is_hidden(*character).then(|| finding(text, at)).flatten() else {
            continue;
        };
        match runs.last_mut() {
            Some((last, span)) if *last == rule && span.end == at => span.end = at + 1,
            _ => runs.push((rule, Span { start: at, end: at + 1 })),
        }
    }
    runs
}

/// Whether a character displays nothing: whitespace, or an invisible or directional character.
pub(crate) fn is_blank(character: char) -> bool {
    character.is_whitespace()
        || (!character.is_ascii() && (is_directional(character) || is_invisible(character)))
}

fn message(rule: WarningRule, run: &[char]) -> String {
    let first = format!("U+{:04X}", u32::from(run[0]));
    match (rule, name(run[0])) {
        (WarningRule::BidiCharacter, _) if run.len() > 1 => {
            let count = pluralized(run.len(), "consecutive directional character");
            format!("contains {count}, starting with {first}")
        }
        _ if run.len() > 1 => {
            let count = pluralized(run.len(), "consecutive invisible character");
            format!("contains {count}, starting with {first}")
        }
        (_, Some(name)) => format!("contains the {name} {first}"),
        _ => format!("contains the invisible character {first}"),
    }
}

/// The rule against the character at index `at`, if there is one.
fn finding(text: &[char], at: usize) -> Option<WarningRule> {
    let character = text[at];
    if character.is_ascii() {
        return None;
    }
    if is_directional(character) {
        return Some(WarningRule::BidiCharacter);
    }
    let before = at.checked_sub(1).map(|at| text[at]);
    let after = text.get(at + 1).copied();
    let is_visible = |it: Option<char>| it.is_some_and(|it| !is_blank(it) && !is_selector(it));
    let either = |test: fn(char) -> bool| before.is_some_and(test) || after.is_some_and(test);
    let is_allowed = match character {
        // The zero-width space marks possible line breaks in scripts without spaces.
        '\u{200b}' => either(is_unspaced),
        // Persian writes the non-joiner between a word and its ending. The word may be a
        // placeholder.
        '\u{200c}' => either(is_joining) && is_visible(before) && is_visible(after),
        '\u{200d}' => either(is_joining) || joins_emoji(text, at),
        // The Mongolian vowel separator follows a letter.
        '\u{180e}' => before.is_some_and(is_mongolian_letter),
        '\u{e0020}'..='\u{e007f}' => is_in_flag(text, at),
        _ if is_selector(character) => is_visible(before),
        _ => !is_invisible(character),
    };
    (!is_allowed).then_some(WarningRule::InvisibleCharacter)
}

/// Whether a character is invisible without being whitespace, directional or a variation selector.
fn is_invisible(character: char) -> bool {
    is_hidden(character) && !is_directional(character) && !is_selector(character)
}

/// Whether a character selects the appearance of the one before it.
fn is_selector(character: char) -> bool {
    VariationSelector::for_char(character)
}

/// Whether a character belongs to a cursive or Brahmic script. Both use joiners.
fn is_joining(character: char) -> bool {
    // No such script has characters in ASCII, or among the pictographs and all that follow them.
    if character.is_ascii() || character >= '\u{1f000}' || is_blank(character) {
        return false;
    }
    let is_cursive = !matches!(
        JoiningType::for_char(character),
        JoiningType::NonJoining | JoiningType::Transparent
    );
    // Arabic also uses joiners next to digits, vowel marks and letters that do not join.
    let is_arabic = || ScriptWithExtensions::new().has_script(character, Script::Arabic);
    // The excluded categories contain characters of other scripts, such as digits and dashes.
    let is_syllabic = !matches!(
        IndicSyllabicCategory::for_char(character),
        IndicSyllabicCategory::Other
            | IndicSyllabicCategory::ConsonantPlaceholder
            | IndicSyllabicCategory::Number
            | IndicSyllabicCategory::SyllableModifier
    );
    // Thai and Lao have syllabic categories, but no conjuncts that a joiner could affect.
    let has_conjuncts = || !matches!(Script::for_char(character), Script::Thai | Script::Lao);
    is_cursive || is_arabic() || (is_syllabic && has_conjuncts())
}

/// Whether a character belongs to a script without spaces between words, where line breaking
/// needs a dictionary or syllable rules.
fn is_unspaced(character: char) -> bool {
    let is_unspaced = matches!(
        LineBreak::for_char(character),
        LineBreak::ComplexContext
            | LineBreak::Aksara
            | LineBreak::AksaraPrebase
            | LineBreak::AksaraStart
            | LineBreak::Virama
            | LineBreak::ViramaFinal
    );
    // Tibetan separates syllables with a visible mark: its letters have no special class.
    is_unspaced || Script::for_char(character) == Script::Tibetan
}

fn is_mongolian_letter(character: char) -> bool {
    character.is_alphabetic() && Script::for_char(character) == Script::Mongolian
}

/// Whether the joiner at index `at` is between two emoji; the first may have a variation selector.
fn joins_emoji(text: &[char], at: usize) -> bool {
    let before = match text[..at] {
        [.., emoji, '\u{fe0f}'] | [.., emoji] => is_pictograph(emoji),
        [] => false,
    };
    before && text.get(at + 1).is_some_and(|it| is_pictograph(*it))
}

/// Whether a character can be part of a sequence of joined emoji: a pictograph, or the skin tone
/// after one.
fn is_pictograph(character: char) -> bool {
    ExtendedPictographic::for_char(character) || EmojiModifier::for_char(character)
}

/// Whether a tag character is part of a flag such as Scotland's: a black flag, three to six
/// letters or digits as tags, and the end tag. No Unicode property describes these sequences.
fn is_in_flag(text: &[char], at: usize) -> bool {
    const MAX_TAGS: usize = 7;
    let is_tag = |it: &char| matches!(it, '\u{e0030}'..='\u{e0039}' | '\u{e0061}'..='\u{e007a}');
    let nearest = at.saturating_sub(MAX_TAGS);
    let Some(flag) = text[nearest..at].iter().rposition(|it| *it == '\u{1f3f4}') else {
        return false;
    };
    let tags = &text[nearest + flag + 1..];
    let letters = tags.iter().take(MAX_TAGS).take_while(|it| is_tag(it)).count();
    let has_end = tags.get(letters) == Some(&'\u{e007f}');
    (3..MAX_TAGS).contains(&letters) && has_end && at <= nearest + flag + 1 + letters
}

/// The name of an invisible character, for messages.
fn name(character: char) -> Option<&'static str> {
    Some(match character {
        '\u{ad}' => "soft hyphen",
        '\u{200b}' => "zero-width space",
        '\u{200c}' => "zero-width non-joiner",
        '\u{200d}' => "zero-width joiner",
        '\u{2060}' => "word joiner",
        '\u{feff}' => "byte order mark",
        '\u{180e}' => "Mongolian vowel separator",
        '\u{115f}' | '\u{1160}' | '\u{3164}' | '\u{ffa0}' => "Hangul filler",
        '\u{2800}' => "blank braille pattern",
        '\u{e0000}'..='\u{e007f}' => "invisible tag character",
        '\u{61c}' => "Arabic letter mark",
        '\u{200e}' => "left-to-right mark",
        '\u{200f}' => "right-to-left mark",
        '\u{202a}' => "left-to-right embedding",
        '\u{202b}' => "right-to-left embedding",
        '\u{202c}' => "end of a directional embedding",
        '\u{202d}' => "left-to-right override",
        '\u{202e}' => "right-to-left override",
        '\u{2066}' => "left-to-right isolate",
        '\u{2067}' => "right-to-left isolate",
        '\u{2068}' => "first-strong isolate",
        '\u{2069}' => "end of a directional isolate",
        _ if is_selector(character) => "variation selector",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(text: &str) -> Vec<String> {
        let line = |warning: &TextWarning| {
            let span = warning.span.unwrap();
            format!("{} {}..{}", warning.rule.id(), span.start, span.end)
        };
        check(text, "").iter().map(line).collect()
    }

    #[test]
    fn each_run_of_invisible_characters_is_reported() {
        for invisible in [
            '\u{ad}',
            '\u{34f}',
            '\u{115f}',
            '\u{1160}',
            '\u{180e}',
            '\u{200b}',
            '\u{200c}',
            '\u{200d}',
            '\u{2060}',
            '\u{2061}',
            '\u{2064}',
            '\u{206a}',
            '\u{2800}',
            '\u{3164}',
            '\u{feff}',
            '\u{ffa0}',
            '\u{fff9}',
            '\u{e0001}',
            '\u{e0041}',
            '\u{e01f0}',
        ] {
            assert_eq!(
                report(&format!("aé{invisible}b")),
                ["invisible-character 2..3"],
                "{invisible:?}"
            );
            assert_eq!(
                report(&invisible.to_string()),
                ["invisible-character 0..1"],
                "{invisible:?}"
            );
        }
        assert_eq!(
            report("\u{feff}a\u{200b}\u{2060}\u{200b}"),
            ["invisible-character 0..1", "invisible-character 2..5"]
        );
        let pasted = check(&"Silben\u{ad}".repeat(200), "");
        assert_eq!(pasted.len(), 5);
        assert!(pasted[4].message.ends_with("(and 195 more times in this text)"));
    }

    #[test]
    fn directional_characters_have_their_own_rule() {
        for invisible in
            ['\u{61c}', '\u{200e}', '\u{200f}', '\u{202a}', '\u{202e}', '\u{2066}', '\u{2069}']
        {
            assert_eq!(report(&format!("a{invisible}b")), ["bidi-character 1..2"], "{invisible:?}");
        }
        assert_eq!(
            report("\u{202e}\u{200b}x\u{202c}"),
            ["invisible-character 1..2", "bidi-character 0..1", "bidi-character 3..4"]
        );
        assert_eq!(check("a\u{202e}", "")[0].message, "contains the right-to-left override U+202E");
    }

    #[test]
    fn characters_that_emoji_and_scripts_require_are_accepted() {
        for text in [
            "👩\u{200d}🚀 👨\u{200d}👩\u{200d}👧 🏳\u{fe0f}\u{200d}🌈 👩🏽\u{200d}💻 ❤\u{fe0f}\u{200d}🔥",
            "1\u{fe0f}\u{20e3} ☎\u{fe0e} 葛\u{e0100}",
            "🏴\u{e0067}\u{e0062}\u{e0073}\u{e0063}\u{e0074}\u{e007f} Alba",
            "می\u{200c}خواهم {{1}}\u{200c}ها PDF\u{200c}ها",
            "ه\u{200d} ۱۴۴۵ کتابِ\u{200c}PDF",
            "क्\u{200d}ष क्\u{200c}ष ශ්\u{200d}රී",
            "ខ្ញុំ\u{200b}ស្រលាញ់ ฉัน\u{200b}รัก",
            "ᠬ\u{180e}ᠠ",
            "ümlaut, ¿qué?, 日本語, a\u{a0}b",
        ] {
            assert_eq!(report(text), [""; 0], "{text}");
        }
    }

    #[test]
    fn joiners_tags_and_selectors_that_nothing_requires_are_reported() {
        for (text, at) in [
            ("a\u{200d}b", 1),
            ("👩\u{200d}", 1),
            ("👩 \u{200d}🚀", 2),
            ("خ\u{200c} ", 1),
            ("a\u{200c}b", 1),
            ("🏴\u{e0067}", 1),
            ("a \u{fe0f}", 2),
            ("\u{fe0f}a", 0),
        ] {
            assert_eq!(report(text), [format!("invisible-character {at}..{}", at + 1)], "{text:?}");
        }
        let hidden_tags: String = "hello".bytes().map(tag).collect();
        assert_eq!(report(&format!("é{hidden_tags}")), ["invisible-character 1..6"]);
        assert_eq!(report("😀\u{fe0f}\u{fe01}\u{fe02}"), ["invisible-character 2..4"]);
    }

    fn tag(letter: u8) -> char {
        char::from_u32(0xe0000 + u32::from(letter)).unwrap()
    }
}
