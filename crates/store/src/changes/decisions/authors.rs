//! Four eyes by content: who has written the text that an approval makes live.

use std::{
    collections::{BTreeSet, HashMap, HashSet},
    iter, slice,
};

use galley_domain::document::{
    Document, Json, Member,
    text::{folded, is_unspaced_letter, is_word_character},
};

use crate::{
    Actor, CredentialId, StoreError, Version,
    stored_row::{Row, StoredRow as _},
};

/// Members that select the kind of a component. Their values are words of the rulebook, not texts.
const KINDS: [&str; 9] = [
    "type",
    "format",
    "otp_type",
    "parameter_format",
    "sub_category",
    "display_format",
    "flow_action",
    "icon",
    "enroll_status",
];

/// The members with samples, which no recipient sees.
const SAMPLES: &str = "example";

/// Contents to compare, in bytes. A person who has created more of them does not approve the template:
/// the comparison blocks the writer thread.
const MAX_COMPARED_BYTES: u64 = 128 << 10;

/// The tokens of the person to whom the operator gave `token`: rotations replaced one by another.
pub(crate) fn tokens_of_person(
    token: CredentialId,
    rotations: &[(CredentialId, CredentialId)],
) -> HashSet<CredentialId> {
    let mut linked: HashMap<CredentialId, Vec<CredentialId>> = HashMap::new();
    for (old, new) in rotations {
        linked.entry(*old).or_default().push(*new);
        linked.entry(*new).or_default().push(*old);
    }
    let (mut person, mut unvisited) = (HashSet::from([token]), vec![token]);
    while let Some(token) = unvisited.pop() {
        let others = linked.get(&token).into_iter().flatten();
        unvisited.extend(others.filter(|it| person.insert(**it)));
    }
    person
}

/// A stored version without its content.
#[derive(Clone, Copy, Debug)]
pub(crate) struct VersionAuthor {
    pub(crate) number: u64,
    pub(crate) author: Actor,
    /// The length of its content.
    pub(crate) bytes: u64,
}

impl VersionAuthor {
    /// The author of the version in a row.
    pub(crate) fn read(row: &Row<'_>) -> Result<Self, StoreError> {
        let (number, author) = (row.number("version")?, row.actor("actor")?);
        Ok(Self { number, author, bytes: row.number("bytes")? })
    }
}

/// What the authors of the versions say about the decision of a person.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum FourEyes {
    Permitted,
    Refused,
    /// The texts decide.
    Compare(Comparison),
}

/// The versions whose texts decide whether a person has written what an approval makes live.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Comparison {
    newest: u64,
    approved: Option<u64>,
    /// The versions that the person has created, or whose predecessor was deleted, so that the authors
    /// of its texts are not known any more. Each with its predecessor.
    introduced_in: Vec<(u64, Option<u64>)>,
}

/// Decides by the authors of all stored versions, newest first. `approved` is the approved version.
pub(super) fn by_authors(
    versions: &[VersionAuthor],
    approved: Option<u64>,
    person: &HashSet<CredentialId>,
) -> FourEyes {
    let Some(newest) = versions.first() else { return FourEyes::Permitted };
    let introduced_in = versions.iter().enumerate().filter_map(|(index, version)| {
        let is_predecessor = |it: &&VersionAuthor| it.number + 1 == version.number;
        let predecessor = versions.get(index + 1).filter(is_predecessor).map(|it| it.number);
        let is_unknown = version.number > 1 && predecessor.is_none();
        (is_unknown || is_by(version.author, person)).then_some((version.number, predecessor))
    });
    let introduced_in: Vec<_> = introduced_in.collect();
    if introduced_in.is_empty() {
        return FourEyes::Permitted;
    }
    let comparison = Comparison { newest: newest.number, approved, introduced_in };
    let numbers = comparison.versions();
    let compared = versions.iter().filter(|it| numbers.contains(&it.number));
    if compared.map(|it| it.bytes).sum::<u64>() > MAX_COMPARED_BYTES {
        return FourEyes::Refused;
    }
    FourEyes::Compare(comparison)
}

impl Comparison {
    /// The numbers of the versions to compare.
    pub(crate) fn versions(&self) -> BTreeSet<u64> {
        let introduced = self
            .introduced_in
            .iter()
            .flat_map(|(number, previous)| iter::once(*number).chain(*previous));
        introduced.chain([self.newest]).chain(self.approved).collect()
    }

    /// Whether the person has written text that the approval of the newest version makes live, or the
    /// author of such text is not known any more.
    ///
    /// The person has introduced the parts of their versions that the predecessors do not have. Parts of
    /// the approved version are live already. A text is the person's if they have introduced half of it,
    /// or if half of what they have introduced in one text is in the new version.
    pub(crate) fn is_author(&self, versions: &[Version]) -> bool {
        let texts = |number: u64| {
            let version = versions.iter().find(|version| version.number == number);
            texts(version.map_or("", |version| &version.content))
        };
        let parts = |number: Option<u64>| -> Text {
            number.into_iter().flat_map(texts).flatten().collect()
        };
        let live = parts(self.approved);
        let mut new = texts(self.newest);
        for text in &mut new {
            text.retain(|it| !live.contains(it));
        }
        let made_live: Text = new.iter().flatten().cloned().collect();
        let mut introduced = Text::new();
        for (number, previous) in &self.introduced_in {
            let previous = parts(*previous);
            for mut text in texts(*number) {
                text.retain(|it| !live.contains(it) && !previous.contains(it));
                if has_half(&made_live, &text) {
                    return true;
                }
                introduced.extend(text);
            }
        }
        new.iter().any(|text| has_half(&introduced, text))
    }
}

