//! Time that a test lets pass in a Redis, whose own clock nobody can move.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

/// Moves what is kept instead: the ends of lives come nearer by what "passed". Scripts of kefu know
/// nothing of it.
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

/// Lets `by` pass for everything that kefu keeps under `prefix` in the Redis at `url`
/// (`redis://[user:password@]host[:port][/database]`).
///
/// # Panics
/// When it is not there or refuses.
pub fn pass(url: &str, prefix: &str, by: Duration) {
    let place = Place::of(url);
    let mut words = Vec::new();
    if let Some(password) = place.password {
        let user = if place.user.is_empty() { "default" } else { place.user };
        words.push(vec!["AUTH".to_owned(), user.to_owned(), password.to_owned()]);
    }
    if !place.database.is_empty() {
        words.push(vec!["SELECT".to_owned(), place.database.to_owned()]);
    }
    let (pattern, ms) = (format!("{prefix}:*"), by.as_millis().to_string());
    words.push(vec!["EVAL".to_owned(), PASS.to_owned(), "0".to_owned(), pattern, ms]);
    words.push(vec!["QUIT".to_owned()]);
    let mut stream = TcpStream::connect(place.address()).expect("redis is running");
    for command in &words {
        stream.write_all(&encode(command)).expect("redis takes a command");
    }
    let mut answers = String::new();
    stream.read_to_string(&mut answers).expect("redis answers");
    let refusal = answers.lines().find(|line| line.starts_with('-'));
    assert_eq!(refusal, None, "redis refuses");
}

/// A command as Redis reads it.
fn encode(command: &[String]) -> Vec<u8> {
    let words = command.iter().map(|word| format!("${}\r\n{word}\r\n", word.len()));
    format!("*{}\r\n{}", command.len(), words.collect::<String>()).into_bytes()
}

/// The parts of a URL.
#[derive(Debug, PartialEq, Eq)]
struct Place<'a> {
    user: &'a str,
    password: Option<&'a str>,
    host: &'a str,
    database: &'a str,
}

impl<'a> Place<'a> {
    fn of(url: &'a str) -> Self {
        let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
        let (who, place) = rest.rsplit_once('@').unwrap_or(("", rest));
        let (user, password) = who.split_once(':').map_or((who, None), |(u, p)| (u, Some(p)));
        let (host, database) = place.split_once('/').unwrap_or((place, ""));
        Self { user, password, host, database }
    }

    fn address(&self) -> String {
        if self.host.contains(':') { self.host.to_owned() } else { format!("{}:6379", self.host) }
    }
}

#[cfg(test)]
mod tests {
    use super::Place;

    #[test]
    fn a_url_has_its_parts() {
        let place = Place::of("redis://u:p@h:1/2");
        assert_eq!(place, Place { user: "u", password: Some("p"), host: "h:1", database: "2" });
        let place = Place::of("redis-cluster://h");
        assert_eq!(place, Place { user: "", password: None, host: "h", database: "" });
        assert_eq!(place.address(), "h:6379");
    }
}
