//! Characters that nobody sees: which they are, and where they are needed all the same.

use super::tell;
use crate::violation::Span;
use crate::violation::{TextWarning, WarningRule};

/// Runs of unseen characters in a string; `hint` is what to do about them there.
pub(super) fn look(text: &str, hint: &str) -> Vec<TextWarning> {
    // Most texts hold nothing of the kind; their bytes tell that quickly.
    if text.is_ascii() {
        return Vec::new();
    }
    let text: Vec<char> = text.chars().collect();
    let runs = |rule| {
        let unseen = move |at: usize, text: &[char]| unseen(text, at) == Some(rule);
        let text = &text;
        let mut at = 0;
        std::iter::from_fn(move || {
            let start = (at..text.len()).find(|at| unseen(*at, text))?;
            let end = (start..text.len()).find(|at| !unseen(*at, text)).unwrap_or(text.len());
            at = end;
            Some(Span { start, end })
        })
    };
    let note = |rule, span: Span| {
        let message = message(rule, &text[span.start..span.end]);
        TextWarning::new(rule, message, hint).at(span)
    };
    let rules = [WarningRule::InvisibleCharacter, WarningRule::BidiCharacter];
    rules.into_iter().flat_map(|rule| tell(runs(rule), |span| note(rule, span))).collect()
}

/// White space, and what takes no space at all.
pub(crate) fn is_space(character: char) -> bool {
    character.is_whitespace() || is_bidi(character) || is_invisible(character)
}

fn message(rule: WarningRule, run: &[char]) -> String {
    let first = format!("U+{:04X}", u32::from(run[0]));
    match (rule, name(run[0])) {
        (WarningRule::BidiCharacter, _) if run.len() > 1 => {
            format!("holds {} directional characters in a row, the first is {first}", run.len())
        }
        _ if run.len() > 1 => {
            format!("holds {} invisible characters in a row, the first is {first}", run.len())
        }
        (_, Some(name)) => format!("holds the {name} {first}"),
        _ => format!("holds the invisible character {first}"),
    }
}

/// Which advice is against the character at that place, if any is.
fn unseen(text: &[char], at: usize) -> Option<WarningRule> {
    let character = text[at];
    if is_bidi(character) {
        return Some(WarningRule::BidiCharacter);
    }
    let before = at.checked_sub(1).map(|at| text[at]);
    let behind = text.get(at + 1).copied();
    let visible = |it: Option<char>| it.is_some_and(|it| !is_space(it) && !is_selector(it));
    let either = |needs: fn(char) -> bool| before.is_some_and(needs) || behind.is_some_and(needs);
    let needed = match character {
        // Words of these scripts have no spaces between them; this is where a line may break.
        '\u{200b}' => either(is_unspaced),
        // Persian writes it between a word and its ending, and the word may be a placeholder.
        '\u{200c}' => either(is_joining) && visible(before) && visible(behind),
        '\u{200d}' => either(is_joining) || joins_emoji(text, at),
        '\u{180e}' => before.is_some_and(is_mongolian),
        '\u{e0020}'..='\u{e007f}' => is_in_flag(text, at),
        _ if is_selector(character) => visible(before),
        _ => !is_invisible(character),
    };
    (!needed).then_some(WarningRule::InvisibleCharacter)
}

fn is_bidi(character: char) -> bool {
    matches!(character,
        '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Unicode's default ignorable code points without directional ones and variation selectors, and
/// some that are blank without being white space.
fn is_invisible(character: char) -> bool {
    matches!(character,
        '\u{ad}' | '\u{34f}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180e}'
        | '\u{200b}'..='\u{200d}' | '\u{2060}'..='\u{2065}' | '\u{206a}'..='\u{206f}'
        | '\u{2800}' | '\u{3164}' | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}'
        | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e00ff}'
        | '\u{e01f0}'..='\u{e0fff}')
}

/// Characters that choose how the one before them looks.
fn is_selector(character: char) -> bool {
    matches!(character,
        '\u{180b}'..='\u{180d}' | '\u{180f}' | '\u{fe00}'..='\u{fe0f}' | '\u{e0100}'..='\u{e01ef}')
}

/// Scripts whose letters join, by their blocks: Arabic to Mandaic and its presentation forms, the
/// scripts of India and their kin, Mongolian, and some rarer ones.
fn is_joining(character: char) -> bool {
    let joins = matches!(character,
        '\u{600}'..='\u{8ff}' | '\u{900}'..='\u{dff}' | '\u{f00}'..='\u{109f}'
        | '\u{1780}'..='\u{18af}' | '\u{1a20}'..='\u{1bff}' | '\u{1cd0}'..='\u{1cff}'
        | '\u{a840}'..='\u{a8ff}' | '\u{a980}'..='\u{a9df}' | '\u{aa60}'..='\u{aa7f}'
        | '\u{aae0}'..='\u{aaff}' | '\u{abc0}'..='\u{abff}' | '\u{fb50}'..='\u{fdff}'
        | '\u{fe70}'..='\u{fefc}' | '\u{10a00}'..='\u{10bff}' | '\u{10d00}'..='\u{10d3f}'
        | '\u{11000}'..='\u{11dff}' | '\u{1e900}'..='\u{1e95f}');
    joins && !is_space(character)
}

