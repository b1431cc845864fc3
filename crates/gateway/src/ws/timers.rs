//! What a connection has to do by when. One timer per connection: the nearest of these.

use std::time::Duration;

use tokio::time::Instant;

/// The first frame must be `chat.connect` within this time (`protocol.md`).
const CONNECT_WITHIN: Duration = Duration::from_secs(10);
/// After `token_expired` a fresh token is waited for this long (`protocol.md`).
const RENEW_WITHIN: Duration = Duration::from_secs(30);
/// Signs of life renew the lease no more often than this part of its life. The lease runs out that
/// much before the connection's own deadline at most: of 60 s one, so that at 59 both live (P1).
const RENEWALS_PER_TTL: u32 = 60;

/// What is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Due {
    /// No `chat.connect` came.
    NoConnect,
    /// Nothing came for `presence.ttl_ms` (P1).
    Silence,
    /// Send a ping (P2).
    Ping,
    /// The token expired: say so, and wait.
    TokenExpired,
    /// No fresh token came.
    NotRenewed,
}

/// The deadlines of one connection, on the runtime's monotonic clock.
#[derive(Debug)]
pub(crate) struct Timers {
    ttl: Duration,
    ping_every: Duration,
    connect_by: Option<Instant>,
    silent_from: Instant,
    ping_at: Instant,
    token: Option<Token>,
    lease_renewed: Instant,
}

#[derive(Debug, Clone, Copy)]
enum Token {
    ExpiresAt(Instant),
    RenewBy(Instant),
}

impl Timers {
    pub(crate) fn new(now: Instant, ttl: Duration, ping_every: Duration) -> Self {
        Self {
            ttl,
            ping_every,
            connect_by: Some(now + CONNECT_WITHIN),
            silent_from: now + ttl,
            ping_at: now + ping_every,
            token: None,
            lease_renewed: now,
        }
    }

    /// The nearest deadline.
    pub(crate) fn next(&self) -> Instant {
        let token = self.token.map(|token| match token {
            Token::ExpiresAt(at) | Token::RenewBy(at) => at,
        });
        let fixed = self.silent_from.min(self.ping_at);
        [self.connect_by, token].into_iter().flatten().fold(fixed, Instant::min)
    }

    /// What is due at `now`, one thing at a time, the most final first.
    pub(crate) fn due(&mut self, now: Instant) -> Option<Due> {
        if self.connect_by.is_some_and(|by| by <= now) {
            return Some(Due::NoConnect);
        }
        if self.silent_from <= now {
            return Some(Due::Silence);
        }
        match self.token {
            Some(Token::RenewBy(by)) if by <= now => return Some(Due::NotRenewed),
            Some(Token::ExpiresAt(at)) if at <= now => {
                self.token = Some(Token::RenewBy(now + RENEW_WITHIN));
                return Some(Due::TokenExpired);
            }
            Some(_) | None => {}
        }
        if self.ping_at <= now {
            self.ping_at = now + self.ping_every;
            return Some(Due::Ping);
        }
        None
    }

    /// A frame came in. Says whether the lease should be renewed.
    pub(crate) fn alive(&mut self, now: Instant) -> bool {
        self.silent_from = now + self.ttl;
        let renew = now.duration_since(self.lease_renewed) >= self.ttl / RENEWALS_PER_TTL;
        if renew {
            self.lease_renewed = now;
        }
        renew
    }

    /// A token was accepted.
    pub(crate) fn connected(&mut self, now: Instant, token_life: Duration) {
        self.connect_by = None;
        self.token = now.checked_add(token_life).map(Token::ExpiresAt);
        self.lease_renewed = now;
    }

    /// The connect failed for a reason that may pass: the client may try again.
    pub(crate) fn disconnected(&mut self, now: Instant) {
        self.connect_by = Some(now + CONNECT_WITHIN);
        self.token = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TTL: Duration = Duration::from_secs(60);
    const PING: Duration = Duration::from_secs(25);

    fn after(start: Instant, seconds: u64) -> Instant {
        start + Duration::from_secs(seconds)
    }

    #[tokio::test(start_paused = true)]
    async fn silence_counts_from_the_last_inbound_frame() {
        let start = Instant::now();
        let mut timers = Timers::new(start, TTL, PING);
        timers.connected(start, Duration::from_secs(3_600));
        assert!(timers.alive(after(start, 29)), "the lease is renewed");
        let soon = after(start, 29) + Duration::from_millis(500);
        assert!(!timers.alive(soon), "not at every frame");
        assert!(timers.alive(after(start, 30)));
        assert_eq!(timers.due(after(start, 30)), Some(Due::Ping));
        assert_eq!(timers.due(after(start, 54)), None);
        assert_eq!(timers.due(after(start, 89)), Some(Due::Ping), "59 s: still there (P1)");
        assert_eq!(timers.due(after(start, 90)), Some(Due::Silence), "60 s: gone (P1)");
    }

    #[tokio::test(start_paused = true)]
    async fn the_lease_lives_59_seconds_from_any_sign_of_life() {
        let start = Instant::now();
        for pause in [1, 700, 999, 1_000, 1_300, 19_000, 25_000, 59_000] {
            let mut timers = Timers::new(start, TTL, PING);
            timers.connected(start, Duration::from_secs(3_600));
            let (mut now, mut renewed) = (start, start);
            for _ in 0..50 {
                now += Duration::from_millis(pause);
                if timers.alive(now) {
                    renewed = now;
                }
                let life = renewed + TTL - now;
                assert!(life >= Duration::from_secs(59), "{life:?} after frames every {pause} ms");
            }
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_token_expires_once_and_is_waited_for() {
        let start = Instant::now();
        let mut timers = Timers::new(start, TTL, PING);
        assert_eq!(timers.due(after(start, 10)), Some(Due::NoConnect));
        timers.connected(start, Duration::from_secs(20));
        assert_eq!(timers.due(after(start, 20)), Some(Due::TokenExpired));
        assert_eq!(timers.due(after(start, 21)), None);
        timers.alive(after(start, 49));
        timers.due(after(start, 49));
        assert_eq!(timers.due(after(start, 50)), Some(Due::NotRenewed));
    }
}
