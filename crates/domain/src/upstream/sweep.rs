//! A sweep: the walk over all pages of the list of templates, and what it proves.

use std::collections::HashSet;

use super::observation::{RemoteId, RemoteTemplate};

/// In so many counted sweeps a template is missing before a read of the template decides that it is
/// gone.
pub const SWEEPS_UNTIL_GONE: u32 = 2;

/// The number of templates to ask for in a page. It halves after the second failure in a row, and
/// doubles after three pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageSize {
    limit: u32,
    /// Pages since the last failure or change of the size.
    good: u32,
    /// Failures in a row.
    failures: u32,
}

impl PageSize {
    /// The largest page.
    pub const MAX: u32 = 100;

    /// Pages until the size doubles.
    const GOOD_PAGES: u32 = 3;

    /// Failures in a row until the size halves. A single failure is rarely about the size.
    const FAILURES: u32 = 2;

    /// The number.
    pub fn get(self) -> u32 {
        self.limit
    }

    /// After a page.
    #[must_use]
    pub fn after_page(self) -> Self {
        let good = self.good + 1;
        if good < Self::GOOD_PAGES || self.limit >= Self::MAX {
            return Self { good: good.min(Self::GOOD_PAGES), failures: 0, ..self };
        }
        Self { limit: (2 * self.limit).min(Self::MAX), good: 0, failures: 0 }
    }

    /// After a page that was too large for the provider, or whose outcome is unknown.
    #[must_use]
    pub fn after_failure(self) -> Self {
        let failures = self.failures + 1;
        if failures < Self::FAILURES {
            return Self { good: 0, failures, ..self };
        }
        Self { limit: (self.limit / 2).max(1), good: 0, failures: 0 }
    }
}

impl Default for PageSize {
    fn default() -> Self {
        Self { limit: Self::MAX, good: 0, failures: 0 }
    }
}

/// So many pages in a row without a template that can be read end a walk: its list has no end.
const MAX_IDLE_PAGES: u32 = 10;

/// The most templates of a walk.
const MAX_SEEN: u32 = 1_000_000;

/// The templates of a page.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PageCounts {
    /// Those that can be read.
    pub shown: u32,
    /// Those of them that the walk had not seen before.
    pub new: u32,
    /// Those of the new ones that the provider generated.
    pub generated: u32,
    /// Those that cannot be read.
    pub unreadable: u32,
    /// The number of templates that the provider counts, if it does.
    pub total: Option<u32>,
}

impl PageCounts {
    /// Adds a template that can be read.
    pub fn add(&mut self, is_new: bool, is_generated: bool) {
        self.shown += 1;
        self.new += u32::from(is_new);
        self.generated += u32::from(is_new && is_generated);
    }
}

/// The templates that a walk has seen, where no store knows them.
#[derive(Clone, Debug, Default)]
pub struct SeenTemplates(HashSet<RemoteId>);

impl SeenTemplates {
    /// Counts and adds the templates of a page.
    pub fn count(&mut self, templates: &[RemoteTemplate]) -> PageCounts {
        let mut counts = PageCounts::default();
        for template in templates {
            counts.add(self.0.insert(template.id.clone()), template.is_generated());
        }
        counts
    }
}

/// What a sweep has seen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SweepProgress {
    /// Templates on its pages, each counted once, readable or not.
    pub seen: u32,
    /// Whether a cursor expired, so that it started again.
    pub restarted: bool,
    /// Whether a page did not answer.
    pub failed: bool,
    /// The number of templates that the provider counts, if it does.
    pub total: Option<u32>,
    /// Those of the templates seen that the provider generated. They come and go by themselves.
    pub generated: u32,
    /// Pages in a row that showed nothing new.
    pub idle: u32,
}

impl SweepProgress {
    /// After a page. One that shows only templates that were seen before is repeated; one that shows
    /// none may be followed by others.
    #[must_use]
    pub fn after_page(self, page: PageCounts) -> Self {
        let new = page.new.saturating_add(page.unreadable);
        Self {
            seen: self.seen.saturating_add(new),
            total: page.total.or(self.total),
            generated: self.generated.saturating_add(page.generated),
            idle: match page {
                PageCounts { new: 1.., .. } => 0,
                PageCounts { shown: 1.., .. } => MAX_IDLE_PAGES,
                _ => self.idle.saturating_add(1),
            },
            ..self
        }
    }

    /// Whether the list repeats itself or does not end, so that no more pages are to be read.
    pub fn is_endless(self) -> bool {
        self.idle >= MAX_IDLE_PAGES || self.seen > MAX_SEEN
    }

    /// Whether it walked over every page without a break and saw as many templates as the provider
    /// counts. Generated templates may have been removed since they were seen, or be left out of the
    /// count.
    pub fn is_complete(self) -> bool {
        let least = self.seen.saturating_sub(self.generated);
        self.is_unbroken() && self.total.is_none_or(|total| (least..=self.seen).contains(&total))
    }

