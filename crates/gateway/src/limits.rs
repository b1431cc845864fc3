//! Token buckets per person and per address (L2).

use std::hash::Hash;
use std::net::{IpAddr, Ipv6Addr};
use std::num::NonZeroU32;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use governor::clock::{Clock, DefaultClock};
use governor::middleware::NoOpMiddleware;
use governor::state::keyed::DashMapStateStore;
use governor::{Quota, RateLimiter};
use kefu_core::Person;

use crate::GatewayConfig;

/// Checks between two removals of full buckets, unless more buckets than that are in use.
const SWEEP_AFTER: usize = 1_024;

/// How often somebody may do what costs something.
pub(crate) struct Limits {
    connects: Buckets<IpAddr>,
    sends: Buckets<Person>,
    uploads: Buckets<Person>,
}

/// The bucket is empty; the same attempt may succeed after this long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RetryAfter(pub(crate) Duration);

impl Limits {
    /// Full buckets for everybody. A limit of 0 counts as 1.
    pub(crate) fn new(config: &GatewayConfig) -> Self {
        let sends = Quota::per_second(at_least_one(config.messages_per_second))
            .allow_burst(at_least_one(config.message_burst));
        Self {
            connects: Buckets::new(Quota::per_minute(at_least_one(config.connects_per_minute))),
            sends: Buckets::new(sends),
            uploads: Buckets::new(Quota::per_minute(at_least_one(config.uploads_per_minute))),
        }
    }

    /// Takes one connect of a client's address.
    pub(crate) fn connect(&self, address: IpAddr) -> Result<(), RetryAfter> {
        self.connects.take(&one_client(address))
    }

    /// Takes one send of a person, over all their connections.
    pub(crate) fn send(&self, person: &Person) -> Result<(), RetryAfter> {
        self.sends.take(person)
    }

    /// Takes one upload of a person.
    pub(crate) fn upload(&self, person: &Person) -> Result<(), RetryAfter> {
        self.uploads.take(person)
    }
}

/// One bucket a key. A key costs memory only until its bucket is full again.
struct Buckets<K: Hash + Eq + Clone, C: Clock = DefaultClock> {
    limiter: RateLimiter<K, DashMapStateStore<K>, C, NoOpMiddleware<C::Instant>>,
    until_sweep: AtomicI64,
}

impl<K: Hash + Eq + Clone> Buckets<K> {
    fn new(quota: Quota) -> Self {
        Self::with_clock(quota, DefaultClock::default())
    }
}

impl<K: Hash + Eq + Clone, C: Clock> Buckets<K, C> {
    fn with_clock(quota: Quota, clock: C) -> Self {
        let limiter = RateLimiter::new(quota, DashMapStateStore::default(), clock);
        Self { limiter, until_sweep: AtomicI64::new(as_count(SWEEP_AFTER)) }
    }

    fn take(&self, key: &K) -> Result<(), RetryAfter> {
        self.sweep_now_and_then();
        self.limiter.check_key(key).map_err(|refusal| {
            let wait = refusal.wait_time_from(self.limiter.clock().now());
            RetryAfter(wait.max(Duration::from_millis(1)))
        })
    }

    /// A sweep walks all buckets, so the next one comes after as many checks: constant cost a check.
    /// Of several checks at once exactly one counts down to the end.
    fn sweep_now_and_then(&self) {
        if self.until_sweep.fetch_sub(1, Ordering::Relaxed) != 1 {
            return;
        }
        self.limiter.retain_recent();
        let checks = self.limiter.len().max(SWEEP_AFTER);
        self.until_sweep.store(as_count(checks), Ordering::Relaxed);
    }
}

/// An IPv6 client usually owns a whole /64 and could take a fresh address for every attempt.
fn one_client(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(v6) => IpAddr::V6(Ipv6Addr::from_bits(v6.to_bits() & !u128::from(u64::MAX))),
        v4 @ IpAddr::V4(_) => v4,
    }
}

fn at_least_one(limit: u32) -> NonZeroU32 {
    NonZeroU32::new(limit).unwrap_or(NonZeroU32::MIN)
}

fn as_count(checks: usize) -> i64 {
    i64::try_from(checks).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use governor::clock::FakeRelativeClock;

    use super::*;

    fn buckets(quota: Quota) -> (Buckets<u32, FakeRelativeClock>, FakeRelativeClock) {
        let clock = FakeRelativeClock::default();
        (Buckets::with_clock(quota, clock.clone()), clock)
    }

    fn quota(per_second: u32, burst: u32) -> Quota {
        Quota::per_second(at_least_one(per_second)).allow_burst(at_least_one(burst))
    }

    #[test]
    fn a_burst_passes_and_then_the_rate_holds() {
        let (buckets, clock) = buckets(quota(20, 100));
        assert!((0..100).all(|_| buckets.take(&1).is_ok()));
        assert_eq!(buckets.take(&1), Err(RetryAfter(Duration::from_millis(50))));
        clock.advance(Duration::from_millis(50));
        assert_eq!(buckets.take(&1), Ok(()));
        assert!(buckets.take(&1).is_err());
    }

    #[test]
    fn keys_do_not_share_a_bucket() {
        let (buckets, _) = buckets(quota(1, 1));
        assert_eq!(buckets.take(&1), Ok(()));
        assert!(buckets.take(&1).is_err());
        assert_eq!(buckets.take(&2), Ok(()));
    }

    #[test]
    fn full_buckets_are_forgotten() {
        let (buckets, clock) = buckets(quota(1, 1));
        for key in 0..100_000 {
            assert_eq!(buckets.take(&key), Ok(()));
            clock.advance(Duration::from_millis(100));
        }
        assert!(buckets.limiter.len() < 2 * SWEEP_AFTER, "{}", buckets.limiter.len());
    }

    #[test]
    fn an_ipv6_network_is_one_client() {
        let client = |text: &str| one_client(text.parse().unwrap());
        assert_eq!(client("2001:db8:1:2:3::4"), client("2001:db8:1:2:ffff::1"));
        assert_ne!(client("2001:db8:1:2::1"), client("2001:db8:1:3::1"));
        assert_ne!(client("192.0.2.1"), client("192.0.2.2"));
        assert_eq!(client("::ffff:192.0.2.1"), client("192.0.2.1"));
    }
}
