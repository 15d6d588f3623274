//! Conflicts between the templates of one run, which are treated as templates of one account.

use std::collections::{HashMap, hash_map::Entry};

use galley_domain::{
    document::{Document, Json},
    id::AccountId,
    rulebook::{Category, Rulebook},
    template::{Template, message_text::MessageText},
    violation::{Rule, Violation, Warning},
};

/// The templates checked so far, each with its position.
pub(in crate::commands) struct ConflictChecks {
    rulebook: &'static Rulebook,
    unique_keys: HashMap<String, String>,
    categories: HashMap<String, (Category, String)>,
    texts: HashMap<MessageText, String>,
}

impl ConflictChecks {
    pub(in crate::commands) fn new(rulebook: &'static Rulebook) -> Self {
        Self {
            rulebook,
            unique_keys: HashMap::new(),
            categories: HashMap::new(),
            texts: HashMap::new(),
        }
    }

    /// Two templates of one run must not have the same name, as in the service.
    pub(in crate::commands) fn name_in_use(
        &mut self,
        document: &Document<'_>,
        here: &str,
    ) -> Option<Violation> {
        let text = |key: &str| document.root().get(key).and_then(Json::as_str);
        let name = text("name").filter(|name| !name.trim().is_empty())?;
        let account = AccountId::new(1).expect("1 is an id");
        let unique_key =
            (self.rulebook.unique_key)(account, name, text("language").unwrap_or_default());
        let first = first(&mut self.unique_keys, unique_key, here)?;
        Some(Violation {
            pointer: "/name".to_owned(),
            rule: Rule::NameTaken,
            message: format!("is already the name of another template, at {first}"),
            hint: Some("choose a different name for each template".to_owned()),
            span: None,
        })
    }

    /// All languages of a name must have the same category.
    pub(in crate::commands) fn category_differs(
        &mut self,
        document: &Document<'_>,
        here: &str,
    ) -> Option<Violation> {
        let text = |key: &str| document.root().get(key).and_then(Json::as_str);
        let name = text("name").filter(|_| self.rulebook.supports_translations)?;
        let category = Category::parse(text("category")?)?;
        let first = match self.categories.entry(name.to_owned()) {
            Entry::Vacant(free) => {
                free.insert((category, here.to_owned()));
                return None;
            }
            Entry::Occupied(first) => first.into_mut(),
        };
        let (expected, position) = (first.0.as_str(), &first.1);
        (category != first.0).then(|| Violation {
            pointer: "/category".to_owned(),
            rule: Rule::CategoryDiffers,
            message: format!(
                "differs from another language of the same name, which is {expected}, at {position}"
            ),
            hint: Some(format!("use {expected}, or choose another name")),
            span: None,
        })
    }

    pub(super) fn same_content(&mut self, template: &Template, here: &str) -> Option<Warning> {
        let text =
            MessageText::from_template(template).filter(|_| self.rulebook.supports_translations)?;
        let first = first(&mut self.texts, text, here)?;
        Some(MessageText::duplicate_warning(&format!("another template, at {first}")))
    }
}

/// The position of the first occurrence of a key; records this position if it is the first.
fn first<K: Eq + std::hash::Hash>(
    seen: &mut HashMap<K, String>,
    what: K,
    here: &str,
) -> Option<String> {
    match seen.entry(what) {
        Entry::Occupied(first) => Some(first.get().clone()),
        Entry::Vacant(free) => {
            free.insert(here.to_owned());
            None
        }
    }
}
