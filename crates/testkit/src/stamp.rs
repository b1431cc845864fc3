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
            sessions: [opening_again_gives_the_open_session],
        }
    };
}

/// Stamps every case of the coordination ports on a [`CoordinationHarness`](crate::CoordinationHarness).
#[macro_export]
macro_rules! coordination_contract {
    ($harness:ty) => {
        $crate::stamp! { $harness;
            assign_lock: [a_held_lock_is_refused],
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
