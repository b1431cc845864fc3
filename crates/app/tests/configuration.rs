//! Layers of settings: precedence, unknown keys, secrets and their twins, lists, ranges, redaction.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test stops at what it did not expect"
)]

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use kefu_app::{Command, Config, ConfigError, DEFAULTS, DemoMode, Failure, Profile, run};
use tempfile::TempDir;

const SECRET: &str = "0123456789abcdef0123456789abcdef";

fn variables(settings: &[(&str, &str)]) -> Vec<(OsString, OsString)> {
    settings.iter().map(|(name, value)| (OsString::from(name), OsString::from(value))).collect()
}

fn from_environment(settings: &[(&str, &str)]) -> Result<Config, ConfigError> {
    Config::load(None, variables(settings))
}

fn file(folder: &TempDir, text: &str) -> PathBuf {
    let path = folder.path().join("kefu.toml");
    fs::write(&path, text).unwrap();
    path
}

fn from_file(text: &str) -> Result<Config, ConfigError> {
    let folder = tempfile::tempdir().unwrap();
    Config::load(Some(&file(&folder, text)), variables(&[]))
}

fn refusal(loaded: Result<Config, ConfigError>) -> String {
    loaded.expect_err("refused").to_string()
}

#[test]
fn the_defaults_are_those_of_the_contract() {
    let config = from_environment(&[]).unwrap();
    assert_eq!(config.server.listen.to_string(), "127.0.0.1:8080");
    assert_eq!(config.data_dir, Path::new("./kefu-data"));
    assert_eq!(config.upload.dir, Path::new("./kefu-data/public/uploads/chat"));
    assert_eq!(config.demo.enabled, DemoMode::Auto);
    assert_eq!(config.delivery.retry_ms, [1_000, 2_000, 4_000]);
    assert_eq!(config.limits.outbound_bytes, 262_144);
    assert!(config.auth.secret.is_none());
}

#[test]
fn the_file_overrides_the_defaults_and_the_environment_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = file(&folder, "[messaging]\nmax_chars = 300\nresume_page = 20\n");
    let environment = variables(&[("KEFU__MESSAGING__MAX_CHARS", "200"), ("PATH", "/bin")]);
    let config = Config::load(Some(&path), environment).unwrap();
    assert_eq!(config.messaging.max_chars, 200);
    assert_eq!(config.messaging.resume_page, 20);
    assert_eq!(config.assignment.max_sessions, 10);
}

#[test]
fn the_upload_folder_follows_the_data_folder() {
    let config = from_environment(&[("KEFU__DATA_DIR", "/var/lib/kefu")]).unwrap();
    assert_eq!(config.upload.dir, Path::new("/var/lib/kefu/public/uploads/chat"));
    let config = from_environment(&[("KEFU__UPLOAD__DIR", "/srv/images")]).unwrap();
    assert_eq!(config.upload.dir, Path::new("/srv/images"));
}

#[test]
fn an_unknown_key_is_refused_wherever_it_stands() {
    for (text, key) in [
        ("[server]\nlisten_on = \"x\"\n", "server.listen_on"),
        ("[servers]\n", "servers"),
        ("listen = 1\n", "listen"),
        ("server = 1\n", "server"),
        ("[limits.message_burst]\nx = 1\n", "limits.message_burst"),
    ] {
        let refusal = refusal(from_file(text));
        assert!(refusal.contains(key), "{text:?}: {refusal}");
    }
    for name in ["KEFU__SERVER__LISTN", "KEFU__", "KEFU__server__listen", "KEFU__SERVER"] {
        let refusal = refusal(from_environment(&[(name, "127.0.0.1:1")]));
        assert_eq!(refusal, format!("environment: unknown configuration key {name}"));
    }
    // Other people's variables are none of our business.
    assert!(from_environment(&[("KEFU_OTHER", "x"), ("kefu__x", "x")]).is_ok());
}

#[test]
fn a_broken_file_is_told_by_line_and_without_its_text() {
    let refusal = refusal(from_file("[auth]\n\nsecret = hunter2\n"));
    assert!(refusal.contains("line 3"), "{refusal}");
    assert!(!refusal.contains("hunter2"), "{refusal}");
    let missing = Config::load(Some(Path::new("/nowhere/kefu.toml")), variables(&[]));
    assert!(missing.unwrap_err().to_string().starts_with("/nowhere/kefu.toml: cannot be read"));
}

