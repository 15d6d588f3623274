//! Generates documents that differ in language, category and words, like those of a real account.

use serde_json::Value;

use crate::request::{SLOT, fill_random};

/// The languages, equally frequent.
pub const LANGUAGES: [&str; 6] = ["en_US", "de_DE", "pt_BR", "es_MX", "fr_FR", "hi_IN"];

/// The categories, equally frequent.
pub const CATEGORIES: [&str; 3] = ["MARKETING", "UTILITY", "AUTHENTICATION"];

/// Number of distinct words. A few are frequent and most are rare, as in any language.
pub const VOCABULARY_SIZE: usize = 4_000;

/// Number of random words in each text.
const WORDS_PER_TEXT: usize = 8;

/// A word that only one text in [`RARE_WORD_INTERVAL`] contains.
pub const RARE_WORD: &str = "quetzal";

/// Number of texts per occurrence of [`RARE_WORD`].
const RARE_WORD_INTERVAL: u64 = 10_000;

/// Markers in the document template, and the field that replaces each of them.
const MARKERS: [(&str, Field); 4] = [
    (SLOT, Field::Name),
    ("~language~", Field::Language),
    ("~category~", Field::Category),
    ("~words~", Field::Words),
];

#[derive(Debug, Clone, Copy)]
enum Field {
    Name,
    Language,
    Category,
    Words,
}

/// A document template with fields to fill in.
#[derive(Debug)]
pub struct DocumentGenerator {
    /// The text before each field, and the field.
    parts: Vec<(String, Field)>,
    rest: String,
    words: Vec<String>,
}

impl DocumentGenerator {
    /// Replaces the name, the language, the category and the end of the body text with fields.
    pub fn new(mut document: Value) -> Result<Self, String> {
        for (member, marker) in
            [("name", SLOT), ("language", "~language~"), ("category", "~category~")]
        {
            *document.get_mut(member).ok_or(format!("the document has no `{member}`"))? =
                marker.into();
        }
        let text = document["components"]
            .as_array_mut()
            .and_then(|components| components.iter_mut().find(|it| it["type"] == "BODY"))
            .and_then(|body| body.get_mut("text"))
            .ok_or("the document has no BODY with a `text`")?;
        *text = format!("{} ~words~", text.as_str().unwrap_or_default()).into();

        let mut rest = document.to_string();
        let mut parts = Vec::new();
        while let Some((at, marker, field)) = MARKERS
            .into_iter()
            .filter_map(|(marker, field)| Some((rest.find(marker)?, marker, field)))
            .min_by_key(|(at, ..)| *at)
        {
            parts.push((rest[..at].to_owned(), field));
            rest.drain(..at + marker.len());
        }
        Ok(Self { parts, rest, words: (0..VOCABULARY_SIZE).map(word).collect() })
    }

    /// Writes the document with this number; returns the offset of its name.
    pub fn write(&self, out: &mut Vec<u8>, number: u64, random: &mut fastrand::Rng) -> usize {
        let mut name_at = 0;
        for (before, field) in &self.parts {
            out.extend_from_slice(before.as_bytes());
            match field {
                Field::Name => {
                    name_at = out.len();
                    out.extend_from_slice(SLOT.as_bytes());
                    fill_random(&mut out[name_at..], random);
                }
                Field::Language => out.extend_from_slice(one_of(&LANGUAGES, random).as_bytes()),
                Field::Category => out.extend_from_slice(one_of(&CATEGORIES, random).as_bytes()),
                Field::Words => self.write_words(out, number, random),
            }
        }
        out.extend_from_slice(self.rest.as_bytes());
        name_at
    }

    fn write_words(&self, out: &mut Vec<u8>, number: u64, random: &mut fastrand::Rng) {
        for index in 0..WORDS_PER_TEXT {
            if index > 0 {
                out.push(b' ');
            }
            out.extend_from_slice(self.words[rank(random)].as_bytes());
        }
        if number % RARE_WORD_INTERVAL == RARE_WORD_INTERVAL / 2 {
            out.push(b' ');
            out.extend_from_slice(RARE_WORD.as_bytes());
        }
        out.push(b'.');
    }
}

