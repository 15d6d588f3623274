//! Where a page of large rows ends.

use crate::StoredTemplate;

/// Maximum content of a page, in bytes. A page has at least one item, whatever its size.
pub(crate) const MAX_PAGE_BYTES: usize = 1_024 * 1_024;

/// The templates of a page, in the order in which they are read.
pub(crate) struct PageBuilder {
    limit: usize,
    /// How much content they have.
    bytes: usize,
    pub(crate) templates: Vec<StoredTemplate>,
    /// Whether there was a template after the last one of the page.
    pub(crate) has_more: bool,
}

impl PageBuilder {
    pub(crate) fn new(limit: usize) -> Self {
        Self { limit, bytes: 0, templates: Vec::new(), has_more: false }
    }

    /// Adds the next template. `false` if it is not on the page any more: then the page is complete.
    pub(crate) fn add(&mut self, template: StoredTemplate) -> bool {
        let bytes = self.bytes + template.template.content().len();
        self.has_more |= self.templates.len() >= self.limit
            || bytes > MAX_PAGE_BYTES && !self.templates.is_empty();
        if !self.has_more {
            self.bytes = bytes;
            self.templates.push(template);
        }
        !self.has_more
    }
}

#[cfg(test)]
mod tests {
    use galley_domain::{
        id::TemplateId,
        rulebook::Category,
        template::{Status, Template, lifecycle::State, quality::Quality},
    };
    use jiff::Timestamp;

    use super::*;

    #[expect(clippy::disallowed_methods, reason = "the page only measures the content")]
    fn template(bytes: usize) -> StoredTemplate {
        let (name, language) = ("a".to_owned(), "en".to_owned());
        let state = State {
            version: 1,
            newest_status: Status::Pending,
            approved_version: None,
            hold: None,
        };
        StoredTemplate {
            id: TemplateId::new(1).unwrap(),
            phone: None,
            template: Template::restore(name, language, Category::Utility, true, "x".repeat(bytes)),
            state,
            previous_category: None,
            announced_category: None,
            quality: Quality::Unknown,
            reason: None,
            decided_by: None,
            revision: 1,
            created_at: Timestamp::UNIX_EPOCH,
            updated_at: Timestamp::UNIX_EPOCH,
        }
    }

    /// How many of these items are on a page.
    fn count(max_items: usize, sizes: &[usize]) -> usize {
        let mut page = PageBuilder::new(max_items);
        sizes.iter().take_while(|bytes| page.add(template(**bytes))).count()
    }

    #[test]
    fn a_page_ends_at_its_limit_or_before_its_content_exceeds_the_maximum() {
        assert_eq!(count(3, &[10; 5]), 3);
        assert_eq!(count(100, &[256 * 1_024; 100]), 4);
        assert_eq!(count(100, &[MAX_PAGE_BYTES - 1, 1, 1]), 2);
        assert_eq!(count(0, &[1]), 0);
    }

    #[test]
    fn the_first_item_is_always_on_the_page() {
        assert_eq!(count(100, &[MAX_PAGE_BYTES + 1, 1]), 1);
        assert_eq!(count(1, &[MAX_PAGE_BYTES + 1]), 1);
    }

    #[test]
    fn a_smaller_item_does_not_take_the_place_of_one_that_did_not_fit() {
        let mut page = PageBuilder::new(9);
        let is_added = [1, MAX_PAGE_BYTES, 1].map(|bytes| page.add(template(bytes)));
        assert_eq!(is_added, [true, false, false]);
    }
}
