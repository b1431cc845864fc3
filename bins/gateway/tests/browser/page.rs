//! One page in one browser, seen through the hooks of `crates/web/README.md`.

use std::path::Path;
use std::str::FromStr;

use anyhow::{Context, Result, bail, ensure};
use fantoccini::Client;
use fantoccini::elements::Element;
use fantoccini::key::Key;
use fantoccini::wd::WebDriverCompatibleCommand;
use reqwest::{Method, Url};
use serde_json::{Value, json};
use tokio::time::{Duration, Instant};

/// How long a page may take to show what it must. Three browsers on a busy machine are slow.
pub(crate) const DEADLINE: Duration = Duration::from_secs(60);
/// Between two looks at a page: WebDriver tells nothing by itself.
pub(crate) const PAUSE: Duration = Duration::from_millis(50);

/// How WebDriver marks an element in JSON.
const ELEMENT: &str = "element-6066-11e4-a52e-4f735466cecf";

/// What every script may use.
const PRELUDE: &str = r#"
    const widget = document.querySelector("kefu-widget");
    const roots = [document, widget?.shadowRoot].filter(Boolean);
    const all = (id) => roots.flatMap((root) => [...root.querySelectorAll(`[data-testid="${id}"]`)]);
    const $ = (id) => all(id).find((one) => one.checkVisibility()) ?? all(id)[0] ?? null;
    const shown = (id) => $(id)?.checkVisibility() ?? false;
    const text = (id) => (shown(id) ? $(id).textContent : null);
    const messages = () => all("message").map((message) => ({
        msgId: message.dataset.msgId ?? null,
        seq: Number(message.dataset.seq ?? 0),
        state: message.dataset.state,
        sender: message.dataset.sender,
        name: message.querySelector(".sender").textContent,
        body: message.querySelector(".body").textContent,
        image: (message.querySelector("img")?.naturalWidth ?? 0) > 0,
    }));
    const last = () => messages().at(-1) ?? {};
"#;

/// One page.
pub(crate) struct Page {
    browser: Client,
}

impl Page {
    pub(crate) fn new(browser: Client) -> Self {
        Self { browser }
    }

    pub(crate) async fn goto(&self, url: &str) -> Result<()> {
        Ok(self.browser.goto(url).await?)
    }

    pub(crate) async fn reload(&self) -> Result<()> {
        Ok(self.browser.refresh().await?)
    }

    /// Emulated, since a window of Chromium cannot be as narrow as a phone.
    pub(crate) async fn resize(&self, width: u32, height: u32) -> Result<()> {
        let metrics =
            json!({"width": width, "height": height, "deviceScaleFactor": 1, "mobile": false});
        self.devtools("Emulation.setDeviceMetricsOverride", metrics).await?;
        Ok(())
    }

    /// The value of a JavaScript expression.
    pub(crate) async fn eval(&self, expression: &str) -> Result<Value> {
        let script = format!("{PRELUDE} return ({expression});");
        self.browser.execute(&script, Vec::new()).await.with_context(|| expression.to_owned())
    }

    /// Waits until a JavaScript expression is true.
    pub(crate) async fn until(&self, expression: &str) -> Result<()> {
        let check = format!("Boolean({expression})");
        self.settles(&check, &json!(true)).await
    }

    /// Waits until a JavaScript expression has this value.
    pub(crate) async fn settles(&self, expression: &str, expected: &Value) -> Result<()> {
        let deadline = Instant::now() + DEADLINE;
        loop {
            let value = self.eval(expression).await?;
            if value == *expected {
                return Ok(());
            }
            if Instant::now() > deadline {
                let page = self.eval("document.body.innerText").await?;
                bail!("{expression} is {value}, not {expected}, on\n{page}");
            }
            // tidy: the polling pause of WebDriver
            tokio::time::sleep(PAUSE).await;
        }
    }

    /// Waits until a control can be used, and clicks it.
    pub(crate) async fn click(&self, id: &str) -> Result<()> {
        Ok(self.usable(id).await?.click().await?)
    }

    /// Presses keys in a field.
    pub(crate) async fn press(&self, id: &str, keys: &str) -> Result<()> {
        Ok(self.usable(id).await?.send_keys(keys).await?)
    }

    /// Presses keys wherever the focus is; Alt and Ctrl hold for all that follows them.
    pub(crate) async fn keys(&self, keys: &str) -> Result<()> {
        Ok(self.browser.active_element().await?.send_keys(keys).await?)
    }

    /// Clicks the element of this kind that holds this text.
    pub(crate) async fn click_one(&self, id: &str, text: &str) -> Result<()> {
        let text = json!(text);
        let one = format!("all(\"{id}\").find((one) => one.textContent.includes({text}))");
        self.until(&format!("{one}?.checkVisibility()")).await?;
        self.eval(&format!("{one}.click() ?? null")).await?;
        Ok(())
    }

    /// Puts a text into a field in place of what it held.
    pub(crate) async fn fill(&self, id: &str, text: &str) -> Result<()> {
        let field = self.usable(id).await?;
        field.clear().await?;
        Ok(field.send_keys(text).await?)
    }

