//! Somebody else's website with the widget on it, and a policy as strict as a site can have.

use std::sync::{Arc, Mutex};

use anyhow::{Context, Result};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

use super::support::{Server, ServerBuilder};

/// A site of one page. Gone when dropped.
pub(crate) struct Site {
    origin: String,
    page: Arc<Mutex<Page>>,
    _task: JoinSet<()>,
}

#[derive(Default)]
struct Page {
    html: String,
    policy: String,
    /// Whatever the browser reported as a breach of the policy.
    reports: Vec<String>,
}

impl Site {
    /// A site without a page yet.
    pub(crate) async fn start() -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let origin = format!("http://{}", listener.local_addr()?);
        let page = Arc::<Mutex<Page>>::default();
        let mut task = JoinSet::new();
        task.spawn(serve(listener, Arc::clone(&page)));
        Ok(Self { origin, page, _task: task })
    }

    /// A gateway that this site may use.
    pub(crate) fn allowed(&self) -> ServerBuilder {
        ServerBuilder::default().set("KEFU__SERVER__ALLOWED_ORIGINS", &self.origin)
    }

    /// Puts the widget's tag into the head of the page; gives the page's address.
    pub(crate) fn embeds(&self, server: &Server, token: &str) -> String {
        let gateway = server.url("");
        let socket = gateway.replace("http", "ws");
        let mut page = self.page();
        page.html = format!(
            r#"<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Shop</title>
            <script type="module" src="{gateway}/widget.js" data-token="{token}" data-source="shop"></script>
            </head><body><main><h1>Shop</h1></main></body></html>"#
        );
        page.policy = format!(
            "default-src 'none'; script-src {gateway}; connect-src {gateway} {socket}; \
             img-src {gateway}; report-uri /report"
        );
        self.url()
    }

    /// The page's address.
    pub(crate) fn url(&self) -> String {
        format!("{}/", self.origin)
    }

    /// What the browser reported as a breach of the policy, so far.
    pub(crate) fn reports(&self) -> Vec<String> {
        self.page().reports.clone()
    }

    fn page(&self) -> std::sync::MutexGuard<'_, Page> {
        self.page.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

async fn serve(listener: TcpListener, page: Arc<Mutex<Page>>) {
    let mut connections = JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        let page = Arc::clone(&page);
        // A browser that goes away in mid-request is no concern of the site's.
        connections.spawn(async move { answer(stream, &page).await.is_ok() });
        while connections.try_join_next().is_some() {}
    }
}

/// Answers one request and closes.
async fn answer(stream: TcpStream, page: &Mutex<Page>) -> Result<()> {
    let mut stream = BufReader::new(stream);
    let mut first = String::new();
    stream.read_line(&mut first).await?;
    let mut length = 0;
    loop {
        let mut line = String::new();
        stream.read_line(&mut line).await?;
        let Some((name, value)) = line.split_once(':') else { break };
        if name.eq_ignore_ascii_case("content-length") {
            length = value.trim().parse().context("a length")?;
        }
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await?;
    let answer = respond(&first, &body, page);
    stream.write_all(answer.as_bytes()).await?;
    Ok(stream.shutdown().await?)
}

fn respond(request: &str, body: &[u8], page: &Mutex<Page>) -> String {
    let mut page = page.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    if request.starts_with("POST /report ") {
        page.reports.push(String::from_utf8_lossy(body).into_owned());
        return "HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n".to_owned();
    }
    if !request.starts_with("GET / ") {
        return "HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n".to_owned();
    }
    let Page { html, policy, .. } = &*page;
    format!(
        "HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\nContent-Security-Policy: {policy}\r\n\
         Content-Length: {}\r\nConnection: close\r\n\r\n{html}",
        html.len()
    )
}
