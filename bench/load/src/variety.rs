//! Documents that differ as those of a real account do: in language, category and words.

use serde_json::Value;

use crate::request::{HOLE, fill};

/// The languages, each as frequent as the others.
pub const LANGUAGES: [&str; 6] = ["en_US", "de_DE", "pt_BR", "es_MX", "fr_FR", "hi_IN"];

/// The categories, each as frequent as the others.
pub const CATEGORIES: [&str; 3] = ["MARKETING", "UTILITY", "AUTHENTICATION"];

/// How many words there are. Few of them are frequent and most are rare, as in any language.
pub const WORDS: usize = 4_000;

/// How many of them each text gets.
const WORDS_A_TEXT: usize = 8;

/// A word that no other text holds.
pub const RARE_WORD: &str = "quetzal";

/// One text in so many holds it.
const RARE_EVERY: u64 = 10_000;

/// Where something else goes in every document.
const MARKS: [(&str, Blank); 4] = [
    (HOLE, Blank::Name),
    ("~language~", Blank::Language),
    ("~category~", Blank::Category),
    ("~words~", Blank::Words),
];

#[derive(Debug, Clone, Copy)]
enum Blank {
    Name,
    Language,
    Category,
    Words,
}

/// A document with blanks to fill.
#[derive(Debug)]
pub struct Variety {
    /// What stands before each blank, and the blank.
    parts: Vec<(String, Blank)>,
    rest: String,
    words: Vec<String>,
}

impl Variety {
    /// Makes blanks of the name, the language, the category and the end of the body's text.
    pub fn new(mut document: Value) -> Result<Self, String> {
        for (member, mark) in
            [("name", HOLE), ("language", "~language~"), ("category", "~category~")]
        {
            *document.get_mut(member).ok_or(format!("the document has no `{member}`"))? =
                mark.into();
        }
        let text = document["components"]
            .as_array_mut()
            .and_then(|components| components.iter_mut().find(|it| it["type"] == "BODY"))
            .and_then(|body| body.get_mut("text"))
            .ok_or("the document has no BODY with a `text`")?;
        *text = format!("{} ~words~", text.as_str().unwrap_or_default()).into();

        let mut rest = document.to_string();
        let mut parts = Vec::new();
        while let Some((at, mark, blank)) = MARKS
            .into_iter()
            .filter_map(|(mark, blank)| Some((rest.find(mark)?, mark, blank)))
            .min_by_key(|(at, ..)| *at)
        {
            parts.push((rest[..at].to_owned(), blank));
            rest.drain(..at + mark.len());
        }
        Ok(Self { parts, rest, words: (0..WORDS).map(word).collect() })
    }

    /// Writes the document with this number; answers where its name begins.
    pub fn write(&self, out: &mut Vec<u8>, number: u64, random: &mut fastrand::Rng) -> usize {
        let mut name_at = 0;
        for (before, blank) in &self.parts {
            out.extend_from_slice(before.as_bytes());
            match blank {
                Blank::Name => {
                    name_at = out.len();
                    out.extend_from_slice(HOLE.as_bytes());
                    fill(&mut out[name_at..], random);
                }
                Blank::Language => out.extend_from_slice(one_of(&LANGUAGES, random).as_bytes()),
                Blank::Category => out.extend_from_slice(one_of(&CATEGORIES, random).as_bytes()),
                Blank::Words => self.write_words(out, number, random),
            }
        }
        out.extend_from_slice(self.rest.as_bytes());
        name_at
    }

    fn write_words(&self, out: &mut Vec<u8>, number: u64, random: &mut fastrand::Rng) {
        for place in 0..WORDS_A_TEXT {
            if place > 0 {
                out.push(b' ');
            }
            out.extend_from_slice(self.words[rank(random)].as_bytes());
        }
        if number % RARE_EVERY == RARE_EVERY / 2 {
            out.push(b' ');
            out.extend_from_slice(RARE_WORD.as_bytes());
        }
        out.push(b'.');
    }
}

fn one_of<'a>(words: &[&'a str], random: &mut fastrand::Rng) -> &'a str {
    words[random.usize(..words.len())]
}

/// A rank from 0 on: the n-th word is about as frequent as one n-th of the first.
fn rank(random: &mut fastrand::Rng) -> usize {
    #[expect(clippy::cast_precision_loss, reason = "some thousand words")]
    let rank = (WORDS as f64).powf(random.f64());
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "from 1 to WORDS")]
    let rank = rank as usize;
    rank.clamp(1, WORDS) - 1
}

/// The word with this rank: always the same, so that it can be searched for.
pub fn word(rank: usize) -> String {
    const CONSONANTS: &[u8; 14] = b"bdfgklmnprstvz";
    const VOWELS: &[u8; 5] = b"aeiou";
    const SYLLABLES: usize = 14 * 5;
    // Without a common divisor with the number of words of three syllables: all words differ.
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
        let variety = Variety::new(sample).unwrap();
        let mut random = fastrand::Rng::with_seed(7);
        let write = |number| {
            let mut out = Vec::new();
            let name_at = variety.write(&mut out, number, &mut random);
            let document: Value = serde_json::from_slice(&out).unwrap();
            let name = document["name"].as_str().unwrap();
            assert_eq!(&out[name_at..name_at + name.len()], name.as_bytes());
            document
        };
        (0..count).map(write).collect()
    }

    #[test]
    fn documents_differ_in_name_language_category_and_words_and_are_else_the_sample() {
        let sample: Value = serde_json::from_str(include_str!("../../sample.json")).unwrap();
        let documents = documents(2_000);
        let different = |member: &str| {
            documents.iter().map(|it| it[member].as_str().unwrap()).collect::<BTreeSet<_>>().len()
        };
        assert_eq!(different("name"), documents.len());
        assert_eq!(different("language"), LANGUAGES.len());
        assert_eq!(different("category"), CATEGORIES.len());
        for document in &documents {
            assert_eq!(document["components"][2], sample["components"][2]);
            let text = document["components"][1]["text"].as_str().unwrap();
            let words = text.strip_prefix(sample["components"][1]["text"].as_str().unwrap());
            assert!(words.unwrap().split_whitespace().count() >= WORDS_A_TEXT, "{text}");
        }
    }

    #[test]
    fn few_words_are_frequent_and_one_is_rare() {
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
    fn words_differ_and_those_that_the_benchmark_searches_for_are_among_them() {
        let words: BTreeSet<_> = (0..WORDS).map(word).collect();
        assert_eq!(words.len(), WORDS);
        assert_eq!((&*word(2), &*word(49)), ("luvares", "pabofen"));
        assert!(words.iter().filter(|word| word.starts_with("ka")).count() > 10);
        assert!(!words.iter().any(|word| word.starts_with("qu")));
    }
}
