//! Strings as JSON Schema: the patterns that say what a row of the table takes.
//!
//! Patterns are plain ECMA-262 without look-around and `\p`, so that every usual engine reads them
//! alike. No two ways of a repetition begin with the same character: nothing is tried twice.

use serde_json::{Value, json};

use crate::{
    rulebook::{StringFormat, StringRule},
    validation::{
        formats::is_one_line,
        languages::{self, whatsapp},
    },
};

/// White space that is no control character, as the inside of a character class.
const SPACE: &str = r" \u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000";

/// Control characters, likewise.
const CONTROL: &str = r"\u0000-\u001f\u007f-\u009f";

/// Control characters that not even a body text takes.
const CONTROL_IN_LINES: &str = r"\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f";

/// Control characters and what parts lines without being one.
const CONTROL_AND_SEPARATORS: &str = r"\u0000-\u001f\u007f-\u009f\u2028\u2029";

/// White space before the first visible character of one line.
const SPACE_IN_LINE: &str = r"[ \u00a0\u1680\u2000-\u200a\u202f\u205f\u3000]*";

const PLACEHOLDER: &str = r"\{\{[1-9][0-9]{0,2}\}\}";

/// A placeholder with a number or a name: which of them, another field tells.
const ANY_PLACEHOLDER: &str = r"\{\{(?:[1-9][0-9]{0,2}|[a-z_][a-z0-9_]*)\}\}";

/// A moment; how many days a month has is left out, and that there is no year 0.
const MOMENT: &str = concat!(
    "^[0-9]{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12][0-9]|3[01])",
    "T(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](?:\\.[0-9]{1,9})?",
    "(?:Z|[+-](?:[01][0-9]|2[0-3]):[0-5][0-9])$"
);

/// A port, 0 to 65535.
const PORT: &str =
    "0*(?:[0-9]{1,4}|[1-5][0-9]{4}|6[0-4][0-9]{3}|65[0-4][0-9]{2}|655[0-2][0-9]|6553[0-5])";

/// The schema of a string; `placeholders` tells whether it holds any, where it may.
pub(super) fn text(rule: &StringRule, placeholders: bool) -> Value {
    let pattern = match rule.form {
        StringFormat::Language => {
            let languages = languages::languages().join("|");
            let regions = languages::regions().join("|");
            let pattern = format!("^(?:{languages})_(?:{regions})$");
            return json!({"type": "string", "pattern": pattern, "examples": ["en_US", "pt_BR"]});
        }
        StringFormat::Phone => {
            let pattern = r"^\+?[1-9][0-9]{6,14}$";
            return json!({"type": "string", "pattern": pattern, "examples": ["+15550001111"]});
        }
        StringFormat::Dialled => {
            // At least 5 digits.
            let between = "[ .()-]*";
            let pattern = format!(r"^\+?(?:{between}[0-9]){{5,}}{between}$");
            return json!({"type": "string", "maxLength": 20, "pattern": pattern, "examples": ["+15550001111"]});
        }
        StringFormat::Moment => {
            let examples = ["2026-11-15T09:30:00Z"];
            return json!({"type": "string", "format": "date-time", "pattern": MOMENT, "examples": examples});
        }
        StringFormat::Locale => {
            let pattern = format!("^(?:{})$", whatsapp::CODES.join("|"));
            return json!({"type": "string", "pattern": pattern, "examples": ["en_US", "pt_BR", "de"]});
        }
        StringFormat::Signature => {
            return json!({"type": "string", "pattern": "^[A-Za-z0-9+/=]{11}$", "examples": ["K8a/AINcGX7"]});
        }
        StringFormat::Secret => "^[!-~]{16,}$".to_owned(),
        StringFormat::Identifier => "^[a-z0-9_]+$".to_owned(),
        StringFormat::Package => r"^[A-Za-z][A-Za-z0-9_]*(?:\.[A-Za-z][A-Za-z0-9_]*)+$".to_owned(),
        // Formatting, emoji and the words around placeholders are beyond a pattern.
        StringFormat::Headline | StringFormat::Message | StringFormat::CardMessage
            if placeholders =>
        {
            let unit = unit(control(rule), control(rule));
            format!(r"^(?:{unit})*{ANY_PLACEHOLDER}(?:{unit}|{ANY_PLACEHOLDER})*\{{?$")
        }
        StringFormat::Link => {
            let suffix = if placeholders { ANY_PLACEHOLDER } else { "" };
            return url(rule.max, "[Hh][Tt][Tt][Pp][Ss]?", suffix);
        }
        StringFormat::Url => return url(rule.max, "https?", ""),
        StringFormat::UrlWithSuffix => {
            let suffix = if placeholders { r"\{\{1\}\}" } else { "" };
            return url(rule.max, "https?", suffix);
        }
        StringFormat::Name => format!("^[^{CONTROL}{SPACE}](?:[^{CONTROL}]*[^{CONTROL}{SPACE}])?$"),
        StringFormat::Free => visible(rule.multiline),
        StringFormat::WithPlaceholders if placeholders => {
            let unit = unit(control(rule), control(rule));
            format!(r"^(?:{unit})*{PLACEHOLDER}(?:{unit}|{PLACEHOLDER})*\{{?$")
        }
        StringFormat::WithPlaceholders
        | StringFormat::WithoutPlaceholders
        | StringFormat::Headline
        | StringFormat::Message
        | StringFormat::CardMessage
        | StringFormat::Plain
        | StringFormat::Label => {
            let control = control(rule);
            let first = unit(&format!("{CONTROL}{SPACE}"), control);
            let unit = unit(control, control);
            let space =
                if is_one_line(rule) { SPACE_IN_LINE.to_owned() } else { space(rule.multiline) };
            format!(r"^{space}(?:(?:{first})(?:{unit})*\{{?|\{{)$")
        }
    };
    json!({"type": "string", "minLength": 1, "maxLength": rule.max, "pattern": pattern})
}

