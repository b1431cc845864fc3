//! The contracts by way of a pooler that gives every transaction another connection and keeps no
//! prepared statements: of every port the cases that race, write many rows or restart.

#![expect(clippy::expect_used, reason = "a panic is how a test fails")]

mod support;

use std::sync::OnceLock;

use async_trait::async_trait;
use kefu_desk::Stores;
use kefu_postgres::{PgOptions, PgStore};
use kefu_testkit::Harness;
use kefu_testkit::server::pgbouncer::PgBouncer;
use kefu_testkit::server::postgres::{self, TestDatabase};

struct Pooled {
    database: TestDatabase<'static>,
    store: PgStore,
}

fn pooler() -> &'static PgBouncer {
    static SHARED: OnceLock<PgBouncer> = OnceLock::new();
    SHARED.get_or_init(|| PgBouncer::start(postgres::shared()))
}

async fn connect(database: &TestDatabase<'_>) -> PgStore {
    let options = PgOptions { statement_cache: 0, ..support::options() };
    let url = pooler().url(database.name());
    PgStore::connect(&url, options).await.expect("the database opens")
}

#[async_trait]
impl Harness for Pooled {
    async fn start() -> Self {
        let database = support::database().await;
        let store = connect(&database).await;
        Self { database, store }
    }

    fn stores(&self) -> Stores {
        self.store.stores()
    }

    async fn restart(&mut self) {
        self.store.close().await;
        self.store = connect(&self.database).await;
    }
}

kefu_testkit::stamp! { Pooled;
    sessions: [
        a_hundred_openings_at_once_make_one_session,
        updates_race_with_appends,
        every_field_survives,
        an_impossible_session_is_not_stored,
        a_restart_keeps_open_sessions,
    ],
    agents: [every_field_survives, gone_agents_are_listed_by_id],
    assignments: [
        a_poisoned_change_writes_nothing,
        an_unknown_agent_is_created_once,
        overlapping_scopes_do_not_deadlock,
        a_full_pass_fits_one_transaction,
    ],
    loads: [a_hundred_users_spread_over_ten_agents, any_acts_at_once_keep_the_ledger],
    line: [place_is_the_index_in_front, the_line_is_read_at_one_instant],
    messages: [
        any_text_survives,
        a_large_batch_fits_one_transaction,
        a_poisoned_batch_stores_nothing,
        an_image_belongs_to_its_session,
    ],
    order: [a_hundred_sends_of_one_key_store_one_row, overlapping_batches_do_not_deadlock],
    receipts: [reports_race_with_appends, a_cumulative_report_covers_what_came_before],
    history: [unread_counts_the_other_side, the_highest_id_remembers_trimmed_events],
    uploads: [forgetting_races_with_sending],
    outbox: [events_confirmed_while_others_are_written, only_confirmed_rows_are_trimmed],
    exclusion: [decisions_about_one_session_take_turns],
    faults: [dropped_calls_leave_nothing_half_done],
}

/// Nothing that kefu sets is met by others who share the pooler's connections.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_setting_outlives_its_transaction() {
    let pooled = Pooled::start().await;
    let world = kefu_testkit::World::new(pooled.stores());
    for number in 0..20 {
        world.open(&format!("u{number}"), 0).await;
    }
    let settings = "SELECT current_setting('statement_timeout'), current_setting('lock_timeout'), \
         current_setting('idle_in_transaction_session_timeout')";
    for _ in 0..20 {
        assert_eq!(pooler().query(pooled.database.name(), settings), "0|0|0");
    }
}