    /// Chooses the option whose label begins like this.
    pub(crate) async fn choose(&self, id: &str, label: &str) -> Result<()> {
        let label = json!(label);
        self.until(&format!(r#"[...$("{id}").options].some((o) => o.text.startsWith({label}))"#))
            .await?;
        let index =
            format!(r#"[...$("{id}").options].findIndex((o) => o.text.startsWith({label}))"#);
        let index = self.eval(&index).await?.as_u64().context("an index")?;
        let list = self.usable(id).await?;
        Ok(list.select_by_index(usize::try_from(index)?).await?)
    }

    /// Writes a message and sends it with Enter.
    pub(crate) async fn say(&self, text: &str) -> Result<()> {
        self.press("composer", &format!("{text}{}", char::from(Key::Enter))).await
    }

    /// Picks a file at the composer.
    pub(crate) async fn attach(&self, file: &Path) -> Result<()> {
        let input = self.find("attach").await?;
        Ok(input.send_keys(&file.display().to_string()).await?)
    }

    /// Waits until the last message has this text and has come this far.
    pub(crate) async fn last_is(&self, body: &str, state: &str) -> Result<()> {
        self.settles("[last().body, last().state]", &json!([body, state])).await
    }

    /// Notes from now on whether an element shows, also when it is soon gone again.
    pub(crate) async fn watch(&self, id: &str) -> Result<()> {
        let watch = format!(
            r#"(() => {{
                window.seen = shown("{id}");
                const look = () => {{ window.seen ||= shown("{id}"); }};
                new MutationObserver(look).observe($("{id}"), {{ attributes: true }});
                return true;
            }})()"#
        );
        self.until(&watch).await
    }

    /// Waits until what is watched has been seen.
    pub(crate) async fn was_seen(&self) -> Result<()> {
        self.until("window.seen").await
    }

    /// The page as PNG.
    pub(crate) async fn screenshot(&self) -> Result<Vec<u8>> {
        Ok(self.browser.screenshot().await?)
    }

    /// What the browser's log holds since the last call: errors, and all that the CSP refused.
    pub(crate) async fn complaints(&self) -> Result<Vec<String>> {
        let log = self.chromium("se/log", json!({"type": "browser"})).await?;
        let entries = log.as_array().context("a list of entries")?;
        let bad = entries.iter().filter(|entry| entry["level"] == "SEVERE");
        Ok(bad.map(|entry| entry["message"].as_str().unwrap_or_default().to_owned()).collect())
    }

    /// That nothing went wrong in this page; and that it would have been noticed.
    pub(crate) async fn is_clean(&self) -> Result<()> {
        let complaints = self.complaints().await?;
        ensure!(complaints.is_empty(), "{complaints:?}");
        let inline =
            r#"document.body.append(Object.assign(document.createElement("script"), {text: "1"}))"#;
        self.eval(inline).await?;
        let refused = self.complaints().await?;
        ensure!(refused.iter().any(|text| text.contains("Content Security Policy")), "{refused:?}");
        Ok(())
    }

    async fn usable(&self, id: &str) -> Result<Element> {
        self.until(&format!(r#"shown("{id}") && !$("{id}").disabled"#)).await?;
        self.find(id).await
    }

    /// An element by its hook, in the page or in the widget's shadow tree.
    async fn find(&self, id: &str) -> Result<Element> {
        let found = self.eval(&format!(r#"$("{id}")"#)).await?;
        let reference = found[ELEMENT].as_str().with_context(|| format!("no {id}"))?;
        Ok(Element::from_element_id(self.browser.clone(), reference.to_owned().into()))
    }

    /// One call of the DevTools protocol.
    pub(crate) async fn devtools(&self, method: &str, params: Value) -> Result<Value> {
        self.chromium("goog/cdp/execute", json!({"cmd": method, "params": params})).await
    }

    /// Presses one key, wherever the focus is.
    pub(crate) async fn stroke(&self, key: &str, code: u32) -> Result<()> {
        let text = if key == "Enter" { "\r" } else { "" };
        for kind in ["keyDown", "keyUp"] {
            let stroke = json!({"type": kind, "key": key, "code": key, "windowsVirtualKeyCode": code, "text": text});
            self.devtools("Input.dispatchKeyEvent", stroke).await?;
        }
        Ok(())
    }

    /// Lets the page believe that the person prefers dark colours, or light ones.
    pub(crate) async fn dark(&self, dark: bool) -> Result<()> {
        let value = if dark { "dark" } else { "light" };
        let media = json!({"features": [{"name": "prefers-color-scheme", "value": value}]});
        self.devtools("Emulation.setEmulatedMedia", media).await?;
        Ok(())
    }

    /// Runs statements; nothing is awaited.
    pub(crate) async fn run(&self, statements: &str) -> Result<()> {
        self.browser.execute(statements, Vec::new()).await?;
        Ok(())
    }

    /// Runs statements that end by calling `done(value)`; gives the value.
    pub(crate) async fn run_async(&self, statements: &str) -> Result<Value> {
        let script =
            format!("const done = arguments[arguments.length - 1]; {PRELUDE} {statements}");
        Ok(self.browser.execute_async(&script, Vec::new()).await?)
    }

    async fn chromium(&self, path: &'static str, body: Value) -> Result<Value> {
        Ok(self.browser.issue_cmd(ChromiumCommand { path, body }).await?)
    }
}

/// A command of chromedriver that WebDriver does not have.
#[derive(Debug)]
struct ChromiumCommand {
    path: &'static str,
    body: Value,
}

impl WebDriverCompatibleCommand for ChromiumCommand {
    fn endpoint(&self, base: &Url, session: Option<&str>) -> Result<Url, <Url as FromStr>::Err> {
        base.join(&format!("session/{}/{}", session.unwrap_or_default(), self.path))
    }

    fn method_and_body(&self, _: &Url) -> (Method, Option<String>) {
        (Method::POST, Some(self.body.to_string()))
    }
}