/// An `http` or `https` address that ends in `suffix`.
fn url(max: usize, scheme: &str, suffix: &str) -> Value {
    let hidden = format!("{CONTROL}{SPACE}");
    let unit = unit(&hidden, &hidden);
    let rest = format!(r"(?::{PORT})?(?:[/?#\\](?:{unit})*\{{?)?{suffix}$");
    let plain = "[A-Za-z0-9._-]";
    let beyond = format!(r"[^\u0000-\u009f{SPACE}]");
    json!({
        "type": "string",
        "maxLength": max,
        "anyOf": [
            {"pattern": format!("^{scheme}://[._-]*[A-Za-z0-9]{plain}*{rest}")},
            {
                "description": "The host has letters beyond ASCII, or is an IPv6 address.",
                "pattern": format!(r"^{scheme}://(?:{plain}*{beyond}(?:{plain}|{beyond})*|\[[0-9A-Fa-f:.]{{2,45}}\]){rest}"),
            },
        ],
    })
}

/// A string with at least one visible character.
pub(super) fn visible(multiline: bool) -> String {
    format!("^{}[^{CONTROL}{SPACE}][^{}]*$", space(multiline), control_in(multiline))
}

/// White space before the first visible character.
fn space(multiline: bool) -> String {
    format!("[{}{SPACE}]*", if multiline { r"\t\n\r" } else { "" })
}

fn control(rule: &StringRule) -> &'static str {
    if is_one_line(rule) { CONTROL_AND_SEPARATORS } else { control_in(rule.multiline) }
}

fn control_in(multiline: bool) -> &'static str {
    if multiline { CONTROL_IN_LINES } else { CONTROL }
}

/// A character that is none of `first`, or a brace and one that is none of `second`: strung
/// together they never hold `{{`.
fn unit(first: &str, second: &str) -> String {
    format!(r"[^{first}{{]|\{{[^{second}{{]")
}

/// A pattern that takes any of the words in any letter case.
pub(super) fn any_case(words: &[&str]) -> String {
    let letter = |letter: char| {
        if letter.is_ascii_alphabetic() {
            format!("[{}{}]", letter.to_ascii_uppercase(), letter.to_ascii_lowercase())
        } else if letter == '.' {
            "\\.".to_owned()
        } else {
            letter.to_string()
        }
    };
    let words: Vec<String> = words.iter().map(|word| word.chars().map(letter).collect()).collect();
    format!("^(?:{})$", words.join("|"))
}

#[cfg(test)]
mod tests {
    use proptest::{
        strategy::{Strategy as _, ValueTree as _},
        string::string_regex,
        test_runner::TestRunner,
    };

    use super::*;
    use crate::{validation::formats, violation::Rule};

    /// Writes strings that a pattern takes, and tells which rules they break after all.
    fn broken_by_what_fits(rule: &StringRule, pattern: &str) -> Vec<Rule> {
        let inner = pattern.trim_start_matches('^').trim_end_matches('$');
        let strings = string_regex(inner).unwrap();
        let mut runner = TestRunner::deterministic();
        let mut faults = Vec::new();
        for _ in 0..300 {
            let written = strings.new_tree(&mut runner).unwrap().current();
            formats::check(rule, &written, &mut faults);
        }
        let mut rules: Vec<Rule> = faults.iter().map(|fault| fault.rule).collect();
        rules.dedup();
        rules
    }

    fn patterns(schema: &Value) -> Vec<&str> {
        let own = schema.get("pattern").and_then(Value::as_str);
        let others = schema.get("anyOf").and_then(Value::as_array).into_iter().flatten();
        own.into_iter().chain(others.flat_map(patterns)).collect()
    }

    #[test]
    fn what_a_pattern_takes_the_rule_takes_unless_no_pattern_can_tell() {
        use StringFormat::{
            Free, Language, Name, Phone, Url, WithPlaceholders, WithoutPlaceholders,
        };
        for (form, untold) in [
            (Free, None),
            (Name, None),
            (Language, None),
            (Phone, None),
            (StringFormat::Dialled, Some(Rule::PhoneForm)),
            (WithoutPlaceholders, None),
            (WithPlaceholders, Some(Rule::PlaceholderGap)),
            (Url, Some(Rule::UrlHost)),
            (StringFormat::UrlWithSuffix, Some(Rule::UrlHost)),
            (StringFormat::Moment, Some(Rule::MomentForm)),
            (StringFormat::Secret, None),
        ] {
            for (multiline, placeholders) in [(false, false), (false, true), (true, true)] {
                let rule = StringRule { max: 100_000, whatsapp_max: None, multiline, form };
                for pattern in patterns(&text(&rule, placeholders)) {
                    for broken in broken_by_what_fits(&rule, pattern) {
                        assert_eq!(Some(broken), untold, "{form:?} {pattern}");
                    }
                }
            }
        }
    }
}