    /// Whether the provider counted another number of templates than the walk has seen, so that its first
    /// page is asked for once more: templates may have been created or deleted since the walk began.
    pub fn needs_recount(self) -> bool {
        self.is_unbroken() && !self.is_complete()
    }

    fn is_unbroken(self) -> bool {
        !self.restarted && !self.failed
    }
}

/// What the end of a sweep means for the templates that it did not see.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SweepVerdict {
    /// They are missing in one more counted sweep.
    Counted,
    /// Nothing: the sweep was not complete.
    Incomplete,
    /// Nothing, and a person should look: so many templates do not disappear by themselves.
    Suspicious,
}

/// What a sweep means. `known` is the number of templates that the mirror shows as present, and
/// `missing` those of them that the sweep did not see; both without generated templates.
pub fn verdict(known: u32, missing: u32, progress: SweepProgress) -> SweepVerdict {
    if !progress.is_unbroken() {
        return SweepVerdict::Incomplete;
    }
    let is_empty = progress.seen <= progress.generated && known > 0;
    // Where the provider generates templates, one more may have been made behind the walk.
    let is_truncated = missing > 0
        && progress.generated == 0
        && progress.total.is_some_and(|total| total > progress.seen);
    if missing > (known / 5).max(5) || is_empty || is_truncated {
        SweepVerdict::Suspicious
    } else if progress.is_complete() {
        SweepVerdict::Counted
    } else {
        SweepVerdict::Incomplete
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_halves_after_two_failures_in_a_row_and_grows_after_three_pages() {
        let first = PageSize::default();
        assert_eq!(first.get(), 100);
        let retried = first.after_failure();
        assert_eq!(retried.get(), 100, "one failure says nothing about the size");
        assert_eq!(retried.after_page().after_failure().get(), 100, "not in a row");
        let halved = retried.after_failure();
        assert_eq!(halved.get(), 50);
        let twice = halved.after_page().after_page();
        assert_eq!((twice.get(), twice.after_page().get()), (50, 100));
        let interrupted = twice.after_failure().after_page().after_page();
        assert_eq!(interrupted.get(), 50, "a failure starts the count again");
        let mut smallest = first;
        for _ in 0..40 {
            smallest = smallest.after_failure();
        }
        assert_eq!(smallest.get(), 1);
        let mut sizes = vec![smallest.get()];
        while smallest.get() < PageSize::MAX {
            smallest = smallest.after_page();
            sizes.push(smallest.get());
        }
        sizes.dedup();
        assert_eq!(sizes, [1, 2, 4, 8, 16, 32, 64, 100]);
    }

    #[test]
    fn an_import_with_failing_pages_costs_little_more_than_one_without() {
        // Every tenth call fails.
        let (mut left, mut calls, mut size) = (6_000_u32, 0_u32, PageSize::default());
        while left > 0 {
            calls += 1;
            if calls.is_multiple_of(10) {
                size = size.after_failure();
            } else {
                left = left.saturating_sub(size.get());
                size = size.after_page();
            }
        }
        assert!(calls <= 60 * 13 / 10, "{calls} calls");
    }

    /// A page with so many new templates.
    fn page(new: u32, total: Option<u32>) -> PageCounts {
        PageCounts { shown: new, new, total, ..PageCounts::default() }
    }

    #[test]
    fn a_walk_ends_if_its_pages_show_nothing_new() {
        let walked = |pages: &[(u32, u32, u32)]| {
            let pages = pages.iter().map(|(shown, new, unreadable)| PageCounts {
                shown: *shown,
                new: *new,
                unreadable: *unreadable,
                ..PageCounts::default()
            });
            pages.fold(SweepProgress::default(), SweepProgress::after_page).is_endless()
        };
        let (full, empty, unreadable, repeated) = ((9, 9, 0), (0, 0, 0), (0, 0, 9), (9, 0, 0));
        assert!(!walked(&[&[full][..], &[empty; 9], &[(9, 1, 0)], &[empty; 9]].concat()));
        assert!(walked(&[&[full][..], &[empty; 10]].concat()));
        assert!(walked(&[unreadable; 10]) && !walked(&[unreadable; 9]));
        assert!(walked(&[full, repeated]) && !walked(&[full; 100]));
        assert!(walked(&[(MAX_SEEN, MAX_SEEN, 0), full]), "there is no such account");
    }

    #[test]
    fn each_template_of_a_walk_is_counted_once() {
        let template = |id: &str, source: &str| {
            let text = format!(
                r#"{{"id":"{id}","name":"a","language":"en","status":"APPROVED","category":"UTILITY","source":"{source}"}}"#
            );
            RemoteTemplate::parse(&text).unwrap()
        };
        let (own, made) = (template("1", "BUSINESS"), template("2", "AUTO_GENERATED"));
        let mut seen = SeenTemplates::default();
        let counts = |shown, new, generated| PageCounts { shown, new, generated, ..page(0, None) };
        assert_eq!(seen.count(&[own.clone(), made.clone(), made.clone()]), counts(3, 2, 1));
        assert_eq!(seen.count(&[made, own]), counts(2, 0, 0));
    }

    fn progress(seen: u32, total: u32) -> SweepProgress {
        SweepProgress { seen, total: Some(total), ..SweepProgress::default() }
    }

    #[test]
    fn a_sweep_is_complete_if_every_page_answered_and_the_count_agrees() {
        let complete = SweepProgress::default();
        let complete = complete.after_page(page(100, Some(130))).after_page(page(30, None));
        assert_eq!(complete, progress(130, 130));
        assert!(complete.is_complete());
        assert!(SweepProgress { total: None, ..complete }.is_complete(), "nothing to compare with");
        for broken in [
            SweepProgress { restarted: true, ..complete },
            SweepProgress { failed: true, ..complete },
            SweepProgress { seen: 129, ..complete },
            SweepProgress { seen: 131, ..complete },
        ] {
            assert!(!broken.is_complete(), "{broken:?}");
        }
    }

    #[test]
    fn a_count_that_does_not_agree_is_asked_for_again() {
        use SweepVerdict::{Counted, Suspicious};
        // The provider counted 130 when the walk began.
        let deleted = progress(129, 130);
        assert!(deleted.needs_recount());
        assert_eq!(verdict(130, 1, deleted), Suspicious);
        let recounted = deleted.after_page(page(0, Some(129)));
        assert_eq!((recounted.needs_recount(), verdict(130, 1, recounted)), (false, Counted));
        let created = progress(131, 130);
        assert!(created.needs_recount());
        assert_eq!(verdict(130, 0, created.after_page(page(0, Some(131)))), Counted);
        // One was deleted, and one created before the place where the walk was.
        let both = progress(129, 130).after_page(page(1, Some(130)));
        assert_eq!(verdict(130, 1, both), Counted);
        let truncated = progress(100, 130).after_page(page(0, Some(130)));
        assert_eq!(verdict(130, 30, truncated), Suspicious);
        assert!(!progress(130, 130).needs_recount());
        assert!(!SweepProgress { total: None, ..deleted }.needs_recount(), "nothing to compare");
        let restarted = SweepProgress { restarted: true, ..deleted };
        assert!(!restarted.needs_recount(), "it does not count anyway");
    }

    #[test]
    fn generated_templates_do_not_decide_what_a_sweep_means() {
        use SweepVerdict::{Counted, Incomplete, Suspicious};
        let walk = |own: u32, generated: u32, total: u32| SweepProgress {
            generated,
            ..progress(own + generated, total)
        };
        for (known, missing, progress, expected) in [
            // All 40 that the provider had generated are removed.
            (20, 0, walk(20, 0, 20), Counted),
            (20, 0, walk(20, 40, 60), Counted),
            // Some were removed behind the walk, or the provider does not count them.
            (20, 0, walk(20, 40, 57), Counted),
            (20, 1, walk(19, 40, 19), Counted),
            (20, 0, walk(20, 40, 19), Incomplete),
            // One was made behind the walk, where the second look at the first page does not show it.
            (20, 1, walk(19, 40, 60), Incomplete),
            (20, 6, walk(14, 40, 60), Suspicious),
            (20, 6, walk(14, 400, 414), Suspicious),
            // Generated templates are no sign of the own ones.
            (3, 3, walk(0, 40, 40), Suspicious),
            (0, 0, walk(0, 40, 40), Counted),
            (0, 0, walk(0, 0, 0), Counted),
        ] {
            let found = verdict(known, missing, progress);
            assert_eq!(found, expected, "{known} {missing} {progress:?}");
        }
    }

    #[test]
    fn missing_templates_count_only_in_a_complete_and_plausible_sweep() {
        use SweepVerdict::{Counted, Incomplete, Suspicious};
        let broken = SweepProgress { failed: true, ..progress(0, 0) };
        let restarted = SweepProgress { restarted: true, ..progress(0, 0) };
        for (known, missing, progress, expected) in [
            (0, 0, progress(0, 0), Counted),
            (10, 0, progress(10, 10), Counted),
            (10, 5, progress(5, 5), Counted),
            (10, 6, progress(4, 4), Suspicious),
            (100, 20, progress(80, 80), Counted),
            (100, 21, progress(79, 79), Suspicious),
            (100, 21, progress(379, 379), Suspicious),
            (3, 3, progress(0, 0), Suspicious),
            // The provider counts more templates than it lists.
            (6_000, 100, progress(5_900, 6_000), Suspicious),
            (12, 2, progress(10, 12), Suspicious),
            // A template was created or deleted during the sweep.
            (10, 0, progress(10, 11), Incomplete),
            (10, 1, progress(9, 9), Counted),
            (10, 0, progress(10, 9), Incomplete),
            // A sweep that broke off says nothing.
            (100, 100, broken, Incomplete),
            (100, 100, restarted, Incomplete),
        ] {
            assert_eq!(
                verdict(known, missing, progress),
                expected,
                "{known} {missing} {progress:?}"
            );
        }
    }
}
