//! Caches what WhatsApp refuses of a content, so that rendering does not check the content again.
//! Translations and copies often have the same content, so it is found by the content itself.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

use galley_domain::{rulebook::Category, template::Template, violation::Warnings};

/// Maximum size of all entries, in bytes. A full cache starts again.
const MAX_BYTES: usize = 8 * 1_024 * 1_024;

/// Approximate size of a warning, and of an entry without its content.
const WARNING_BYTES: usize = 512;

/// The warnings about contents that were rendered.
#[derive(Default)]
pub(crate) struct WarningCache(Mutex<Entries>);

#[derive(Default)]
struct Entries {
    by_content: HashMap<String, (Category, Arc<Warnings>)>,
    bytes: usize,
}

impl WarningCache {
    /// The warnings about the content of a template, cached or new.
    pub(crate) fn of(&self, template: &Template) -> Arc<Warnings> {
        let entries = || self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((category, warnings)) = entries().by_content.get(template.content())
            && *category == template.category()
        {
            return Arc::clone(warnings);
        }
        let warnings = Arc::new(template.whatsapp_content_warnings());
        entries().insert(template, Arc::clone(&warnings));
        warnings
    }
}

impl Entries {
    fn insert(&mut self, template: &Template, warnings: Arc<Warnings>) {
        let bytes = template.content().len() + WARNING_BYTES * (1 + warnings.listed().len());
        if self.bytes + bytes > MAX_BYTES {
            *self = Self::default();
        }
        // An entry with another category is replaced, and stays counted.
        self.bytes += bytes;
        self.by_content.insert(template.content().to_owned(), (template.category(), warnings));
    }
}

#[cfg(test)]
mod tests {
    use galley_domain::{document::Document, rulebook::V1};

    use super::*;

    fn template(category: &str, text: &str) -> Template {
        let document = format!(
            r#"{{"name":"n","language":"en_US","category":"{category}","allow_category_change":true,
                "components":[{{"type":"BODY","text":"{text}"}}]}}"#
        );
        Template::read(&Document::parse(document.as_bytes()).unwrap(), &V1).unwrap()
    }

    #[test]
    fn a_content_is_checked_once_for_each_category() {
        let cache = WarningCache::default();
        let (offer, code) = (template("MARKETING", "Hello!"), template("AUTHENTICATION", "Hello!"));
        assert_eq!((cache.of(&offer).count(), cache.of(&code).count()), (0, 1));
        let checked = cache.of(&code);
        assert!(Arc::ptr_eq(&checked, &cache.of(&code)));
    }

    #[test]
    fn the_cache_is_bounded() {
        let cache = WarningCache::default();
        for number in 0..200 {
            cache.of(&template("MARKETING", &format!("{number} {}", "a".repeat(4_000))));
        }
        let mut entries = cache.0.lock().unwrap();
        assert_eq!(entries.by_content.len(), 200);
        entries.bytes = MAX_BYTES;
        drop(entries);
        cache.of(&template("MARKETING", "one more"));
        assert_eq!(cache.0.lock().unwrap().by_content.len(), 1);
    }
}