fn one_of<'a>(words: &[&'a str], random: &mut fastrand::Rng) -> &'a str {
    words[random.usize(..words.len())]
}

/// Returns a random rank from 0: the n-th word is about 1/n times as frequent as the first.
fn rank(random: &mut fastrand::Rng) -> usize {
    #[expect(clippy::cast_precision_loss, reason = "the vocabulary is small")]
    let rank = (VOCABULARY_SIZE as f64).powf(random.f64());
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "between 1 and VOCABULARY_SIZE"
    )]
    let rank = rank as usize;
    rank.clamp(1, VOCABULARY_SIZE) - 1
}

/// Returns the word with this rank. It is deterministic, so the benchmark can search for it.
pub fn word(rank: usize) -> String {
    const CONSONANTS: &[u8; 14] = b"bdfgklmnprstvz";
    const VOWELS: &[u8; 5] = b"aeiou";
    const SYLLABLES: usize = 14 * 5;
    // Coprime to the number of three-syllable words, so all words differ.
    let mut number = (rank + 1) * 76_543 % SYLLABLES.pow(3);
    let mut word = String::new();
    for _ in 0..3 {
        let syllable = number % SYLLABLES;
        word.push(char::from(CONSONANTS[syllable / 5]));
        word.push(char::from(VOWELS[syllable % 5]));
        number /= SYLLABLES;
    }
    word.push_str(["", "n", "s", "r"][rank % 4]);
    word
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use super::*;

    fn documents(count: u64) -> Vec<Value> {
        let sample = serde_json::from_str(include_str!("../../sample.json")).unwrap();
        let generator = DocumentGenerator::new(sample).unwrap();
        let mut random = fastrand::Rng::with_seed(7);
        let write = |number| {
            let mut out = Vec::new();
            let name_at = generator.write(&mut out, number, &mut random);
            let document: Value = serde_json::from_slice(&out).unwrap();
            let name = document["name"].as_str().unwrap();
            assert_eq!(&out[name_at..name_at + name.len()], name.as_bytes());
            document
        };
        (0..count).map(write).collect()
    }

    #[test]
    fn documents_equal_the_sample_except_for_name_language_category_and_words() {
        let sample: Value = serde_json::from_str(include_str!("../../sample.json")).unwrap();
        let documents = documents(2_000);
        let distinct = |member: &str| {
            documents.iter().map(|it| it[member].as_str().unwrap()).collect::<BTreeSet<_>>().len()
        };
        assert_eq!(distinct("name"), documents.len());
        assert_eq!(distinct("language"), LANGUAGES.len());
        assert_eq!(distinct("category"), CATEGORIES.len());
        for document in &documents {
            assert_eq!(document["components"][2], sample["components"][2]);
            let text = document["components"][1]["text"].as_str().unwrap();
            let words = text.strip_prefix(sample["components"][1]["text"].as_str().unwrap());
            assert!(words.unwrap().split_whitespace().count() >= WORDS_PER_TEXT, "{text}");
        }
    }

    #[test]
    fn a_few_words_are_frequent_and_one_is_rare() {
        let documents = documents(10_000);
        let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
        for document in &documents {
            let text = document["components"][1]["text"].as_str().unwrap();
            for word in text.split([' ', '.']).collect::<BTreeSet<_>>() {
                *counts.entry(word).or_default() += 1;
            }
        }
        assert_eq!(counts[RARE_WORD], 1);
        assert_eq!(counts["collection"], documents.len());
        let shares = [2, 49].map(|rank| counts[&*word(rank)] * 1_000 / documents.len());
        assert!((200..300).contains(&shares[0]) && (10..30).contains(&shares[1]), "{shares:?}");
    }

    #[test]
    fn words_are_distinct_and_include_the_search_terms_of_the_benchmark() {
        let words: BTreeSet<_> = (0..VOCABULARY_SIZE).map(word).collect();
        assert_eq!(words.len(), VOCABULARY_SIZE);
        assert_eq!((&*word(2), &*word(49)), ("luvares", "pabofen"));
        assert!(words.iter().filter(|word| word.starts_with("ka")).count() > 10);
        assert!(!words.iter().any(|word| word.starts_with("qu")));
    }
}
