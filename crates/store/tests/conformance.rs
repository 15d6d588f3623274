//! What every store promises. Each case runs on a fresh store of each kind; what no case says is
//! not promised.

#![expect(clippy::unwrap_used, reason = "a case that cannot go on has failed")]

mod conformance {
    pub(crate) mod accounts;
    pub(crate) mod changes;
    pub(crate) mod credentials;
    pub(crate) mod fixture;
    pub(crate) mod idempotency;
    pub(crate) mod lists;
    mod sqlite_only;
    pub(crate) mod templates;
}

/// Turns each case into a test that gets a fresh store from `$fresh`.
macro_rules! suite {
    ($fresh:path: $($area:ident { $($case:ident),+ $(,)? })+) => {$($(
        #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
        async fn $case() {
            let (store, _guard) = $fresh();
            crate::conformance::$area::$case(&store).await;
        }
    )+)+};
}

macro_rules! conformance {
    ($fresh:path) => {
        suite!($fresh:
            templates {
                a_kept_template_reads_back_equal,
                a_template_is_seen_by_its_account_only,
                a_taken_name_is_refused_and_told_only_to_its_owner,
                a_refused_creation_leaves_nothing_behind,
                ids_grow_whatever_the_clock_does,
                events_are_numbered_without_gaps_in_each_account,
                of_many_concurrent_creations_of_one_name_one_succeeds,
                a_template_under_manual_review_has_no_live_version,
                names_that_differ_in_any_byte_are_different,
            }
            idempotency {
                a_repeated_creation_gets_the_first_answer_and_makes_nothing,
                a_key_with_another_payload_is_refused,
                concurrent_twins_make_one_template,
                a_refused_creation_keeps_no_record,
                a_record_runs_out_after_a_day_and_is_swept,
                keys_of_two_accounts_are_strangers,
            }
            changes {
                an_edit_makes_a_new_version_and_keeps_the_old_one,
                a_category_change_is_told_beside_the_edit_and_the_former_one_kept,
                a_locked_category_is_refused_and_nothing_changes,
                an_older_version_comes_back_as_the_newest,
                a_change_of_an_outdated_revision_is_refused,
                a_review_moves_along_the_table_and_tells_why,
                a_move_that_the_table_does_not_have_changes_nothing,
                a_hold_outlasts_edits_and_ends_with_its_move,
                a_deleted_template_is_gone_its_name_free_and_its_events_kept,
                no_account_changes_or_sees_what_is_anothers,
                versions_are_paged_newest_first,
                of_many_edits_of_one_revision_one_wins,
                a_review_against_an_edit_ends_as_one_of_both_orders,
                a_deletion_against_an_edit_ends_as_one_of_both_orders,
                a_creation_against_a_deletion_of_its_name_ends_as_one_of_both_orders,
            }
            lists {
                a_list_shows_each_template_of_the_account_once_newest_first,
                every_filter_takes_what_agrees_alone_and_together,
                a_name_is_found_by_its_claim_in_its_account_only,
                a_list_follows_every_change_at_once,
                pages_stay_right_while_templates_come_and_go,
                words_are_found_by_their_beginning_in_name_and_texts,
                a_search_takes_filters_and_pages,
                a_search_follows_edits_moves_and_deletions,
            }
            accounts {
                an_account_is_made_whole_or_not_at_all,
                the_first_account_is_made_once,
                a_phone_number_has_one_owner,
                a_disabled_account_says_since_when,
            }
            credentials {
                a_credential_is_found_by_its_secret_and_kind,
                rotation_adds_one_and_ends_the_old_one,
                revocation_happens_once,
                whatever_ends_something_raises_the_epoch,
                additions_leave_the_epoch_alone,
            }
        );
    };
}

mod sqlite {
    conformance!(crate::conformance::fixture::fresh_sqlite);
}