#[test]
fn lists_are_comma_separated_in_the_environment() {
    let config = from_environment(&[
        ("KEFU__SERVER__ALLOWED_ORIGINS", "https://a.test, http://b.test:81,"),
        ("KEFU__SERVER__TRUSTED_PROXIES", "10.0.0.0/8,fd00::/8"),
        ("KEFU__DELIVERY__RETRY_MS", "10, 20"),
    ])
    .unwrap();
    assert_eq!(config.server.allowed_origins, ["https://a.test", "http://b.test:81"]);
    assert_eq!(config.server.trusted_proxies.len(), 2);
    assert_eq!(config.delivery.retry_ms, [10, 20]);
    let config = from_environment(&[("KEFU__SERVER__ALLOWED_ORIGINS", "")]).unwrap();
    assert!(config.server.allowed_origins.is_empty());
}

#[test]
fn a_wrong_value_names_its_key() {
    for (name, value, key) in [
        ("KEFU__SERVER__LISTEN", "localhost", "server.listen"),
        ("KEFU__SERVER__TRUSTED_PROXIES", "10.0.0.1", "server.trusted_proxies"),
        ("KEFU__SERVER__ALLOWED_ORIGINS", "https://a.test/path", "server.allowed_origins"),
        ("KEFU__DEMO__ENABLED", "maybe", "demo.enabled"),
        ("KEFU__LOG__FORMAT", "xml", "log.format"),
        ("KEFU__NODE__NAME", "a b", "node.name"),
        ("KEFU__DELIVERY__RETRY_MS", "1000,soon", "delivery.retry_ms"),
        ("KEFU__DELIVERY__RETRY_MS", "", "delivery.retry_ms"),
        ("KEFU__UPLOAD__MAX_BYTES", "2MB", "upload.max_bytes"),
        ("KEFU__DATA_DIR", "", "data_dir"),
    ] {
        let refusal = refusal(from_environment(&[(name, value)]));
        assert!(refusal.contains(key), "{name}={value}: {refusal}");
    }
}

#[test]
fn a_value_out_of_range_names_key_and_range() {
    for (name, value, expected) in [
        (
            "KEFU__MESSAGING__MAX_CHARS",
            "501",
            "messaging.max_chars: must be from 1 to 500, not 501",
        ),
        ("KEFU__MESSAGING__RESUME_PAGE", "0", "messaging.resume_page: must be from 1 to 50, not 0"),
        ("KEFU__ASSIGNMENT__MAX_SESSIONS", "11", "assignment.max_sessions: must be from 1 to 10"),
        ("KEFU__UPLOAD__MAX_BYTES", "2097153", "upload.max_bytes: must be from 1 to 2097152"),
        ("KEFU__QUEUE__AGEING_PER_MINUTE", "-1", "queue.ageing_per_minute: must be from 0"),
        ("KEFU__LIMITS__IN_FLIGHT", "0", "limits.in_flight: must be from 1"),
        ("KEFU__DELIVERY__RETRY_MS", "1000,1", "delivery.retry_ms: must be from 10"),
        ("KEFU__PRESENCE__HEARTBEAT_MS", "60000", "presence.heartbeat_ms: must be less"),
    ] {
        let refusal = refusal(from_environment(&[(name, value)]));
        assert!(refusal.contains(expected), "{name}={value}: {refusal}");
    }
}

#[test]
fn everything_out_of_range_is_told_at_once() {
    let loaded = from_environment(&[
        ("KEFU__MESSAGING__MAX_CHARS", "0"),
        ("KEFU__LIMITS__FRAME_BYTES", "1"),
    ]);
    assert_eq!(refusal(loaded).lines().count(), 2);
}

#[test]
fn the_cluster_profile_names_every_key_it_lacks() {
    let refusal = refusal(from_environment(&[("KEFU__PROFILE", "cluster")]));
    for key in ["postgres.url", "redis.url", "auth.secret"] {
        let problem = format!("{key}: must be set when profile is \"cluster\"");
        assert!(refusal.contains(&problem), "{refusal}");
    }
}

#[test]
fn the_cluster_profile_takes_what_it_needs() {
    let config = from_environment(&[
        ("KEFU__PROFILE", "cluster"),
        ("KEFU__POSTGRES__URL", "postgres://kefu@db/kefu"),
        ("KEFU__POSTGRES__STATEMENT_CACHE", "0"),
        ("KEFU__REDIS__URL", "redis://cache"),
        ("KEFU__REDIS__KEY_PREFIX", "{cs}"),
        ("KEFU__AUTH__SECRET", SECRET),
        ("KEFU__DRAINER__LISTEN", "127.0.0.1:9090"),
    ])
    .unwrap();
    assert_eq!(config.profile, Profile::Cluster);
    assert_eq!(config.postgres.statement_cache, 0);
    assert_eq!(config.redis.key_prefix, "{cs}");
    assert_eq!(config.drainer.listen.unwrap().port(), 9_090);
    assert_eq!(config.outbox.keep_hours, 24);
}

