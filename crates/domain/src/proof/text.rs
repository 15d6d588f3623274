//! Texts with their placeholders filled in, within a limit for the whole proof.

use std::{collections::HashMap, ops::Range};

use crate::{
    document::Json,
    render::fill::{self, TextPart},
};

/// The number of characters that a proof shows. A valid message has fewer: the rest of a longer one
/// is cut, so that a long value for many placeholders cannot make an unbounded proof.
pub const MAX_CHARS: usize = 65_536;

/// The length of a name that is shown as a placeholder, in bytes. Each run of a value repeats it.
const MAX_NAME_BYTES: usize = 128;

/// How many characters a proof may still show.
pub(super) struct Budget {
    remaining: usize,
    /// Whether a text was cut.
    pub(super) is_exceeded: bool,
}

impl Budget {
    pub(super) fn new() -> Self {
        Self { remaining: MAX_CHARS, is_exceeded: false }
    }

    /// The beginning of a text that may still be shown.
    pub(super) fn take<'t>(&mut self, text: &'t str) -> &'t str {
        let mut chars = text.char_indices();
        let rest = chars.by_ref().nth(self.remaining).map(|(at, _)| at);
        if let Some(end) = rest {
            self.remaining = 0;
            self.is_exceeded = true;
            return &text[..end];
        }
        self.remaining -= text.chars().count();
        text
    }
}

/// A text with its placeholders filled in.
pub(super) struct FilledText<'t> {
    pub(super) text: String,
    pub(super) segments: Vec<Segment<'t>>,
}

/// A part of a filled text: fixed text or a placeholder.
pub(super) struct Segment<'t> {
    pub(super) range: Range<usize>,
    /// The name of the placeholder, and whether it is filled.
    pub(super) placeholder: Option<(&'t str, bool)>,
}

impl<'t> FilledText<'t> {
    /// Fills a text. A placeholder without a value, or with a blank one, stays visible.
    pub(super) fn new(text: &'t str, values: &TextValues<'_>, budget: &mut Budget) -> Self {
        let mut filled = Self { text: String::new(), segments: Vec::new() };
        for part in fill::parts(text) {
            match part {
                TextPart::Fixed(text) => filled.push(text, None, budget),
                TextPart::Placeholder((name, written)) if name.len() > MAX_NAME_BYTES => {
                    filled.push(written, None, budget);
                }
                TextPart::Placeholder((name, written)) => match values.get(name) {
                    Some(value) => filled.push(value, Some((name, true)), budget),
                    None => filled.push(written, Some((name, false)), budget),
                },
            }
            if budget.is_exceeded {
                break;
            }
        }
        filled
    }

    /// A text without placeholders.
    pub(super) fn fixed(text: &'t str, budget: &mut Budget) -> Self {
        let mut filled = Self { text: String::new(), segments: Vec::new() };
        filled.push(text, None, budget);
        filled
    }

    fn push(&mut self, text: &str, placeholder: Option<(&'t str, bool)>, budget: &mut Budget) {
        let start = self.text.len();
        self.text.push_str(budget.take(text));
        self.segments.push(Segment { range: start..self.text.len(), placeholder });
    }
}

/// The values for the placeholders of one text. Those that are not strings count as missing.
#[derive(Default)]
pub(super) struct TextValues<'v> {
    numbered: Vec<Option<&'v str>>,
    named: HashMap<&'v str, &'v str>,
}

impl<'v> TextValues<'v> {
    /// The value for a number or name.
    fn get(&self, name: &str) -> Option<&'v str> {
        let value = match name.parse::<usize>() {
            Ok(number) => self.numbered.get(number.checked_sub(1)?).copied().flatten(),
            Err(_) => self.named.get(name).copied(),
        };
        value.filter(|value| !value.trim().is_empty())
    }

    /// Values as a client sends them: a list, an object with names, or one string.
    pub(super) fn sent(values: Option<&'v Json<'v>>) -> Self {
        match values {
            Some(Json::Array(items)) => Self::numbered(items),
            Some(Json::Object(members)) => {
                let named = members.iter().rev();
                let named = named.filter_map(|it| Some((&*it.key, it.value.as_str()?)));
                Self { numbered: Vec::new(), named: named.collect() }
            }
            Some(Json::String(value)) => Self::one(value),
            _ => Self::default(),
        }
    }

    /// One value, for the placeholder `{{1}}`.
    pub(super) fn one(value: &'v str) -> Self {
        Self { numbered: vec![Some(value)], named: HashMap::new() }
    }

    /// The samples of a component: `header_text` or `body_text`, and the same with names.
    pub(super) fn samples(component: &'v Json<'v>, [numbered, named]: [&str; 2]) -> Self {
        let Some(example) = component.get("example") else { return Self::default() };
        let mut values = match example.get(numbered) {
            Some(Json::Array(items)) => match &items[..] {
                [Json::Array(items)] => Self::numbered(items),
                items => Self::numbered(items),
            },
            Some(Json::String(value)) => Self::one(value),
            _ => Self::default(),
        };
        if let Some(Json::Array(samples)) = example.get(named) {
            let text = |sample: &'v Json<'v>, key: &str| sample.get(key).and_then(Json::as_str);
            let named = samples.iter().rev();
            let named =
                named.filter_map(|it| Some((text(it, "param_name")?, text(it, "example")?)));
            values.named = named.collect();
        }
        values
    }

    fn numbered(items: &'v [Json<'v>]) -> Self {
        Self { numbered: items.iter().map(Json::as_str).collect(), named: HashMap::new() }
    }
}
