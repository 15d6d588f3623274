//! What only several templates together get wrong. Those of one run are taken for those of one
//! account, whichever that is.

use std::collections::{HashMap, hash_map::Entry};

use galley_domain::{
    document::{Document, Json},
    id::AccountId,
    rulebook::{Category, Rulebook},
    template::{Template, message_text::MessageText},
    violation::{Rule, Violation, Warning},
};

/// The templates seen so far, each with its place.
pub(in crate::commands) struct Others {
    rulebook: &'static Rulebook,
    claims: HashMap<String, String>,
    categories: HashMap<String, (Category, String)>,
    wordings: HashMap<MessageText, String>,
}

impl Others {
    pub(in crate::commands) fn new(rulebook: &'static Rulebook) -> Self {
        Self {
            rulebook,
            claims: HashMap::new(),
            categories: HashMap::new(),
            wordings: HashMap::new(),
        }
    }

    /// Two templates of one run may not have the same name, just as in a service.
    pub(in crate::commands) fn name_taken(
        &mut self,
        document: &Document<'_>,
        here: &str,
    ) -> Option<Violation> {
        let text = |key: &str| document.root().get(key).and_then(Json::as_str);
        let name = text("name").filter(|name| !name.trim().is_empty())?;
        let account = AccountId::new(1).expect("1 is an id");
        let claim = (self.rulebook.claim)(account, name, text("language").unwrap_or_default());
        let first = first(&mut self.claims, claim, here)?;
        Some(Violation {
            pointer: "/name".to_owned(),
            rule: Rule::NameTaken,
            message: format!("is the name of another template, at {first}"),
            hint: Some("give each template a name of its own".to_owned()),
            span: None,
        })
    }

    /// Where languages share a name, they share a category.
    pub(in crate::commands) fn category_differs(
        &mut self,
        document: &Document<'_>,
        here: &str,
    ) -> Option<Violation> {
        let text = |key: &str| document.root().get(key).and_then(Json::as_str);
        let name = text("name").filter(|_| self.rulebook.names_have_languages)?;
        let category = Category::parse(text("category")?)?;
        let first = match self.categories.entry(name.to_owned()) {
            Entry::Vacant(free) => {
                free.insert((category, here.to_owned()));
                return None;
            }
            Entry::Occupied(first) => first.into_mut(),
        };
        let (word, place) = (first.0.as_str(), &first.1);
        (category != first.0).then(|| Violation {
            pointer: "/category".to_owned(),
            rule: Rule::CategoryDiffers,
            message: format!("the same name is {word} in another language, at {place}"),
            hint: Some(format!("make it {word}, or choose another name")),
            span: None,
        })
    }

    pub(super) fn same_content(&mut self, template: &Template, here: &str) -> Option<Warning> {
        let wording = MessageText::of(template).filter(|_| self.rulebook.names_have_languages)?;
        let first = first(&mut self.wordings, wording, here)?;
        Some(MessageText::repeated_by(&format!("another template, at {first}")))
    }
}

/// Where it was seen before; remembers that it is here otherwise.
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
