//! The conformance suite of the store. Each case runs on a fresh store of each backend.

#![expect(clippy::unwrap_used, reason = "a case that cannot continue has failed")]

#[macro_use]
mod conformance {
    #[macro_use]
    mod suite;
    pub(crate) mod accounts;
    pub(crate) mod audit;
    #[cfg(feature = "postgres-suite")]
    mod batches;
    mod buffered_indexes;
    pub(crate) mod changes;
    pub(crate) mod clock;
    pub(crate) mod credentials;
    mod damage;
    pub(crate) mod deliveries;
    pub(crate) mod emulator;
    pub(crate) mod emulator_changes;
    pub(crate) mod emulator_faults;
    pub(crate) mod emulator_messages;
    pub(crate) mod emulator_scripts;
    pub(crate) mod emulator_statuses;
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
    pub(crate) mod page_size;
    pub(crate) mod pages;
    #[cfg(feature = "postgres-suite")]
    mod postgres_load;
    #[cfg(feature = "postgres-suite")]
    mod postgres_only;
    pub(crate) mod quotas;
    pub(crate) mod replays;
    #[cfg(feature = "postgres-suite")]
    mod round_trips;
    pub(crate) mod search;
    pub(crate) mod sessions;
    mod sqlite_only;
    mod sqlite_search;
    pub(crate) mod statistics;
    mod store_files;
    pub(crate) mod templates;
    pub(crate) mod translations;
    pub(crate) mod uploads;
    pub(crate) mod upstream;
    pub(crate) mod upstream_accept;
    pub(crate) mod upstream_archive;
    pub(crate) mod upstream_calls;
    pub(crate) mod upstream_drift;
    pub(crate) mod upstream_generated;
    pub(crate) mod upstream_mirror;
    pub(crate) mod upstream_operations;
    pub(crate) mod upstream_reads;
    pub(crate) mod upstream_samples;
    pub(crate) mod upstream_submission;
    pub(crate) mod upstream_sweeps;
    pub(crate) mod webhooks;
}

