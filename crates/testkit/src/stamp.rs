//! The list of cases, each stamped as a test of its own.

/// Stamps every case of the SQL ports on a [`Harness`](crate::Harness).
///
/// For an integration test of an adapter, with `kefu-testkit` and `tokio` among its dev-dependencies:
///
/// ```ignore
/// kefu_testkit::store_contract!(MyHarness);
/// ```
#[macro_export]
macro_rules! store_contract {
    ($harness:ty) => {
        $crate::stamp! { $harness;
            sessions: [
                opening_again_gives_the_open_session,
                a_hundred_openings_at_once_make_one_session,
                openings_of_many_users_at_once_are_independent,
                an_opening_decided_more_than_once_writes_the_last_verdict_only,
                opening_refreshes_a_waiting_session,
                opening_keeps_an_active_session,
                opening_after_the_end_makes_a_new_session,
                openings_race_with_ends,
                an_update_writes_the_row_and_its_events,
                an_update_without_a_write_changes_nothing,
                concurrent_updates_follow_one_another,
                updates_race_with_appends,
                every_field_survives,
                unknown_ids_are_absent,
                the_latest_ended_session_is_found,
                owned_sessions_are_listed_by_id,
                an_impossible_session_is_not_stored,
                a_restart_keeps_open_sessions,
                tips_of_many_sessions_are_read_at_once,
                open_sessions_come_in_pages,
            ],
            agents: [
                every_field_survives,
                online_agents_are_listed_by_id,
                live_agents_are_listed_by_id,
                eligible_agents_come_in_the_order_of_preference,
                only_eligible_agents_are_candidates,
                candidates_agree_with_the_rule,
                gone_agents_are_listed_by_id,
                all_agents_come_in_pages,
            ],
            assignments: [
                the_snapshot_is_the_scope,
                an_apply_writes_everything,
                an_apply_replaces_rows,
                other_verdicts_write_nothing,
                records_survive_and_are_listed_by_id,
                a_poisoned_change_writes_nothing,
                transactions_over_one_row_follow_one_another,
                an_unknown_agent_is_created_once,
                overlapping_scopes_do_not_deadlock,
                only_the_returned_verdict_is_written,
                a_full_pass_fits_one_transaction,
            ],
            loads: [
                a_hundred_users_spread_over_ten_agents,
                the_line_is_served_by_balance,
                one_claim_of_a_session_wins,
                claims_stop_at_the_cap,
                many_ends_are_one_end,
                transfers_stop_at_the_targets_cap,
                a_repeated_transfer_has_one_effect,
                opposite_transfers_do_not_deadlock,
                an_agent_lost_between_choice_and_write_gets_nothing,
                requeues_race_with_passes,
                any_acts_at_once_keep_the_ledger,
            ],
            line: [
                larger_balances_stand_in_front,
                place_is_the_index_in_front,
                a_limit_cuts_the_list_only,
                only_waiting_sessions_have_a_place,
                a_requeue_restores_the_place,
                a_refresh_moves_the_session,
                the_line_is_read_at_one_instant,
                a_restart_keeps_the_line,
            ],
            messages: [
                an_append_writes_message_tip_and_event,
                any_text_survives,
                senders_of_one_key_are_told_apart,
                a_repeated_key_gets_the_original_answer,
                a_batch_over_many_sessions_is_answered_in_order,
                an_empty_batch_is_no_work,
                a_large_batch_fits_one_transaction,
                the_snapshot_holds_what_it_promises,
                a_retry_after_the_end_gets_the_original_answer,
                an_image_belongs_to_its_session,
                a_poisoned_batch_stores_nothing,
                a_restart_keeps_messages,
            ],
            order: [
                a_hundred_sends_of_one_key_store_one_row,
                a_hundred_sends_to_one_session_are_in_order,
                clock_steps_do_not_disturb_the_order,
                clock_steps_race_with_sends,
                overlapping_batches_do_not_deadlock,
                only_the_returned_verdict_is_stored,
                sends_race_with_the_end,
                sends_race_with_a_transfer,
            ],
            receipts: [
                a_status_only_goes_forward,
                a_failed_message_can_still_be_delivered,
                a_change_says_whom_to_tell,
                only_a_receiver_may_report,
                the_receiver_is_who_owns_the_session_now,
                a_cumulative_report_covers_what_came_before,
                the_snapshot_holds_what_it_promises,
                reports_at_once_end_at_the_highest_status,
                reports_race_with_appends,
                a_large_batch_fits_one_transaction,
            ],
            notes: [
                every_field_survives,
                the_snapshot_holds_what_it_promises,
                one_key_stores_one_note,
                notes_come_in_pages,
                notes_are_no_messages,
            ],
            canned: [
                every_field_survives,
                shelves_are_apart,
                changes_of_a_shelf_follow_one_another,
                an_impossible_reply_is_not_stored,
            ],
            search: [
                each_scope_lists_its_own,
                last_messages_are_the_last,
                sessions_opened_lately_know_their_first_reply,
                what_was_said_is_found,
                nothing_is_forgotten,
                of_two_who_index_the_further_holds,
            ],
            history: [
                windows_are_exact_at_every_edge,
                a_user_is_owed_over_all_sessions,
                an_agent_is_owed_over_owned_sessions,
                undelivered_pages_say_whether_more_follow,
                unread_counts_the_other_side,
                the_highest_id_covers_every_table,
                the_highest_id_remembers_trimmed_events,
            ],
            uploads: [
                every_field_survives,
                recording_again_changes_nothing,
                orphans_are_listed_oldest_first,
                only_old_unused_rows_are_forgotten,
                forgetting_races_with_sending,
            ],
            outbox: [
                every_event_survives,
                unconfirmed_rows_come_in_pages,
                unconfirmed_rows_are_counted,
                confirming_is_idempotent,
                a_large_confirmation_fits_one_call,
                only_confirmed_rows_are_trimmed,
                changes_are_listed_without_messages,
                events_confirmed_while_others_are_written,
            ],
            exclusion: [
                decisions_about_one_session_take_turns,
            ],
            faults: [
                a_lost_append_is_found_by_its_key,
                an_unavailable_store_wrote_nothing,
                repeating_after_a_lost_answer_is_harmless,
                a_held_send_does_not_outlive_the_end,
                dropped_calls_leave_nothing_half_done,
            ],
        }
    };
}

