//! The document as typed structs, and the most important rules.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

#[derive(Debug, Deserialize)]
pub(crate) struct Document {
    pub(crate) name: String,
    pub(crate) language: String,
    pub(crate) category: String,
    pub(crate) allow_category_change: bool,
    pub(crate) components: Vec<Component>,
}

#[derive(Debug, Default, Deserialize, Serialize)]
pub(crate) struct Component {
    #[serde(rename = "type")]
    pub(crate) kind: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) format: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) text: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) example: Option<Example>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) buttons: Option<Vec<Button>>,
}

#[derive(Debug, Default, Deserialize, Serialize)]
pub(crate) struct Example {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) media_url: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) body_text: Option<Vec<Vec<String>>>,
}

#[derive(Debug, Default, Deserialize, Serialize)]
pub(crate) struct Button {
    #[serde(rename = "type")]
    pub(crate) kind: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) text: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) url: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) phone_number: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) example: Option<String>,
}

/// Returns a message for every violated rule.
pub(crate) fn check(document: &Document) -> Vec<String> {
    let mut violations = Vec::new();
    let name = document.name.chars().count();
    if !(1..=512).contains(&name) || document.name.trim() != document.name {
        violations.push("name: 1 to 512 characters without white space at either end".to_owned());
    }
    if !is_language(&document.language) {
        violations.push("language: a language_REGION such as en_US".to_owned());
    }
    if !matches!(document.category.as_str(), "MARKETING" | "UTILITY" | "AUTHENTICATION") {
        violations.push("category: MARKETING, UTILITY or AUTHENTICATION".to_owned());
    }
    for (kind, min) in [("BODY", 1), ("HEADER", 0), ("FOOTER", 0), ("BUTTONS", 0)] {
        let count = document.components.iter().filter(|component| component.kind == kind).count();
        if !(min..=1).contains(&count) {
            violations.push(format!("components: {count} of type {kind}"));
        }
    }
    for (index, component) in document.components.iter().enumerate() {
        if let Err(rule) = check_component(component) {
            violations.push(format!("components/{index}: {rule}"));
        }
        for (at, button) in component.buttons.iter().flatten().enumerate() {
            if let Err(rule) = check_button(button) {
                violations.push(format!("components/{index}/buttons/{at}: {rule}"));
            }
        }
    }
    violations
}

fn check_component(component: &Component) -> Result<(), &'static str> {
    let text = component.text.as_deref();
    let example = component.example.as_ref();
    match component.kind.as_str() {
        "HEADER" => match component.format.as_deref() {
            Some("TEXT") => text_of(text, 1024).map(drop),
            Some("MEDIA") => match example.and_then(|example| example.media_url.as_deref()) {
                Some(url) if is_url(url) => Ok(()),
                _ => Err("a MEDIA header needs example.media_url, an http or https URL"),
            },
            _ => Err("format must be TEXT or MEDIA"),
        },
        "BODY" => {
            let count = placeholders(text_of(text, 4096)?)?;
            let samples = example.and_then(|example| example.body_text.as_deref()).unwrap_or(&[]);
            match samples {
                _ if count == 0 => Ok(()),
                [row] if row.len() == count && row.iter().all(|value| !value.is_empty()) => Ok(()),
                _ => Err("example.body_text must be one list with a sample for each placeholder"),
            }
        }
        "FOOTER" => text_of(text, 1024).map(drop),
        "BUTTONS" => match component.buttons.as_deref() {
            Some(buttons) if (1..=20).contains(&buttons.len()) => Ok(()),
            _ => Err("BUTTONS needs 1 to 20 buttons"),
        },
        _ => Err("type must be HEADER, BODY, FOOTER or BUTTONS"),
    }
}

fn check_button(button: &Button) -> Result<(), &'static str> {
    match button.kind.as_str() {
        "COPY_CODE" => return text_of(button.example.as_deref(), 128).map(drop),
        "QUICK_REPLY" => {}
        "URL" => {
            if !button.url.as_deref().is_some_and(is_url) {
                return Err("url must be an http or https URL");
            }
        }
        "PHONE_NUMBER" => {
            if !button.phone_number.as_deref().is_some_and(is_phone_number) {
                return Err("phone_number must have 7 to 15 digits including the country code");
            }
        }
        _ => return Err("type must be QUICK_REPLY, URL, PHONE_NUMBER or COPY_CODE"),
    }
    text_of(button.text.as_deref(), 128).map(drop)
}

fn text_of(text: Option<&str>, max_chars: usize) -> Result<&str, &'static str> {
    match text {
        Some(text) if !text.trim().is_empty() && text.chars().count() <= max_chars => Ok(text),
        Some(_) => Err("the text is empty or too long"),
        None => Err("the text is missing"),
    }
}

/// Returns the number of distinct placeholders in a text, which must be numbered from 1 without gaps.
fn placeholders(text: &str) -> Result<usize, &'static str> {
    let mut numbers = BTreeSet::new();
    let mut rest = text;
    while let Some((_, after)) = rest.split_once("{{") {
        let (number, after) = after.split_once("}}").ok_or("a placeholder is not closed")?;
        if number.starts_with(['0', '+']) {
            return Err("a placeholder must be a number such as {{1}}");
        }
        let number: usize =
            number.parse().map_err(|_| "a placeholder must be a number such as {{1}}")?;
        numbers.insert(number);
        rest = after;
    }
    if numbers.last().is_none_or(|last| *last == numbers.len()) {
        Ok(numbers.len())
    } else {
        Err("placeholders must be numbered from 1 without gaps")
    }
}

fn is_language(language: &str) -> bool {
    matches!(language.as_bytes(), [a, b, b'_', c, d]
        if a.is_ascii_lowercase() && b.is_ascii_lowercase()
            && c.is_ascii_uppercase() && d.is_ascii_uppercase())
}

fn is_url(url: &str) -> bool {
    let rest = url.strip_prefix("https://").or_else(|| url.strip_prefix("http://"));
    rest.is_some_and(|rest| {
        let host = rest.split(['/', '?', '#']).next().unwrap_or("");
        !host.is_empty() && !host.contains('@') && url.len() <= 2000
    }) && !url.contains(char::is_whitespace)
}

fn is_phone_number(number: &str) -> bool {
    let digits = number.strip_prefix('+').unwrap_or(number);
    (7..=15).contains(&digits.len())
        && digits.bytes().all(|byte| byte.is_ascii_digit())
        && !digits.starts_with('0')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Document {
        serde_json::from_str(include_str!("../../../sample.json")).unwrap()
    }

    #[test]
    fn the_sample_has_no_violations() {
        assert_eq!(check(&sample()), Vec::<String>::new());
    }

    #[test]
    fn a_placeholder_gap_and_an_invalid_phone_number_are_both_reported() {
        let mut document = sample();
        document.components[1].text = Some("{{1}} and {{3}}".to_owned());
        if let Some(buttons) = &mut document.components[3].buttons {
            buttons[2].phone_number = Some("call me".to_owned());
        }
        assert_eq!(check(&document).len(), 2);
    }
}