/// What two texts are compared by: their pairs of neighbouring words, or the one value that they are.
type Text = HashSet<String>;

/// Whether at least half of the parts of `text`, rounded down, are among `parts`: a text of two words
/// has three pairs with its start and end, and keeps one of them if a word is corrected.
fn has_half(parts: &Text, text: &Text) -> bool {
    let shared = text.intersection(parts).count();
    shared > 0 && shared >= text.len() / 2
}

pub(super) fn is_by(author: Actor, person: &HashSet<CredentialId>) -> bool {
    matches!(author, Actor::Token(token) if person.contains(&token))
}

/// What counts as one text each: every object that has a text, such as a button with its label and URL,
/// every setting, every text as it is written, its letters, and its words. Objects keep an author who
/// combines the texts of other people. Samples are no texts.
fn texts(content: &str) -> Vec<Text> {
    let mut texts = Vec::new();
    match Document::parse(content.as_bytes()) {
        Ok(document) => {
            let (shown, _) = visit_value(document.root(), "", &mut texts);
            texts.push([shown].into());
        }
        Err(_) => texts.push([content.to_owned()].into()),
    }
    texts
}

/// Returns the value without samples, with the letters of its texts, and whether it has a text.
fn visit_value(value: &Json<'_>, key: &str, texts: &mut Vec<Text>) -> (String, bool) {
    match value {
        Json::String(text) if !KINDS.contains(&key) => {
            let letters = letters(text);
            texts.push([text.to_string()].into());
            texts.push(pairs_of_words(text));
            let shown = format!("{letters:?}");
            texts.push([letters].into());
            (shown, true)
        }
        Json::Array(items) => {
            let items = items.iter().map(|item| visit_value(item, key, texts));
            let (items, has_text): (Vec<String>, Vec<bool>) = items.unzip();
            (format!("[{}]", items.join(",")), has_text.contains(&true))
        }
        Json::Object(members) => {
            let shown = members.iter().filter(|member| member.key != SAMPLES);
            let members = shown.map(|Member { key, value, .. }| {
                let (value, has_text) = visit_value(value, key, texts);
                (format!("{key:?}:{value}"), has_text)
            });
            let (members, has_text): (Vec<String>, Vec<bool>) = members.unzip();
            let object = format!("{{{}}}", members.join(","));
            let has_text = has_text.contains(&true);
            if has_text {
                texts.push([object.clone()].into());
            }
            (object, has_text)
        }
        Json::Number(_) | Json::Bool(_) => {
            // A setting can generate text, such as the recommendation not to share a code.
            let setting = format!("{key:?}:{value:?}");
            texts.push([setting.clone()].into());
            (setting, false)
        }
        other => (format!("{other:?}"), false),
    }
}

/// The text without letter case and all that looks the same. `ß` and `SS`, or the two small letters of
/// `Σ`, differ only in case.
fn caseless(text: &str) -> String {
    folded(&text.to_uppercase())
}

/// The letters and digits of a text, however its words are separated or divided. A text without any is
/// compared without spaces.
fn letters(text: &str) -> String {
    let text = caseless(text);
    let letters: String = text.chars().filter(|it| is_word_character(*it)).collect();
    if letters.is_empty() { text.replace(char::is_whitespace, "") } else { letters }
}

/// The pairs of neighbouring words of a text, also with its start and end.
fn pairs_of_words(text: &str) -> Text {
    let mut json_strings = String::new();
    if let Ok(json) = Document::parse(text.as_bytes()) {
        // Such as the JSON of a flow.
        join_strings(json.root(), "", &mut json_strings);
    }
    let text = caseless(if json_strings.is_empty() { text } else { &json_strings });
    let mut words = words(&text);
    if words.is_empty() {
        words.push(text);
    }
    let edge = String::new();
    let edge = slice::from_ref(&edge);
    [edge, &*words, edge].concat().windows(2).map(|pair| pair.join(" ")).collect()
}

fn join_strings(value: &Json<'_>, key: &str, joined: &mut String) {
    match value {
        Json::String(text) if !KINDS.contains(&key) => joined.extend([text, " "]),
        Json::Array(items) => {
            for item in items {
                join_strings(item, key, joined);
            }
        }
        Json::Object(members) => {
            for Member { key, value, .. } in members {
                join_strings(value, key, joined);
            }
        }
        _ => {}
    }
}

/// The words of a folded text; in scripts without spaces, its letters. Digits are one number whatever
/// separates them, and the host of a URL is one word: another host is another address.
fn words(text: &str) -> Vec<String> {
    let url = text.split_once("://").filter(|(scheme, _)| scheme.chars().all(is_word_character));
    let (host, rest) = url.map_or(("", text), |(_, url)| {
        url.split_at(url.find(['/', '?', '#', ':']).unwrap_or(url.len()))
    });
    let mut words: Vec<String> = Vec::new();
    let mut is_separated = true;
    for letter in host.chars().filter(|it| *it != '.').chain(rest.chars()) {
        if !is_word_character(letter) {
            is_separated = true;
            continue;
        }
        let continues = |last: char| {
            let is_number = last.is_numeric() && letter.is_numeric();
            (is_number || !is_separated) && !is_unspaced_letter(last) && !is_unspaced_letter(letter)
        };
        match words.last_mut() {
            Some(word) if word.chars().last().is_some_and(continues) => word.push(letter),
            _ => words.push(letter.to_string()),
        }
        is_separated = false;
    }
    words
}

#[cfg(test)]
mod tests;
