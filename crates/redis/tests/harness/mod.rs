//! One node on the Redis that the tests of a binary share, and time that a test can let pass.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use fred::prelude::{Builder, Client, ClientLike, Config, LuaInterface};
use kefu_core::NodeName;
use kefu_redis::{RedisCoordination, RedisOptions};
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::TaskTracker;

/// Time passes in Redis by its own clock only, so a test moves what is kept there instead: the ends
/// of lives come nearer by what "passed". The scripts under test know nothing of it.
///
/// While time passes somebody asks for the age every second, so that key keeps its life.
/// ARGV: the pattern of the test's keys, ms.
const PASS: &str = r"
local by = tonumber(ARGV[2])
for _, key in ipairs(redis.call('KEYS', ARGV[1])) do
    if key:find(':conns:', 1, true) then
        for _, member in ipairs(redis.call('ZRANGE', key, 0, -1)) do
            redis.call('ZINCRBY', key, -by, member)
        end
    end
    local left = redis.call('PTTL', key)
    if key:find(':presence:since', 1, true) then
        local since = string.format('%.0f', redis.call('GET', key) - by)
        redis.call('SET', key, since, 'KEEPTTL')
    elseif left >= 0 then
        redis.call('PEXPIRE', key, left - by)
    end
end
return 1
";

/// A node with a key prefix of its own.
pub(crate) struct Node {
    pub(crate) coordination: RedisCoordination,
    pub(crate) admin: Client,
    pub(crate) prefix: String,
    _stop: DropGuard,
}

impl Node {
    /// Connects to `url`; `admin` reaches the same server plainly.
    pub(crate) async fn start(url: &str, admin: &str, prefix: String) -> Self {
        let (coordination, stop) = connect(url, &prefix, "n1").await;
        Self { coordination, admin: client(admin).await, prefix, _stop: stop }
    }

    /// Lets `by` pass for everything under the prefix.
    pub(crate) async fn pass(&self, by: Duration) {
        let args = vec![format!("{}:*", self.prefix), by.as_millis().to_string()];
        let _: i64 = self.admin.eval(PASS, Vec::<String>::new(), args).await.unwrap();
    }
}

/// A prefix that no other test has, also not in another process on the same server.
pub(crate) fn unique(tag: &str) -> String {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    format!("{tag}-{:016x}-{number}", rand::random::<u64>())
}

/// One more node named `name` under `prefix`.
pub(crate) async fn connect(url: &str, prefix: &str, name: &str) -> (RedisCoordination, DropGuard) {
    let stop = CancellationToken::new();
    let node = NodeName::new(name).unwrap();
    let options = RedisOptions { key_prefix: prefix.to_owned(), ..RedisOptions::new(url, node) };
    let tracker = TaskTracker::new();
    let coordination = RedisCoordination::connect(options, &tracker, stop.clone()).await.unwrap();
    (coordination, stop.drop_guard())
}

async fn client(url: &str) -> Client {
    let client = Builder::from_config(Config::from_url(url).unwrap()).build().unwrap();
    client.init().await.unwrap();
    client
}