/// Thai, Lao, Tibetan, Myanmar, Khmer, Tai Tham, Balinese, Javanese and their kin.
fn is_unspaced(character: char) -> bool {
    let unspaced = matches!(character,
        '\u{e00}'..='\u{109f}' | '\u{1780}'..='\u{17ff}' | '\u{1950}'..='\u{1aaf}'
        | '\u{1b00}'..='\u{1b7f}' | '\u{a980}'..='\u{a9ff}' | '\u{aa60}'..='\u{aadf}');
    unspaced && !is_space(character)
}

fn is_mongolian(character: char) -> bool {
    matches!(character, '\u{1820}'..='\u{18aa}')
}

/// Whether a joiner stands between two emoji; a selector may follow the first.
fn joins_emoji(text: &[char], at: usize) -> bool {
    let before = match text[..at] {
        [.., emoji, '\u{fe0f}'] | [.., emoji] => is_pictograph(emoji),
        [] => false,
    };
    before && text.get(at + 1).is_some_and(|it| is_pictograph(*it))
}

/// Arrows, signs and pictures, by their blocks; nothing else is ever joined into an emoji.
fn is_pictograph(character: char) -> bool {
    matches!(character, '\u{2190}'..='\u{27bf}' | '\u{2900}'..='\u{2bff}' | '\u{1f000}'..='\u{1faff}')
}

/// Whether a tag character is part of a flag such as Scotland's: a black flag, three to six
/// letters or digits as tags, the tag that ends them.
fn is_in_flag(text: &[char], at: usize) -> bool {
    const LONGEST: usize = 7;
    let is_tag = |it: &char| matches!(it, '\u{e0030}'..='\u{e0039}' | '\u{e0061}'..='\u{e007a}');
    let nearest = at.saturating_sub(LONGEST);
    let Some(flag) = text[nearest..at].iter().rposition(|it| *it == '\u{1f3f4}') else {
        return false;
    };
    let tags = &text[nearest + flag + 1..];
    let letters = tags.iter().take(LONGEST).take_while(|it| is_tag(it)).count();
    let ends = tags.get(letters) == Some(&'\u{e007f}');
    (3..LONGEST).contains(&letters) && ends && at <= nearest + flag + 1 + letters
}

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

    fn told(text: &str) -> Vec<String> {
        let line = |note: &TextWarning| {
            let span = note.span.unwrap();
            format!("{} {}..{}", note.rule.id(), span.start, span.end)
        };
        look(text, "").iter().map(line).collect()
    }

    #[test]
    fn what_nobody_sees_is_told_run_by_run() {
        for hidden in [
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
            assert_eq!(told(&format!("aé{hidden}b")), ["invisible-character 2..3"], "{hidden:?}");
            assert_eq!(told(&hidden.to_string()), ["invisible-character 0..1"], "{hidden:?}");
        }
        assert_eq!(
            told("\u{feff}a\u{200b}\u{2060}\u{200b}"),
            ["invisible-character 0..1", "invisible-character 2..5"]
        );
        let pasted = look(&"Silben\u{ad}".repeat(200), "");
        assert_eq!(pasted.len(), 5);
        assert!(pasted[4].message.ends_with("(and so at 195 more places of this text)"));
    }

    #[test]
    fn directional_characters_are_told_apart_from_invisible_ones() {
        for hidden in
            ['\u{61c}', '\u{200e}', '\u{200f}', '\u{202a}', '\u{202e}', '\u{2066}', '\u{2069}']
        {
            assert_eq!(told(&format!("a{hidden}b")), ["bidi-character 1..2"], "{hidden:?}");
        }
        assert_eq!(
            told("\u{202e}\u{200b}x\u{202c}"),
            ["invisible-character 1..2", "bidi-character 0..1", "bidi-character 3..4"]
        );
        assert_eq!(look("a\u{202e}", "")[0].message, "holds the right-to-left override U+202E");
    }

    #[test]
    fn emoji_and_scripts_keep_what_they_need() {
        for text in [
            "👩\u{200d}🚀 👨\u{200d}👩\u{200d}👧 🏳\u{fe0f}\u{200d}🌈 👩🏽\u{200d}💻 ❤\u{fe0f}\u{200d}🔥",
            "1\u{fe0f}\u{20e3} ☎\u{fe0e} 葛\u{e0100}",
            "🏴\u{e0067}\u{e0062}\u{e0073}\u{e0063}\u{e0074}\u{e007f} Alba",
            "می\u{200c}خواهم {{1}}\u{200c}ها PDF\u{200c}ها",
            "ه\u{200d} ۱۴۴۵",
            "क्\u{200d}ष क्\u{200c}ष ශ්\u{200d}රී",
            "ខ្ញុំ\u{200b}ស្រលាញ់ ฉัน\u{200b}รัก",
            "ᠬ\u{180e}ᠠ",
            "ümlaut, ¿qué?, 日本語, a\u{a0}b",
        ] {
            assert_eq!(told(text), [""; 0], "{text}");
        }
    }

    #[test]
    fn where_nothing_needs_it_a_joiner_a_tag_or_a_selector_is_told() {
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
            assert_eq!(told(text), [format!("invisible-character {at}..{}", at + 1)], "{text:?}");
        }
        let smuggled: String = "hello".bytes().map(tag).collect();
        assert_eq!(told(&format!("é{smuggled}")), ["invisible-character 1..6"]);
        assert_eq!(told("😀\u{fe0f}\u{fe01}\u{fe02}"), ["invisible-character 2..4"]);
    }

    fn tag(letter: u8) -> char {
        char::from_u32(0xe0000 + u32::from(letter)).unwrap()
    }
}
