//! All suites by name, so that a backend runs them with one line and each failure has a name.

/// Passes the names of all suites, by module, to another macro: `every_suite!([callback]
/// arguments)` becomes `callback! { (arguments) log: a, b; shared: c, d; }`.
#[macro_export]
macro_rules! every_suite {
    ([$($callback:tt)+] $($argument:tt)*) => {
        $($callback)+! { ($($argument)*)
            log:
                appends_are_numbered_one_by_one,
                an_append_stands_only_on_the_one_it_follows,
                an_append_takes_out_of_the_outbox_only_what_is_there,
                an_append_is_durable_when_answered,
                an_append_is_all_or_nothing,
                half_a_refused_batch_is_not_kept,
                what_was_appended_comes_back_exactly,
                one_owner_at_a_time,
                renewing_keeps_the_partition,
                owners_are_listed_while_they_own,
                epochs_grow_over_restarts,
                an_old_epoch_changes_nothing,
                partitions_are_apart,
                bodies_come_back_byte_for_byte,
                reopened_operations_have_no_result,
                the_last_result_stands,
                pages_cover_everything_once,
                a_list_filters,
                a_list_survives_odd_cursors,
                a_snapshot_replaces_what_came_before,
                a_snapshot_is_all_or_nothing,
                numbers_go_on_after_a_snapshot,
                a_sweep_takes_only_what_ended_before,
                a_sweep_is_bounded,
                attempts_are_kept_with_their_append,
                the_last_row_of_an_attempt_stands,
                a_refused_append_keeps_no_attempts,
                attempts_go_with_their_operation,
                costs_are_kept_with_their_append,
                costs_are_all_or_nothing,
                a_refused_append_keeps_no_costs,
                costs_go_when_their_time_is_up,
                limits_are_kept_as_they_stand,
                limits_that_are_gone_are_removed;
            shared:
                records_answer_as_the_pure_functions,
                sweeping_records_is_bounded,
                leases_answer_as_the_pure_functions,
                leases_are_listed_page_by_page,
                buckets_answer_as_the_pure_functions,
                buckets_bear_the_largest_figures,
                buckets_are_listed_page_by_page,
                windows_answer_as_the_pure_functions,
                one_caller_claims_a_record,
                one_caller_opens_a_window,
                one_holder_of_a_lease,
                a_bucket_never_grants_too_much,
                two_buckets_are_taken_together;
            journal:
                the_journal_answers_as_its_book,
                what_was_journaled_is_durable,
                journal_lines_are_all_or_nothing,
                journal_events_come_with_their_lines,
                journal_events_are_bounded,
                an_old_fence_changes_no_line_of_the_journal,
                the_newer_fence_wins_the_journal,
                many_write_the_journal_at_once,
                ten_thousand_journal_lines_are_written_at_once,
                odd_words_in_the_journal_are_kept_or_refused;
            audit:
                the_audit_log_lists_newest_first,
                an_audit_entry_is_durable,
                the_audit_log_is_bounded,
                odd_audit_entries_are_kept_or_refused;
            nodes:
                nodes_are_there_until_their_time_is_up,
                an_unknown_node_must_register,
                a_hint_reaches_its_listeners,
                a_slow_listener_blocks_nobody;
            replay:
                a_replayed_model_is_the_same_model;
            upkeep:
                a_store_says_what_it_holds,
                the_number_of_partitions_never_changes,
                one_secret_is_kept;
        }
    };
}

/// Creates a test for every suite. The argument is an expression that creates a fresh
/// [`crate::Backend`]; it may await.
///
/// ```ignore
/// tidegate_contract::store_suites!(MemoryBackend::new());
/// ```
#[macro_export]
macro_rules! store_suites {
    ($backend:expr) => {
        $crate::every_suite!([$crate::suite_tests] $backend);
    };
}

/// The tests of [`store_suites!`].
#[doc(hidden)]
#[macro_export]
macro_rules! suite_tests {
    (($backend:expr) $($part:ident: $($suite:ident),+;)+) => {
        $($crate::suite_tests! { @part $backend, $part: $($suite),+ })+
    };
    (@part $backend:expr, $part:ident: $($suite:ident),+) => {
        $(
            #[test]
            fn $suite() {
                $crate::harness::runtime().block_on(async {
                    let backend = $backend;
                    $crate::$part::$suite(&backend).await;
                });
            }
        )+
    };
}
