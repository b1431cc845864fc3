//! The scripts: each is one atomic step on the server, named by its hash.

use std::sync::OnceLock;

use fred::prelude::{Error, FromValue, LuaInterface};

/// One script. All of them may be run again with the same effect.
#[derive(Debug)]
pub(crate) struct Script {
    /// For faults and metrics.
    pub(crate) name: &'static str,
    lua: &'static str,
    hash: OnceLock<String>,
}

impl Script {
    pub(crate) const fn new(name: &'static str, lua: &'static str) -> Self {
        Self { name, lua, hash: OnceLock::new() }
    }

    /// Runs it, by its hash wherever the server knows it.
    pub(crate) async fn run<R, C>(
        &self,
        client: &C,
        keys: Vec<String>,
        args: Vec<String>,
    ) -> Result<R, Error>
    where
        R: FromValue,
        C: LuaInterface + Sync,
    {
        let hash = match self.hash.get() {
            Some(hash) => hash.clone(),
            None => self.load(client).await?,
        };
        match client.evalsha(hash, keys.clone(), args.clone()).await {
            // A restarted or emptied server forgot it, and did nothing. EVAL teaches it again.
            Err(error) if error.details().starts_with("NOSCRIPT") => {
                client.eval(self.lua, keys, args).await
            }
            answer => answer,
        }
    }

    async fn load<C: LuaInterface + Sync>(&self, client: &C) -> Result<String, Error> {
        let hash: String = client.script_load(self.lua).await?;
        Ok(self.hash.get_or_init(|| hash).clone())
    }
}
