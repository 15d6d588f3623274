//! A small seeded generator, and the documents that are made with it.

use std::fmt::Write as _;

use serde_json::{Value, json};

/// Xorshift: enough to choose kill points and texts, and the same on every machine.
pub(super) struct Dice(u64);

impl Dice {
    /// The seed is scattered first (splitmix): dice whose seeds were thrown with other dice would
    /// otherwise go on with the numbers of those.
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

    pub(super) fn pick<'a, T>(&mut self, some: &'a [T]) -> &'a T {
        &some[usize::try_from(self.below(some.len() as u64)).unwrap()]
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

    /// Components that are sent once only: every text begins with a number of its own.
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

    /// Words of several scripts, at most `longest` bytes or so.
    pub(super) fn text(&mut self, longest: u64) -> String {
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
        let length = usize::try_from(self.below(longest)).unwrap();
        let mut text = format!("{:x}", self.next());
        while text.len() < length {
            let word = self.pick(&WORDS);
            let _ = write!(text, " {word}");
        }
        text
    }
}

/// The seed that is to be replayed, or a new one.
#[expect(clippy::disallowed_methods, reason = "whoever replays a run hands its seed in")]
pub(super) fn seed() -> u64 {
    use std::hash::{BuildHasher as _, Hasher as _, RandomState};
    match std::env::var("GALLEY_KILL_SEED") {
        Ok(seed) => seed.parse().expect("GALLEY_KILL_SEED is a number"),
        Err(_) => RandomState::new().build_hasher().finish(),
    }
}
