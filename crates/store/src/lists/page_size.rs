//! Where a page of large rows ends.

use crate::StoredTemplate;

/// Maximum content of a page, in bytes. A page has at least one item, whatever its size.
pub(crate) const MAX_PAGE_BYTES: usize = 1_024 * 1_024;

/// What still fits on a page.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PageBudget {
    items: usize,
    bytes: usize,
    is_empty: bool,
}

impl PageBudget {
    /// An empty page with up to `max_items` items.
    pub(crate) fn new(max_items: usize) -> Self {
        Self { items: max_items, bytes: MAX_PAGE_BYTES, is_empty: true }
    }

    /// Whether the next item, with this much content, is on the page. After the first that is not,
    /// the page is complete.
    pub(crate) fn admits(&mut self, bytes: usize) -> bool {
        if self.items == 0 || (bytes > self.bytes && !self.is_empty) {
            self.items = 0;
            return false;
        }
        self.items -= 1;
        self.bytes = self.bytes.saturating_sub(bytes);
        self.is_empty = false;
        true
    }
}

/// The templates of a page, in the order in which they are read.
pub(crate) struct PageBuilder {
    budget: PageBudget,
    pub(crate) templates: Vec<StoredTemplate>,
    /// Whether there was a template after the last one of the page.
    pub(crate) has_more: bool,
}

impl PageBuilder {
    pub(crate) fn new(limit: usize) -> Self {
        Self { budget: PageBudget::new(limit), templates: Vec::new(), has_more: false }
    }

    /// Adds the next template. `false` if it is not on the page any more.
    pub(crate) fn add(&mut self, template: StoredTemplate) -> bool {
        let fits = self.budget.admits(template.template.content().len());
        if fits {
            self.templates.push(template);
        } else {
            self.has_more = true;
        }
        fits
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How many of these items are on a page.
    fn count(max_items: usize, sizes: &[usize]) -> usize {
        let mut budget = PageBudget::new(max_items);
        sizes.iter().take_while(|bytes| budget.admits(**bytes)).count()
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
        let mut budget = PageBudget::new(9);
        assert!(budget.admits(1) && !budget.admits(MAX_PAGE_BYTES) && !budget.admits(1));
    }
}
