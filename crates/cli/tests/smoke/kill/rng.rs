//! A small seeded random number generator, and the documents that it generates.

use std::fmt::Write as _;

use serde_json::{Value, json};

/// Xorshift: good enough for kill points and texts, and the same on every machine.
pub(super) struct Rng(u64);

impl Rng {
    /// Mixes the seed first (splitmix). Otherwise a generator seeded from another one would repeat
    /// the other's sequence.
    pub(super) fn new(seed: u64) -> Self {
        let mut mixed = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        Self((mixed ^ (mixed >> 31)) | 1)
    }

    pub(super) fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    pub(super) fn below(&mut self, end: u64) -> u64 {
        (self.next() >> 16) % end
    }

    pub(super) fn coin(&mut self) -> bool {
        self.below(2) == 0
    }

    pub(super) fn pick<'a, T>(&mut self, items: &'a [T]) -> &'a T {
        &items[usize::try_from(self.below(items.len() as u64)).unwrap()]
    }

    pub(super) fn document(&mut self, name: &str) -> Value {
        json!({
            "name": name,
            "language": "pt_BR",
            "category": "MARKETING",
            "allow_category_change": self.coin(),
            "components": self.components(),
        })
    }

    /// Unique components: every text begins with a random number.
    pub(super) fn components(&mut self) -> Value {
        let mut components = vec![json!({"type": "BODY", "text": self.text(1_500)})];
        if self.coin() {
            components.push(json!({"type": "FOOTER", "text": self.text(200)}));
        }
        if self.coin() {
            let buttons: Vec<Value> = (0..=self.below(5))
                .map(|_| json!({"type": "QUICK_REPLY", "text": self.text(40)}))
                .collect();
            components.push(json!({"type": "BUTTONS", "buttons": buttons}));
        }
        components.into()
    }

    /// Words of several scripts, about `max_bytes` bytes at most.
    pub(super) fn text(&mut self, max_bytes: u64) -> String {
        const WORDS: [&str; 8] = [
            "offer",
            "r\u{e9}duit",
            "\u{4eca}\u{65e5}",
            "\u{1f381}",
            "\"so\"",
            "\\o/",
            "\u{5e9}\u{5dc}\u{5d5}\u{5dd}",
            "e\u{301}",
        ];
        let length = usize::try_from(self.below(max_bytes)).unwrap();
        let mut text = format!("{:x}", self.next());
        while text.len() < length {
            let word = self.pick(&WORDS);
            let _ = write!(text, " {word}");
        }
        text
    }
}

/// The seed from `GALLEY_KILL_SEED`, or a random one.
#[expect(clippy::disallowed_methods, reason = "the variable replays a run")]
pub(super) fn seed() -> u64 {
    use std::hash::{BuildHasher as _, Hasher as _, RandomState};
    match std::env::var("GALLEY_KILL_SEED") {
        Ok(seed) => seed.parse().expect("GALLEY_KILL_SEED is a number"),
        Err(_) => RandomState::new().build_hasher().finish(),
    }
}

/// The number of kills from `GALLEY_KILL_CYCLES`, or 25.
#[expect(clippy::disallowed_methods, reason = "the variable makes a run longer")]
pub(super) fn cycles() -> u32 {
    match std::env::var("GALLEY_KILL_CYCLES") {
        Ok(cycles) => cycles.parse().expect("GALLEY_KILL_CYCLES is a number"),
        Err(_) => 25,
    }
}
