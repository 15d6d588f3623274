//! What every store promises. Each case runs on a fresh store of each kind; what no case says is
//! not promised.

#![expect(clippy::unwrap_used, reason = "a case that cannot go on has failed")]

mod conformance {
    pub(crate) mod accounts;
    pub(crate) mod credentials;
    pub(crate) mod fixture;
    pub(crate) mod idempotency;
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
