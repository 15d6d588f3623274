//! Formatted text as a list of runs: each is a piece of text in one style.

use serde::{Serialize, Serializer};

use super::{formatting, text::FilledText};

/// A piece of text in one style.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Run {
    /// The text, without formatting marks.
    pub text: String,
    /// The styles that apply to it.
    pub style: Styles,
    /// The placeholder that it comes from, if it does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub placeholder: Option<Placeholder>,
}

/// A placeholder of a template.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Placeholder {
    /// Its number or name.
    pub name: String,
    /// Whether there is a value for it.
    pub filled: bool,
}

/// A set of styles; as JSON the list of their names.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Styles(u8);

impl Styles {
    /// No style.
    pub const PLAIN: Self = Self(0);
    /// `*bold*`.
    pub const BOLD: Self = Self(1);
    /// `_italic_`.
    pub const ITALIC: Self = Self(2);
    /// `~struck~`.
    pub const STRIKE: Self = Self(4);
    /// Between backticks.
    pub const MONOSPACE: Self = Self(8);
    /// Between triple backticks; always together with [`Styles::MONOSPACE`].
    pub const BLOCK: Self = Self(16);
    /// An item of a bulleted list.
    pub const LIST: Self = Self(32);
    /// An item of a numbered list.
    pub const NUMBERED: Self = Self(64);
    /// A quoted line.
    pub const QUOTE: Self = Self(128);

    const NAMES: [(Self, &str); 8] = [
        (Self::BOLD, "bold"),
        (Self::ITALIC, "italic"),
        (Self::STRIKE, "strike"),
        (Self::MONOSPACE, "monospace"),
        (Self::BLOCK, "block"),
        (Self::LIST, "list"),
        (Self::NUMBERED, "numbered"),
        (Self::QUOTE, "quote"),
    ];

    /// Both sets together.
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Whether the sets have a style in common.
    pub const fn intersects(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    /// The names of the styles.
    pub fn names(self) -> impl Iterator<Item = &'static str> {
        Self::NAMES.into_iter().filter(move |(it, _)| self.intersects(*it)).map(|(_, name)| name)
    }
}

impl Serialize for Styles {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.names())
    }
}

/// Styles of a whole line.
const LINE: Styles = Styles::LIST.and(Styles::NUMBERED).and(Styles::QUOTE);

/// The runs of a text that the recipient's device formats.
pub(super) fn formatted(text: &FilledText<'_>) -> Vec<Run> {
    split(text, &formatting::of(text))
}

/// The runs of a text that is shown as it is.
pub(super) fn plain(text: &FilledText<'_>) -> Vec<Run> {
    split(text, &[])
}

/// Starts a run wherever the style or the placeholder changes, and with every line of a list or quote.
fn split(filled: &FilledText<'_>, formats: &[formatting::Format]) -> Vec<Run> {
    let mut runs: Vec<Run> = Vec::new();
    for segment in &filled.segments {
        let start = segment.range.start;
        let mut current = None;
        for (at, character) in filled.text[segment.range.clone()].char_indices() {
            let format = formats.get(start + at).copied().unwrap_or_default();
            if format.is_mark {
                continue;
            }
            if current != Some(format.styles) {
                runs.push(Run {
                    text: String::new(),
                    style: format.styles,
                    placeholder: segment
                        .placeholder
                        .map(|(name, filled)| Placeholder { name: name.to_owned(), filled }),
                });
            }
            if let Some(run) = runs.last_mut() {
                run.text.push(character);
            }
            let ends_line = character == '\n' && format.styles.intersects(LINE);
            current = (!ends_line).then_some(format.styles);
        }
    }
    runs
}
