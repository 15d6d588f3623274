//! JSON Schemas of strings: patterns for the string formats of the table.
//!
//! The patterns are plain ECMA-262 without look-around and `\p`, so that all common engines
//! interpret them alike. Alternatives within a repetition never start with the same character, so
//! matching does not backtrack.

use serde_json::{Value, json};

use crate::{
    rulebook::{StringFormat, StringRule},
    validation::{
        formats::is_one_line,
        languages::{self, whatsapp},
    },
};

/// Whitespace except control characters, as the content of a character class.
const SPACE: &str = r" \u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000";

/// Control characters, as the content of a character class.
const CONTROL: &str = r"\u0000-\u001f\u007f-\u009f";

/// Control characters that multiline texts do not accept either.
const CONTROL_IN_LINES: &str = r"\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f";

/// Control characters, and the line and paragraph separators.
const CONTROL_AND_SEPARATORS: &str = r"\u0000-\u001f\u007f-\u009f\u2028\u2029";

/// Whitespace before the first visible character of a single-line text.
const SPACE_IN_LINE: &str = r"[ \u00a0\u1680\u2000-\u200a\u202f\u205f\u3000]*";

const PLACEHOLDER: &str = r"\{\{[1-9][0-9]{0,2}\}\}";

/// A numbered or named placeholder; `parameter_format` determines which one is valid.
const ANY_PLACEHOLDER: &str = r"\{\{(?:[1-9][0-9]{0,2}|[a-z_][a-z0-9_]*)\}\}";

/// A timestamp. The pattern checks neither the number of days in a month nor that there is no year 0.
const TIMESTAMP: &str = concat!(
    "^[0-9]{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12][0-9]|3[01])",
    "T(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](?:\\.[0-9]{1,9})?",
    "(?:Z|[+-](?:[01][0-9]|2[0-3]):[0-5][0-9])$"
);

/// A port number, 0 to 65535.
const PORT: &str =
    "0*(?:[0-9]{1,4}|[1-5][0-9]{4}|6[0-4][0-9]{3}|65[0-4][0-9]{2}|655[0-2][0-9]|6553[0-5])";

/// A URL that leads to the recipient's own device. Other notations of IPv6 addresses are left out.
const OWN_DEVICE: &str = concat!(
    r"^[A-Za-z]+://(?:(?:[^/?#\\\[\]:{]*\.)?[Ll][Oo][Cc][Aa][Ll][Hh][Oo][Ss][Tt]\.*",
    r"|127(?:\.(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])){3}\.*|\[::1\])(?:[:/?#\\{][^\u0000]*)?$"
);

/// The schema of a string. `placeholders` selects the alternative with or without placeholders, for
/// formats that allow them.
pub(super) fn text(rule: &StringRule, placeholders: bool) -> Value {
    let pattern = match rule.format {
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
        StringFormat::DialledPhone => {
            // At least 5 digits.
            let separators = "[ .()-]*";
            let pattern = format!(r"^\+?(?:{separators}[0-9]){{5,}}{separators}$");
            return json!({"type": "string", "maxLength": 20, "pattern": pattern, "examples": ["+15550001111"]});
        }
        StringFormat::Timestamp => {
            let examples = ["2026-11-15T09:30:00Z"];
            return json!({"type": "string", "format": "date-time", "pattern": TIMESTAMP, "examples": examples});
        }
        StringFormat::Locale => {
            let pattern = format!("^(?:{})$", whatsapp::CODES.join("|"));
            return json!({"type": "string", "pattern": pattern, "examples": ["en_US", "pt_BR", "de"]});
        }
        StringFormat::SignatureHash => {
            return json!({"type": "string", "pattern": "^[A-Za-z0-9+/=]{11}$", "examples": ["K8a/AINcGX7"]});
        }
        StringFormat::Secret => "^[!-~]{16,}$".to_owned(),
        StringFormat::Identifier => "^[a-z0-9_]+$".to_owned(),
        StringFormat::AndroidPackage => {
            r"^[A-Za-z][A-Za-z0-9_]*(?:\.[A-Za-z][A-Za-z0-9_]*)+$".to_owned()
        }
        // A pattern cannot express the rules about formatting, emoji and words around placeholders.
        StringFormat::Headline | StringFormat::Message if placeholders => {
            let unit = unit(control(rule), control(rule));
            format!(r"^(?:{unit})*{ANY_PLACEHOLDER}(?:{unit}|{ANY_PLACEHOLDER})*\{{?$")
        }
        StringFormat::Link => {
            let suffix = if placeholders { ANY_PLACEHOLDER } else { "" };
            let mut schema = url(rule.max, "[Hh][Tt][Tt][Pp][Ss]?", suffix);
            schema["not"] = json!({"pattern": OWN_DEVICE});
            return schema;
        }
        StringFormat::Url => return url(rule.max, "https?", ""),
        StringFormat::UrlWithSuffix => {
            let suffix = if placeholders { r"\{\{1\}\}" } else { "" };
            return url(rule.max, "https?", suffix);
        }
        StringFormat::Name => format!("^[^{CONTROL}{SPACE}](?:[^{CONTROL}]*[^{CONTROL}{SPACE}])?$"),
        StringFormat::Free | StringFormat::Handle => visible(rule.multiline),
        StringFormat::WithPlaceholders if placeholders => {
            let unit = unit(control(rule), control(rule));
            format!(r"^(?:{unit})*{PLACEHOLDER}(?:{unit}|{PLACEHOLDER})*\{{?$")
        }
        StringFormat::WithPlaceholders
        | StringFormat::WithoutPlaceholders
        | StringFormat::Headline
        | StringFormat::Message
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
    let mut schema =
        json!({"type": "string", "minLength": 1, "maxLength": rule.max, "pattern": pattern});
    if rule.format == StringFormat::Handle {
        // The schema is that of a creation.
        schema["not"] = json!({"pattern": "^[Hh][Tt][Tt][Pp][Ss]?://"});
    }
    schema
}

/// An `http` or `https` URL that ends in `suffix`.
fn url(max: usize, scheme: &str, suffix: &str) -> Value {
    let excluded = format!("{CONTROL}{SPACE}");
    let unit = unit(&excluded, &excluded);
    let rest = format!(r"(?::{PORT})?(?:[/?#\\](?:{unit})*\{{?)?{suffix}$");
    let ascii = "[A-Za-z0-9._-]";
    let non_ascii = format!(r"[^\u0000-\u009f{SPACE}]");
    json!({
        "type": "string",
        "maxLength": max,
        "anyOf": [
            {"pattern": format!("^{scheme}://[._-]*[A-Za-z0-9]{ascii}*{rest}")},
            {
                "description": "The host contains non-ASCII letters, or is an IPv6 address.",
                "pattern": format!(r"^{scheme}://(?:{ascii}*{non_ascii}(?:{ascii}|{non_ascii})*|\[[0-9A-Fa-f:.]{{2,45}}\]){rest}"),
            },
        ],
    })
}

/// A string with at least one visible character.
pub(super) fn visible(multiline: bool) -> String {
    format!("^{}[^{CONTROL}{SPACE}][^{}]*$", space(multiline), control_in(multiline))
}

/// Whitespace before the first visible character.
fn space(multiline: bool) -> String {
    format!("[{}{SPACE}]*", if multiline { r"\t\n\r" } else { "" })
}

fn control(rule: &StringRule) -> &'static str {
    if is_one_line(rule) { CONTROL_AND_SEPARATORS } else { control_in(rule.multiline) }
}

