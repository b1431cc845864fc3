//! chromedriver as a child process, and the browsers it opens, each with a profile of its own.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream as BlockingStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use fantoccini::ClientBuilder;
use hyper_util::client::legacy::connect::HttpConnector;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::net::TcpStream;
use tokio::sync::{Mutex, MutexGuard};
use tokio::time::Instant;

use super::page::{DEADLINE, PAUSE, Page};

const CHROMIUM: &str = "/usr/bin/chromium";
const CHROMEDRIVER: &str = "/usr/bin/chromedriver";
const INSTALL: &str = "install the Debian packages `chromium` and `chromium-driver` \
                       (`cargo xtask test` does)";

/// Three browsers at a time are enough for a small machine: the tests of this file take turns.
static TURN: Mutex<()> = Mutex::const_new(());

/// A running chromedriver. Its browsers end with it.
pub(crate) struct Driver {
    process: Child,
    port: u16,
    profiles: TempDir,
    _turn: MutexGuard<'static, ()>,
}

impl Driver {
    /// Starts it on a free port and waits until it listens.
    pub(crate) async fn start() -> Result<Self> {
        for program in [CHROMIUM, CHROMEDRIVER] {
            ensure!(Path::new(program).exists(), "{program} is missing: {INSTALL}");
        }
        let turn = TURN.lock().await;
        let port = free_port()?;
        let process = Command::new(CHROMEDRIVER)
            .arg(format!("--port={port}"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::inherit())
            .spawn()
            .context(CHROMEDRIVER)?;
        let driver = Self { process, port, profiles: TempDir::new()?, _turn: turn };
        driver.listening().await?;
        Ok(driver)
    }

    /// A fresh browser that shows this page in a viewport of exactly this many CSS pixels.
    pub(crate) async fn open(&self, url: &str, width: u32, height: u32) -> Result<Page> {
        self.open_with(url, (width, height), &json!({}), "en-US").await
    }

    /// The same with preferences of the browser and in a language.
    pub(crate) async fn open_with(
        &self,
        url: &str,
        (width, height): (u32, u32),
        preferences: &Value,
        language: &str,
    ) -> Result<Page> {
        let profile = tempfile::tempdir_in(self.profiles.path())?.keep();
        let capabilities = json!({
            "browserName": "chrome",
            // A long list is scrolled through in one script, on a machine that may be busy.
            "timeouts": {"script": 180_000},
            "goog:loggingPrefs": {"browser": "ALL"},
            "goog:chromeOptions": {"binary": CHROMIUM, "prefs": preferences, "args": [
                "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic",
                "--no-first-run", "--disable-background-networking",
                "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage",
                format!("--lang={language}"), format!("--accept-lang={language}"), format!("--user-data-dir={}", profile.display()),
            ]},
        });
        let Value::Object(capabilities) = capabilities else { unreachable!("an object literal") };
        let browser = ClientBuilder::new(HttpConnector::new())
            .capabilities(capabilities)
            .connect(&format!("http://127.0.0.1:{}", self.port))
            .await?;
        let page = Page::new(browser);
        page.resize(width, height).await?;
        page.goto(url).await?;
        Ok(page)
    }

    async fn listening(&self) -> Result<()> {
        let deadline = Instant::now() + DEADLINE;
        while TcpStream::connect((Ipv4Addr::LOCALHOST, self.port)).await.is_err() {
            ensure!(Instant::now() < deadline, "chromedriver does not listen");
            // tidy: another process's listener can only be tried
            tokio::time::sleep(PAUSE).await;
        }
        Ok(())
    }
}

impl Drop for Driver {
    /// Ends the browsers too, which a mere kill of chromedriver would leave behind.
    fn drop(&mut self) {
        // Where it does not answer, its browsers are not to be reached either.
        let _ = shut_down(self.port);
        // An error means that it is gone already.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn shut_down(port: u16) -> std::io::Result<()> {
    let mut stream = BlockingStream::connect((Ipv4Addr::LOCALHOST, port))?;
    stream.set_read_timeout(Some(Duration::from_secs(10)))?;
    write!(stream, "GET /shutdown HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n")?;
    // The answer comes after the browsers have gone.
    stream.read_to_end(&mut Vec::new())?;
    Ok(())
}

/// A port below the ephemeral range, so that no outgoing connection takes it during a restart.
pub(crate) fn free_port() -> Result<u16> {
    (0..100)
        .map(|_| rand::random_range(20_000..32_768))
        .find(|port| TcpListener::bind((Ipv4Addr::LOCALHOST, *port)).is_ok())
        .context("no free port")
}