/// Stamps every case of the coordination ports on a [`CoordinationHarness`](crate::CoordinationHarness).
#[macro_export]
macro_rules! coordination_contract {
    ($harness:ty) => {
        $crate::stamp! { $harness;
            presence: [
                leases_are_counted_per_person,
                a_lease_dies_after_its_ttl,
                renewing_extends_one_lease,
                renewing_recreates_an_expired_lease,
                ttls_are_independent,
                releasing_is_idempotent,
                the_limit_is_kept,
                the_limit_holds_at_once,
                leases_on_other_nodes_take_no_room,
                a_person_is_on_the_nodes_of_their_leases,
            ],
            assign_lock: [
                a_held_lock_is_refused,
                a_released_lock_is_free,
                a_lock_dies_after_its_ttl,
                only_the_present_token_releases,
                one_of_many_takes_the_lock,
            ],
        }
    };
}

/// Stamps every case of the wire between nodes on a [`NodeBusHarness`](crate::NodeBusHarness).
#[macro_export]
macro_rules! node_bus_contract {
    ($harness:ty) => {
        $crate::stamp! { $harness;
            node_bus: [
                every_word_survives,
                words_reach_whom_they_are_for,
                one_nodes_words_keep_their_order,
                a_slow_listener_hears_a_gap,
                what_was_not_said_is_heard_as_a_gap,
            ],
        }
    };
}

/// Stamps every case of the copies on a [`LoadBoardHarness`](crate::LoadBoardHarness).
#[macro_export]
macro_rules! load_board_contract {
    ($harness:ty) => {
        $crate::stamp! { $harness;
            load_board: [
                a_session_is_where_its_row_says,
                a_users_later_session_stays,
                the_line_is_in_its_order,
                a_load_only_becomes_newer,
                any_order_ends_at_the_newest,
            ],
        }
    };
}

/// Stamps every case of the leases of tasks on a [`TaskLeasesHarness`](crate::TaskLeasesHarness).
#[macro_export]
macro_rules! task_leases_contract {
    ($harness:ty) => {
        $crate::stamp! { $harness;
            task_leases: [
                a_held_task_is_refused,
                an_expired_task_is_taken_over,
                a_released_task_is_free,
                one_of_many_holds_a_task,
            ],
        }
    };
}

/// One module a suite, one test a case.
#[doc(hidden)]
#[macro_export]
macro_rules! stamp {
    ($harness:ty; $($suite:ident: [$($case:ident),+ $(,)?],)+) => {
        $(
            mod $suite {
                // tidy: whether it is used depends on the caller, so an expectation could not hold.
                #[allow(unused_imports, reason = "the harness may be named by an absolute path")]
                use super::*;

                $(
                    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                    async fn $case() {
                        $crate::suite::$suite::$case::<$harness>().await;
                    }
                )+
            }
        )+
    };
}