fn control_in(multiline: bool) -> &'static str {
    if multiline { CONTROL_IN_LINES } else { CONTROL }
}

/// A character outside of `excluded`, or a brace and a character outside of `after_brace`. A
/// sequence of these never contains `{{`.
fn unit(excluded: &str, after_brace: &str) -> String {
    format!(r"[^{excluded}{{]|\{{[^{after_brace}{{]")
}

/// A pattern that matches any of the values, case-insensitive.
pub(super) fn any_case(values: &[&str]) -> String {
    let letter = |letter: char| {
        if letter.is_ascii_alphabetic() {
            format!("[{}{}]", letter.to_ascii_uppercase(), letter.to_ascii_lowercase())
        } else if letter == '.' {
            "\\.".to_owned()
        } else {
            letter.to_string()
        }
    };
    let values: Vec<String> =
        values.iter().map(|value| value.chars().map(letter).collect()).collect();
    format!("^(?:{})$", values.join("|"))
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

    /// The rules that strings generated from a pattern break.
    fn rules_broken_by_matches(rule: &StringRule, pattern: &str) -> Vec<Rule> {
        let inner = pattern.trim_start_matches('^').trim_end_matches('$');
        let strings = string_regex(inner).unwrap();
        let mut runner = TestRunner::deterministic();
        let mut violations = Vec::new();
        for _ in 0..300 {
            let generated = strings.new_tree(&mut runner).unwrap().current();
            formats::check(rule, &generated, &mut violations);
        }
        let mut rules: Vec<Rule> = violations.iter().map(|violation| violation.rule).collect();
        rules.dedup();
        rules
    }

    fn patterns(schema: &Value) -> Vec<&str> {
        let own = schema.get("pattern").and_then(Value::as_str);
        let alternatives = schema.get("anyOf").and_then(Value::as_array).into_iter().flatten();
        own.into_iter().chain(alternatives.flat_map(patterns)).collect()
    }

    #[test]
    fn only_links_that_the_rule_rejects_are_excluded() {
        let rule = StringRule {
            max: 2_000,
            whatsapp_max: None,
            multiline: false,
            format: StringFormat::Link,
        };
        assert_eq!(text(&rule, true)["not"]["pattern"], OWN_DEVICE);
        let links = string_regex(OWN_DEVICE.trim_matches(['^', '$'])).unwrap();
        let mut runner = TestRunner::deterministic();
        for _ in 0..300 {
            let link = links.new_tree(&mut runner).unwrap().current();
            let mut violations = Vec::new();
            formats::check(&rule, &link, &mut violations);
            assert!(violations.iter().any(|it| it.rule == Rule::UrlHost), "{link}: {violations:?}");
        }
    }

    #[test]
    fn strings_that_match_a_pattern_satisfy_the_rule_except_for_known_gaps() {
        use StringFormat::{
            Free, Language, Name, Phone, Url, WithPlaceholders, WithoutPlaceholders,
        };
        for (format, known_gap) in [
            (Free, None),
            (Name, None),
            (Language, None),
            (Phone, None),
            (StringFormat::DialledPhone, Some(Rule::PhoneForm)),
            (WithoutPlaceholders, None),
            (WithPlaceholders, Some(Rule::PlaceholderGap)),
            (Url, Some(Rule::UrlHost)),
            (StringFormat::UrlWithSuffix, Some(Rule::UrlHost)),
            (StringFormat::Timestamp, Some(Rule::MomentForm)),
            (StringFormat::Secret, None),
        ] {
            for (multiline, placeholders) in [(false, false), (false, true), (true, true)] {
                let rule = StringRule { max: 100_000, whatsapp_max: None, multiline, format };
                for pattern in patterns(&text(&rule, placeholders)) {
                    for broken in rules_broken_by_matches(&rule, pattern) {
                        assert_eq!(Some(broken), known_gap, "{format:?} {pattern}");
                    }
                }
            }
        }
    }
}
