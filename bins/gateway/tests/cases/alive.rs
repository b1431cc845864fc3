//! Waiting as a live client does: where silence is what a case is about, whoever is not the silent one
//! keeps giving signs of life.

use std::time::Duration;

use anyhow::{Context, Result};
use serde_json::{Value, json};
use tokio::time::timeout;

use crate::support::{Client, PATIENCE};

/// Between two signs of life; well below every `presence.ttl_ms` of these cases.
const BEAT: Duration = Duration::from_millis(100);

impl Client {
    /// As `expect_where`, with signs of life meanwhile.
    pub(crate) async fn expect_alive(
        &mut self,
        event: &str,
        fits: impl Fn(&Value) -> bool + Send + Sync,
    ) -> Result<Value> {
        let arrival = async {
            loop {
                self.send("chat.ping", json!({})).await?;
                if let Ok(payload) = timeout(BEAT, self.expect_where(event, &fits)).await {
                    return payload;
                }
            }
        };
        timeout(PATIENCE, arrival).await.with_context(|| format!("waiting for {event}"))?
    }

    /// Asks until the answer fits: for what nobody is told of.
    pub(crate) async fn until(
        &mut self,
        event: &str,
        payload: Value,
        fits: impl Fn(&Value) -> bool + Send + Sync,
    ) -> Result<Value> {
        let mut last = Value::Null;
        let answers = async {
            loop {
                last = self.call(event, payload.clone()).await?;
                if fits(&last) {
                    return Ok(last.clone());
                }
            }
        };
        match timeout(PATIENCE, answers).await {
            Ok(answer) => answer,
            Err(_) => anyhow::bail!("{event} never fits: {last}"),
        }
    }
}
