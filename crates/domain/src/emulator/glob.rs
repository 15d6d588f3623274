//! Patterns for names: `*` stands for any characters, `?` for one.

/// A pattern that a whole name matches or does not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Glob(String);

impl Glob {
    /// The pattern; every text is one.
    pub fn new(pattern: &str) -> Self {
        Self(pattern.to_owned())
    }

    /// The pattern as it was written.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether the whole name matches. The number of steps is at most the product of both lengths:
    /// only the last `*` is ever extended.
    pub fn matches(&self, name: &str) -> bool {
        let mut pattern = self.0.chars();
        let mut name = name.chars();
        // The pattern after the last `*`, and the name that is not matched by that `*`.
        let mut retry = None;
        loop {
            let (next_pattern, next_name) = (pattern.clone().next(), name.clone().next());
            match (next_pattern, next_name) {
                (None, None) => return true,
                (Some('*'), _) => {
                    pattern.next();
                    retry = Some((pattern.clone(), name.clone()));
                    continue;
                }
                (Some(wanted), Some(found)) if wanted == '?' || wanted == found => {
                    pattern.next();
                    name.next();
                    continue;
                }
                _ => {}
            }
            let Some((after_star, mut longer)) = retry.take() else { return false };
            if longer.next().is_none() {
                return false;
            }
            (pattern, name) = (after_star.clone(), longer.clone());
            retry = Some((after_star, longer));
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_whole_name_has_to_match() {
        for (pattern, names, others) in [
            ("", &[""] as &[_], &["a"] as &[_]),
            ("order", &["order"], &["", "orders", "Order"]),
            ("*", &["", "a", "order_1"], &[]),
            ("order_*", &["order_", "order_1"], &["order", "my_order_1"]),
            ("*_promo", &["_promo", "a_promo", "a_promo_promo"], &["a_promo_"]),
            ("a?c", &["abc", "aüc"], &["ac", "abbc"]),
            ("*a*b*", &["ab", "xaxbx", "aab"], &["ba", "a"]),
            ("a**b", &["ab", "axb"], &["a"]),
            ("?*", &["a", "ab"], &[""]),
        ] {
            for name in names {
                assert!(Glob::new(pattern).matches(name), "{pattern} {name}");
            }
            for name in others {
                assert!(!Glob::new(pattern).matches(name), "{pattern} {name}");
            }
        }
    }

    #[test]
    fn a_hostile_pattern_does_not_take_exponential_time() {
        let pattern = Glob::new(&"*a".repeat(256));
        assert!(!pattern.matches(&"a".repeat(255)));
        assert!(!Glob::new(&format!("{}c", "*a*b".repeat(100))).matches(&"ab".repeat(256)));
    }

    /// The definition.
    fn matches(pattern: &[char], name: &[char]) -> bool {
        match (pattern, name) {
            ([], name) => name.is_empty(),
            (['*', rest @ ..], name) => (0..=name.len()).any(|at| matches(rest, &name[at..])),
            (['?', rest @ ..], [_, name @ ..]) => matches(rest, name),
            ([wanted, rest @ ..], [found, name @ ..]) => wanted == found && matches(rest, name),
            _ => false,
        }
    }

    proptest! {
        #[test]
        fn it_matches_what_the_definition_matches(pattern in "[ab*?]{0,8}", name in "[ab]{0,8}") {
            let (letters, of_name): (Vec<_>, Vec<_>) = (pattern.chars().collect(), name.chars().collect());
            prop_assert_eq!(Glob::new(&pattern).matches(&name), matches(&letters, &of_name));
        }
    }
}
