//! What every store promises. Each case runs on a fresh store of each kind; what no case says is
//! not promised.

#![expect(clippy::unwrap_used, reason = "a case that cannot go on has failed")]

mod conformance {
    pub(crate) mod accounts;
    #[cfg(feature = "postgres-suite")]
    mod batches;
    pub(crate) mod changes;
    pub(crate) mod credentials;
    pub(crate) mod deliveries;
    pub(crate) mod families;
    pub(crate) mod feed;
    pub(crate) mod fixture;
    pub(crate) mod formats;
    #[cfg(feature = "postgres-suite")]
    mod frozen;
    pub(crate) mod idempotency;
    pub(crate) mod limits;
    pub(crate) mod lists;
    pub(crate) mod media;
    #[cfg(feature = "postgres-suite")]
    mod one_database;
    pub(crate) mod pages;
    #[cfg(feature = "postgres-suite")]
    mod postgres_only;
    mod sqlite_only;
    pub(crate) mod templates;
    pub(crate) mod uploads;
    pub(crate) mod webhooks;
}

/// Turns each case into a test that gets a fresh store from `$fresh`.
macro_rules! suite {
    ($fresh:path: $($area:ident { $($case:ident),+ $(,)? })+) => {$($(
        #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
        async fn $case() {
            let (store, _guard) = $fresh().await;
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
            families {
                the_languages_of_a_name_are_found_together_oldest_first,
                a_language_of_a_name_is_taken_once_in_each_account,
                a_creation_in_another_category_than_its_family_is_refused,
                of_concurrent_creations_one_category_wins_the_family,
                the_category_of_one_language_changes_only_while_it_is_alone,
                a_category_change_against_a_new_language_leaves_one_category,
                the_category_of_a_language_stays_while_a_version_is_live,
                templates_of_an_account_that_say_the_same_find_one_another,
                a_family_is_deleted_whole_with_an_event_for_each,
                several_languages_are_made_or_edited_all_or_none,
                of_concurrent_upserts_of_a_new_name_all_succeed,
                several_templates_are_deleted_all_or_none,
                a_disabled_language_goes_with_its_family_as_it_would_alone,
            }
            limits {
                an_account_is_held_to_limits_by_choice,
                an_account_makes_a_hundred_templates_an_hour,
                of_concurrent_creations_no_more_than_the_limit_succeed,
                an_account_has_as_many_templates_as_its_limit_says,
                what_a_key_made_is_answered_again_whatever_the_limits,
                an_approved_template_is_edited_once_a_day_and_ten_times_a_month,
                only_edits_of_approved_templates_of_limited_accounts_count,
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
            pages {
                a_list_reads_the_same_both_ways,
                a_cursor_of_a_template_that_is_gone_still_divides_the_list,
                several_values_of_a_filter_take_what_agrees_with_one,
                the_languages_of_a_name_are_listed_in_their_account_only,
                a_list_is_counted_whole_wherever_its_page_begins,
                what_nobody_can_have_is_not_found_and_breaks_nothing,
            }
            feed {
                a_reader_gets_every_event_once_in_order_while_many_write,
                who_waits_for_an_account_is_told_of_its_events_only,
                events_of_before_their_time_are_forgotten_and_late_readers_told,
                a_reader_that_knows_more_than_the_store_is_told,
            }
            webhooks {
                an_endpoint_is_kept_as_it_was_registered_and_seen_by_its_account_only,
                an_account_has_twenty_endpoints_at_most,
                what_is_changed_of_an_endpoint_is_changed_and_nothing_else,
                a_former_secret_counts_until_its_time_and_a_second_rotation_waits,
                an_endpoint_that_was_switched_off_goes_on_where_it_was,
                a_deleted_endpoint_gets_nothing_and_its_deliveries_are_forgotten,
                what_is_forgotten_while_an_endpoint_is_off_blocks_nothing_afterwards,
            }
            formats {
                what_a_format_does_not_send_never_becomes_a_delivery,
                an_edit_is_taken_with_the_version_it_made_whatever_becomes_of_it,
                an_account_has_one_subscribed_endpoint,
            }
            deliveries {
                every_event_after_the_registration_is_delivered_in_order,
                only_the_types_that_are_wanted_are_delivered,
                a_failing_event_holds_back_only_later_ones_of_its_template,
                an_event_that_fails_for_the_last_time_lets_the_next_one_go,
                what_was_taken_is_nobody_elses_until_its_lease_ends,
                of_many_workers_each_event_is_taken_by_one,
                an_endpoint_that_asks_for_rest_gets_it,
                what_an_endpoint_asked_for_outlasts_what_else_was_on_its_way,
                a_failure_after_a_long_silence_is_the_first_of_a_new_row,
                what_the_old_address_answers_is_nothing_to_the_new_one,
                an_endpoint_that_is_down_is_tried_with_one_event_at_a_time,
                an_endpoint_that_is_gone_is_disabled_and_an_event_says_so,
                an_endpoint_that_fails_for_five_days_is_disabled,
                one_event_or_all_since_a_time_are_delivered_once_more,
                events_since_a_time_are_found_though_clocks_differ,
                deliveries_are_listed_newest_first_by_status_and_page,
                endpoints_with_something_to_do_are_found_and_others_are_not,
                events_that_an_endpoint_waits_for_are_not_forgotten,
            }
            uploads {
                a_file_sent_in_pieces_is_read_back_whole_by_its_handle,
                bytes_that_do_not_begin_where_the_upload_ends_are_refused,
                an_upload_is_its_accounts_only,
                a_file_announces_a_length_that_can_be_kept,
                an_account_has_so_many_unfinished_uploads_at_most,
                an_account_keeps_as_many_bytes_as_it_has_room_for,
                what_is_sent_has_to_fit_when_it_comes,
                an_upload_that_is_not_finished_in_a_day_is_forgotten,
                of_concurrent_senders_of_the_same_bytes_one_succeeds,
            }
            media {
                a_file_that_no_template_names_in_a_week_is_forgotten,
                a_template_can_name_its_own_accounts_files_only,
                files_of_a_disabled_account_are_not_shown,
                an_upload_that_no_template_names_can_be_cancelled,
                a_file_of_another_type_than_announced_is_forgotten,
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
    fn fresh() -> impl Future<Output = (crate::conformance::fixture::Shared, tempfile::TempDir)> {
        std::future::ready(crate::conformance::fixture::fresh_sqlite())
    }

    conformance!(fresh);
}

/// On the server that `GALLEY_TEST_POSTGRES` names, each case in a database of its own.
#[cfg(feature = "postgres-suite")]
mod postgres {
    conformance!(crate::conformance::fixture::fresh_postgres);
}