macro_rules! conformance {
    ($fresh:path) => {
        suite!($fresh:
            templates {
                a_created_template_reads_back_equal,
                a_template_is_visible_only_to_its_account,
                a_name_conflict_reports_the_template_only_to_its_owner,
                a_refused_creation_writes_nothing,
                ids_increase_even_if_the_clock_goes_back,
                events_are_numbered_without_gaps_in_each_account,
                one_of_many_concurrent_creations_of_a_name_succeeds,
                a_template_under_manual_review_has_no_live_version,
                names_that_differ_in_one_byte_do_not_conflict,
            }
            idempotency {
                a_repeated_creation_returns_the_first_outcome_and_creates_nothing,
                a_key_with_a_different_payload_is_refused,
                concurrent_identical_requests_create_one_template,
                a_refused_creation_stores_no_record,
                a_record_expires_after_a_day_and_is_deleted,
                equal_keys_of_two_accounts_do_not_collide,
            }
            changes {
                an_edit_creates_a_new_version_and_keeps_the_old_one,
                a_category_change_has_its_own_event_and_stores_the_previous_category,
                changing_a_locked_category_is_refused_and_changes_nothing,
                restoring_a_version_creates_a_new_version,
                a_change_that_expects_another_revision_is_refused,
                a_review_applies_the_transition_and_stores_its_reason,
                an_invalid_transition_changes_nothing,
                a_hold_outlasts_edits_and_ends_when_it_is_lifted,
                deleting_a_template_frees_its_name_and_keeps_its_events,
                an_account_cannot_read_or_change_templates_of_another,
                versions_are_paged_newest_first,
                one_of_many_concurrent_edits_of_a_revision_succeeds,
                a_concurrent_review_and_edit_are_serialised,
                a_decision_never_approves_a_concurrent_edit,
                a_concurrent_deletion_and_edit_are_serialised,
                a_concurrent_creation_and_deletion_of_a_name_are_serialised,
            }
            translations {
                translations_are_listed_oldest_first,
                an_account_has_each_language_of_a_name_once,
                creating_a_translation_in_another_category_is_refused,
                concurrent_creations_leave_a_group_with_one_category,
                the_category_changes_only_if_the_group_has_one_template,
                a_concurrent_category_change_and_creation_leave_one_category,
                the_category_cannot_change_while_a_version_is_live,
                templates_with_the_same_text_are_found_within_an_account,
                deleting_translations_deletes_all_with_an_event_each,
                an_upsert_applies_to_all_templates_or_none,
                concurrent_upserts_of_a_new_name_all_succeed,
                a_bulk_deletion_deletes_all_templates_or_none,
                deleting_translations_includes_disabled_ones,
            }
            quotas {
                account_quotas_can_be_set_and_removed,
                a_version_beyond_the_stored_bytes_is_refused_and_writes_nothing,
                concurrent_creations_do_not_exceed_the_stored_bytes,
                stored_bytes_agree_with_the_rows_after_random_writes,
                an_edit_deletes_versions_beyond_the_newest_hundred,
                an_edit_at_the_quota_succeeds_if_it_deletes_an_older_version,
                a_deleted_template_frees_its_bytes_when_its_events_expire,
                a_large_deleted_template_is_purged_in_parts,
                an_account_claims_phone_numbers_up_to_its_maximum,
                concurrent_claims_do_not_exceed_the_maximum,
                a_removed_phone_number_is_free_and_its_templates_stay,
            }
            limits {
                account_limits_can_be_set_and_removed,
                an_account_can_begin_with_limits,
                an_account_creates_at_most_a_hundred_templates_an_hour,
                concurrent_creations_do_not_exceed_the_limit,
                an_account_has_at_most_as_many_templates_as_its_limit,
                an_idempotent_replay_succeeds_at_the_limit,
                an_approved_template_is_edited_at_most_once_a_day_and_ten_times_a_month,
                only_edits_of_approved_templates_of_limited_accounts_count,
            }
            lists {
                a_list_contains_each_template_once_newest_first,
                filters_work_alone_and_combined,
                a_unique_key_matches_only_in_its_account,
                a_list_reflects_every_change_immediately,
                pages_stay_consistent_during_creations_and_deletions,
                search_terms_match_word_prefixes_in_name_and_texts,
                a_search_supports_filters_and_pages,
                a_search_reflects_edits_transitions_and_deletions,
                a_list_is_filtered_by_phone_number_and_last_change,
            }
            search {
                a_search_reports_what_is_not_indexed_and_finds_it_after_a_step,
                only_a_search_that_uses_the_index_reports_what_is_not_indexed,
                an_account_is_indexed_ahead_of_the_backlog_of_others,
                a_search_does_not_wait_for_later_writes,
                a_search_ignores_accents,
            }
            pages {
                a_list_reads_the_same_forwards_and_backwards,
                a_cursor_stays_valid_after_its_template_is_deleted,
                a_list_of_templates_that_await_review_includes_paused_ones,
                the_languages_of_several_names_say_which_match_a_list,
                a_filter_with_several_values_matches_any_of_them,
                a_translation_group_is_listed_only_in_its_account,
                a_count_does_not_depend_on_the_cursor,
                impossible_values_match_nothing_and_cause_no_error,
            }
            page_size {
                a_page_of_large_templates_ends_before_its_content_exceeds_a_mebibyte,
                templates_that_do_not_match_take_no_space_on_a_page,
            }
            feed {
                a_reader_gets_every_event_once_in_order_during_concurrent_writes,
                a_subscriber_is_notified_only_of_its_accounts_events,
                events_keep_the_trace_of_their_request,
                expired_events_are_deleted_and_reported_to_late_readers,
                a_cursor_ahead_of_the_newest_event_is_reported,
            }
            webhooks {
                an_endpoint_reads_back_as_registered_only_in_its_account,
                an_account_has_at_most_twenty_endpoints,
                a_change_to_an_endpoint_leaves_other_properties_alone,
                a_second_rotation_is_refused_while_the_first_is_in_progress,
                an_enabled_endpoint_resumes_at_its_cursor,
                deleting_an_endpoint_deletes_its_deliveries,
                events_expired_while_an_endpoint_is_disabled_do_not_block_later_ones,
            }
            formats {
                events_that_a_format_excludes_are_not_delivered,
                a_leased_edit_includes_the_version_it_created,
                an_account_has_one_subscribed_endpoint,
            }
            replays {
                a_replay_delivers_one_event_or_all_since_a_time,
                a_replay_since_a_time_tolerates_clock_skew,
            }
            deliveries {
                events_after_the_registration_are_delivered_in_order,
                only_subscribed_event_types_are_delivered,
                a_failing_event_delays_only_later_events_of_its_template,
                the_next_event_is_delivered_after_the_last_attempt_fails,
                a_leased_delivery_is_exclusive_until_its_lease_ends,
                concurrent_workers_lease_each_event_once,
                retry_after_pauses_an_endpoint,
                a_requested_pause_outlasts_attempts_already_in_flight,
                a_failure_after_a_long_pause_starts_a_new_streak,
                a_result_from_a_previous_url_does_not_affect_the_endpoint,
                an_endpoint_that_is_down_is_probed_with_one_event_at_a_time,
                an_endpoint_that_is_gone_is_disabled_with_an_event,
                an_endpoint_that_fails_for_five_days_is_disabled,
                deliveries_are_listed_newest_first_by_status_and_page,
                due_webhooks_lists_only_endpoints_with_work,
                events_that_an_endpoint_still_needs_do_not_expire,
            }
            emulator {
                an_emulator_account_keeps_its_kind_and_its_review,
                a_clock_runs_stands_and_never_moves_back,
                an_account_that_is_not_an_emulator_has_nothing_of_it,
                the_secret_and_the_override_of_an_app_change_independently,
                deleting_an_emulator_account_deletes_what_only_it_has,
                an_upload_keeps_its_time_on_the_clock_of_the_account,
                a_leased_delivery_says_whether_its_account_is_an_emulator,
                a_file_of_a_faithful_account_names_the_account,
            }
            emulator_scripts {
                a_template_is_approved_at_once_and_its_creation_returns_that,
                the_rules_of_an_account_decide_before_the_suffix,
                a_step_is_applied_when_the_clock_reaches_its_time,
                steps_are_applied_in_the_order_of_their_times_some_at_a_time,
                a_category_is_announced_and_changes_a_day_later,
                a_quality_is_stored_and_outlasts_an_edit,
                an_upsert_runs_the_script_of_each_template,
            }
            emulator_changes {
                due_steps_of_a_template_come_before_a_change_of_it,
                an_edit_replaces_the_script,
                a_pause_ends_in_spite_of_an_edit,
                a_deleted_template_has_no_steps,
                quotas_count_on_the_clock_of_the_account,
                a_faithful_account_edits_in_place_and_no_pending_template,
                a_faithful_account_locks_the_name_of_an_approved_template,
            }
            emulator_faults {
                faults_strike_in_the_order_of_their_creation_until_they_are_spent,
                concurrent_calls_are_struck_as_often_as_a_fault_says,
                an_account_has_a_maximum_number_of_faults_and_deletes_them,
                a_new_fault_replaces_the_oldest_spent_one_if_there_is_no_room,
            }
            emulator_messages {
                a_message_reads_back_with_its_status_on_the_clock,
                a_message_shows_its_template_also_after_the_deletion,
                messages_are_paged_newest_first,
                concurrent_messages_are_numbered_in_the_order_of_their_times,
                an_account_keeps_its_newest_messages,
                messages_expire_after_a_day_of_real_time,
                callback_data_may_contain_any_character,
            }
            emulator_statuses {
                statuses_are_sent_in_the_order_of_their_times,
                an_endpoint_from_the_start_gets_what_happened_before_it,
                a_clock_that_stands_holds_statuses_back,
                a_lease_on_statuses_is_exclusive_until_it_ends,
                one_of_many_concurrent_workers_gets_the_statuses,
                an_endpoint_starts_with_messages_that_are_not_older,
                only_endpoints_in_metas_format_of_emulators_get_statuses,
                the_statuses_of_a_deleted_endpoint_are_not_recorded,
                statuses_of_deleted_messages_are_passed_over,
                an_endpoint_that_is_enabled_gets_no_statuses_of_earlier_messages,
            }
            upstream {
                only_accounts_of_whatsapp_that_are_no_emulators_connect,
                a_connection_is_found_by_its_account_and_its_hook,
                connections_are_found_by_their_accounts_at_the_provider,
                a_disconnected_account_keeps_its_templates_and_loses_its_mirror,
                deleting_an_account_deletes_its_connection,
                a_lease_is_exclusive_until_it_ends,
                a_worker_without_its_lease_writes_nothing,
                one_of_many_concurrent_workers_gets_the_lease,
                a_write_under_an_old_lease_is_not_committed_after_the_next_lease,
                calls_that_fail_raise_one_event_until_they_succeed,
                the_expiry_of_a_token_is_recorded_under_the_lease,
                a_person_pauses_and_resumes_a_connection,
                a_connection_has_work_when_something_is_due,
                hints_are_kept_and_mark_templates_to_read,
            }
            upstream_accept {
                an_accepted_content_is_a_version_with_the_status_of_the_provider,
                a_content_that_was_not_accepted_stays_at_the_provider,
                another_category_holds_a_template_that_does_not_allow_it,
                a_content_is_accepted_only_with_the_status_that_belongs_to_it,
                an_accepted_category_ends_the_hold,
                another_content_decides_nothing_about_a_reviewed_version,
                templates_are_listed_by_their_state_at_the_provider,
                only_versions_that_wait_for_the_reviewers_await_review,
                settled_operations_are_deleted_except_the_newest_of_a_template,
                a_template_that_changed_within_the_second_of_its_read_is_read_again,
            }
            upstream_archive {
                the_archive_follows_the_provider_after_a_call_and_a_read,
                versions_and_the_archive_do_not_supersede_each_other,
                a_template_that_the_provider_does_not_have_is_not_archived,
                a_change_of_the_archive_does_not_hide_what_became_of_a_version,
                a_refused_change_of_the_archive_is_told_and_retried,
                a_version_that_is_held_does_not_keep_the_archive_waiting,
            }
            upstream_calls {
                calls_are_counted_until_the_budget_is_used_up,
                concurrent_calls_do_not_exceed_the_budget,
                calls_rest_as_long_as_the_provider_asks_for,
                a_worker_without_its_lease_does_not_let_calls_rest,
                a_connection_rests_for_each_reason_that_prevents_a_call,
                a_new_token_ends_that_calls_fail,
            }
            upstream_drift {
                an_edit_of_drifted_content_ends_in_a_conflict_without_a_call,
                a_push_names_the_content_that_it_replaces,
                an_import_ends_the_approvals_that_its_preview_lists,
                a_preview_lists_what_the_next_read_finds_gone,
            }
            upstream_generated {
                generated_templates_come_and_go_and_nothing_follows,
                templates_are_listed_by_their_source,
                webhooks_about_generated_templates_cause_no_calls,
                a_generated_template_that_was_imported_has_the_status_of_the_provider,
                a_suspicious_sweep_names_what_it_missed,
            }
            upstream_mirror {
                an_unknown_template_is_imported_as_it_was_received,
                a_header_without_a_document_asks_for_a_read,
                a_header_that_has_changed_changes_the_template_after_a_read,
                an_observation_that_changes_nothing_appends_nothing,
                a_status_at_the_provider_becomes_that_of_the_template,
                another_content_at_the_provider_is_drift_until_it_is_equal,
                a_version_that_waits_for_its_review_is_not_drift,
                category_and_quality_follow_the_provider,
                a_read_settles_only_the_reasons_that_were_known_before,
                a_template_that_was_created_again_replaces_the_old_one,
                a_former_template_that_is_gone_does_not_end_the_present_one,
                texts_that_no_rulebook_knows_are_stored_by_both_databases,
            }
            upstream_operations {
                a_queued_operation_supersedes_those_that_are_not_being_made,
                a_created_template_is_linked_told_and_read,
                a_call_with_an_unknown_outcome_is_probed_before_it_is_repeated,
                a_call_that_never_tells_its_outcome_waits_for_an_hour,
                a_new_lease_makes_interrupted_calls_unknown,
                a_refusal_is_told_with_its_reason_and_a_person_retries_it,
                operations_that_wait_for_credentials_continue_after_their_release,
                a_template_that_is_being_deleted_is_not_imported_again,
                a_template_that_the_account_deleted_is_not_counted_as_gone,
                operations_of_an_account_that_is_not_connected_are_not_queued,
                a_delete_that_a_probe_confirms_ends_the_mirror_of_the_template,
            }
            upstream_reads {
                a_change_has_the_time_of_its_record_and_the_row_that_of_the_read,
                a_read_in_the_second_of_a_change_is_made_again_however_late_it_is_recorded,
                a_read_that_fails_is_postponed_and_hides_no_other,
                a_read_that_has_to_confirm_an_absence_is_postponed,
                a_lease_that_is_extended_tells_whether_work_goes_on,
            }
            upstream_samples {
                an_import_refers_to_the_file_that_keeps_its_sample,
                an_import_without_a_complete_file_has_the_link,
                an_accepted_content_refers_to_the_file_that_keeps_its_sample,
            }
            upstream_submission {
                a_connected_account_has_the_review_of_its_provider,
                each_version_is_submitted_at_once_with_the_review_of_the_provider,
                an_edit_waits_for_a_create_whose_outcome_is_unknown,
                a_refused_change_and_a_replay_queue_nothing,
                upserts_submit_what_they_create_and_edit,
                a_reviewer_of_a_connected_account_submits_a_version_once,
                clients_do_not_hold_templates_of_a_connected_account,
                a_delete_is_queued_only_if_the_provider_may_have_the_template,
                a_template_whose_create_was_lost_is_found_and_deleted,
                a_name_is_created_again_after_its_delete,
                several_deletes_are_queued_with_the_deletion,
                a_person_submits_pushes_and_retries,
                the_newest_operation_of_each_template_is_found,
                an_unneeded_operation_ends_without_a_call,
                abandoned_operations_are_not_made,
                a_new_token_continues_what_waits_for_it,
                nothing_is_queued_after_the_account_was_disconnected,
            }
            upstream_sweeps {
                a_sweep_resumes_where_its_last_page_ended,
                a_template_is_gone_after_two_sweeps_and_a_read,
                a_template_that_is_read_again_is_not_gone,
                an_incomplete_sweep_marks_nothing_as_missing,
                an_empty_list_makes_the_connection_suspicious,
                templates_that_a_person_accepts_as_missing_are_gone_after_a_read,
                a_person_begins_a_first_sweep_that_may_end_approvals,
                approvals_from_before_the_connection_end_with_a_counted_sweep,
                templates_that_are_read_during_a_sweep_are_not_missing,
                a_page_that_is_recorded_again_counts_its_templates_once,
            }
            uploads {
                a_file_uploaded_in_parts_reads_back_by_its_handle,
                bytes_at_a_wrong_offset_are_refused,
                an_upload_is_visible_only_to_its_account,
                an_upload_has_a_minimum_and_a_maximum_length,
                an_account_has_a_maximum_number_of_unfinished_uploads,
                beginning_an_upload_respects_the_quota,
                appending_to_an_upload_respects_the_quota,
                an_unfinished_upload_expires_after_a_day,
                one_of_many_concurrent_appends_of_the_same_bytes_succeeds,
            }
            media {
                an_unreferenced_file_expires_after_a_week,
                a_template_can_reference_only_files_of_its_account,
                files_of_a_disabled_account_are_not_served,
                an_unreferenced_upload_can_be_cancelled,
                a_file_that_is_not_of_the_declared_type_is_deleted,
            }
            statistics {
                pending_reviews_are_counted_with_the_time_of_the_oldest,
                the_oldest_review_is_found_behind_many_of_another_language,
                endpoints_are_counted_by_state_with_what_they_have_not_received,
                events_that_are_not_indexed_are_counted_until_they_are,
                connections_are_counted_by_state_with_their_oldest_work,
                a_store_reports_its_size,
                batches_commits_and_pools_are_counted,
            }
            clock {
                a_jump_ahead_is_trusted_after_a_day_of_observations,
                checking_the_clock_records_nothing,
                an_accepted_time_is_trusted,
                a_corrected_clock_is_trusted_and_the_jump_forgotten,
                concurrent_observations_of_a_new_store_are_all_trusted,
                an_instance_with_a_wrong_clock_is_not_trusted_beside_one_that_is_right,
            }
            accounts {
                an_account_is_created_completely_or_not_at_all,
                a_phone_number_that_is_listed_twice_is_added_once,
                the_first_account_is_created_once,
                the_first_account_can_have_a_chosen_id,
                a_phone_number_has_one_owner,
                a_disabled_account_has_the_time_it_was_disabled,
                a_renamed_account_frees_its_name,
                an_account_changes_how_its_templates_are_reviewed,
                a_deleted_account_frees_its_name_phone_numbers_and_template_names,
            }
            sessions {
                a_session_reads_back_until_it_ends,
                a_session_expires_when_it_is_idle_and_at_its_end,
                a_token_has_a_maximum_number_of_sessions,
                expired_sessions_and_links_are_deleted,
                a_link_starts_one_session_with_its_scopes,
                one_of_many_concurrent_uses_of_a_link_succeeds,
                an_expired_link_or_one_of_a_disabled_account_starts_none,
                a_version_is_not_decided_on_by_its_author_under_four_eyes,
                under_four_eyes_tokens_issue_no_tokens,
                unchanged_text_keeps_its_authors_under_four_eyes,
                text_of_an_unknown_author_needs_an_operator, a_rotated_token_is_the_same_person,
            }
            audit {
                every_change_of_accounts_credentials_and_endpoints_is_recorded,
                an_entry_names_its_actor_and_contains_no_secret,
                an_account_reads_only_its_own_entries_page_by_page,
                a_reader_misses_no_entry_of_concurrent_changes,
                a_refused_change_is_not_recorded,
                a_change_without_effect_is_not_recorded,
                tokens_change_an_account_a_limited_number_of_times_a_day,
            }
            credentials {
                a_credential_is_found_by_its_secret_and_kind,
                rotating_a_credential_adds_one_and_expires_the_old_one,
                a_rotated_credential_keeps_its_remaining_lifetime,
                an_expired_or_revoked_credential_cannot_be_rotated,
                a_credential_is_revoked_once,
                a_token_that_is_no_longer_valid_issues_none,
                invalidating_changes_increase_the_credential_epoch,
                additions_do_not_change_the_credential_epoch,
                a_credential_keeps_its_name_when_it_is_rotated,
                the_latest_use_of_a_credential_is_recorded,
                an_account_issues_tokens_up_to_the_maximum,
                events_and_versions_show_the_present_name_of_a_token,
            }
        );
    };
}

mod sqlite {
    conformance!(crate::conformance::fixture::ready_sqlite);
}

/// Runs on the server given by `GALLEY_TEST_POSTGRES`, each case in its own database.
#[cfg(feature = "postgres-suite")]
mod postgres {
    conformance!(crate::conformance::fixture::fresh_postgres);
}