#[test]
fn a_drainer_is_refused_where_the_gateway_drains_by_itself() {
    let failure = run(&Command::Drain, None, variables(&[]), &mut Vec::new()).unwrap_err();
    assert_eq!(failure.exit_code(), 1);
    assert!(failure.to_string().contains("drains its own queue"), "{failure}");
}

#[test]
fn a_secret_may_come_from_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("secret");
    fs::write(&path, format!("{SECRET}\n")).unwrap();
    let path = path.to_str().unwrap();
    let config = from_environment(&[
        ("KEFU__AUTH__SECRET_FILE", path),
        ("KEFU__POSTGRES__URL_FILE", path),
        ("KEFU__REDIS__URL_FILE", path),
    ])
    .unwrap();
    for secret in [config.auth.secret, config.postgres.url, config.redis.url] {
        assert_eq!(secret.unwrap().reveal(), SECRET);
    }
    let missing = refusal(from_environment(&[("KEFU__AUTH__SECRET_FILE", "/nowhere")]));
    assert!(missing.starts_with("auth.secret_file: cannot be read"), "{missing}");
}

#[test]
fn a_later_layer_decides_where_a_secret_comes_from() {
    let folder = tempfile::tempdir().unwrap();
    let config_file = file(&folder, "[auth]\nsecret_file = \"/nowhere\"\n");
    let environment = variables(&[("KEFU__AUTH__SECRET", SECRET)]);
    let config = Config::load(Some(&config_file), environment).unwrap();
    assert_eq!(config.auth.secret.unwrap().reveal(), SECRET);
    assert!(config.auth.secret_file.is_none());
    let both = [("KEFU__REDIS__URL", "redis://a"), ("KEFU__REDIS__URL_FILE", "/b")];
    let refusal = refusal(from_environment(&both));
    assert!(refusal.contains("redis.url and redis.url_file are both set"), "{refusal}");
}

#[test]
fn a_short_secret_is_refused_without_being_shown() {
    let refusal = refusal(from_environment(&[("KEFU__AUTH__SECRET", &SECRET[..31])]));
    assert_eq!(refusal, "auth.secret: must have at least 32 bytes");
    assert!(from_environment(&[("KEFU__AUTH__SECRET", SECRET)]).is_ok());
}

#[test]
fn the_demo_switch_may_be_a_text_or_a_boolean() {
    for (text, mode) in [
        ("\"auto\"", DemoMode::Auto),
        ("\"true\"", DemoMode::True),
        ("true", DemoMode::True),
        ("false", DemoMode::False),
    ] {
        let config = from_file(&format!("[demo]\nenabled = {text}\n")).unwrap();
        assert_eq!(config.demo.enabled, mode, "{text}");
    }
    assert!(from_file("[demo]\nenabled = 1\n").is_err());
}

fn checked(settings: &[(&str, &str)]) -> Result<String, Failure> {
    let mut out = Vec::new();
    run(&Command::CheckConfig, None, variables(settings), &mut out)?;
    Ok(String::from_utf8(out).unwrap())
}

#[test]
fn check_config_prints_the_effective_settings_redacted() {
    let printed = checked(&[
        ("KEFU__AUTH__SECRET", SECRET),
        ("KEFU__POSTGRES__URL", "postgres://kefu:hunter2@db/kefu"),
        ("KEFU__REDIS__URL", "redis://:hunter3@cache"),
        ("KEFU__UPLOAD__LINK_TTL_S", "60"),
    ])
    .unwrap();
    for private in [SECRET, "hunter2", "hunter3"] {
        assert!(!printed.contains(private), "{printed}");
    }
    assert_eq!(printed.matches("\"<redacted>\"").count(), 3, "{printed}");
    assert!(printed.contains("link_ttl_s = 60"), "{printed}");
    assert!(!format!("{:?}", from_environment(&[("KEFU__AUTH__SECRET", SECRET)])).contains(SECRET));
}

#[test]
fn what_check_config_prints_is_a_configuration() {
    let printed = checked(&[("KEFU__MESSAGING__MAX_CHARS", "7")]).unwrap();
    assert_eq!(from_file(&printed).unwrap().messaging.max_chars, 7);
}

#[test]
fn the_defaults_are_a_configuration_file() {
    assert!(from_file(DEFAULTS).is_ok());
}

#[test]
fn a_refused_configuration_ends_with_2() {
    assert_eq!(checked(&[("KEFU__X", "1")]).unwrap_err().exit_code(), 2);
}
