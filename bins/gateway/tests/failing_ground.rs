//! The ground gives way: a full disk, an unwritable folder, a taken port, a wrong setting.

mod support;

use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use serde_json::json;
use support::{Client, PATIENCE, Server, ServerBuilder};

/// Runs the binary to its end and returns its exit code and what it said on stderr.
async fn fails(mut command: Command) -> Result<(i32, String)> {
    let run = tokio::task::spawn_blocking(move || command.stderr(Stdio::piped()).output());
    let output = tokio::time::timeout(PATIENCE, run).await.context("it does not end")???;
    let code = output.status.code().context("it was killed")?;
    Ok((code, String::from_utf8_lossy(&output.stderr).into_owned()))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_taken_port_is_named() -> Result<()> {
    let server = Server::start().await?;
    let folder = tempfile::tempdir()?;
    let builder = ServerBuilder::default().listen(server.address);
    let (code, said) = fails(builder.command(&folder.path().join("data"))).await?;
    ensure!(code != 0 && said.contains(&server.address.to_string()), "{code}: {said}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_unusable_data_folder_is_named() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("a-file");
    std::fs::write(&file, "not a folder")?;
    let (code, said) = fails(ServerBuilder::default().command(&file)).await?;
    ensure!(code != 0 && said.contains("a-file"), "{code}: {said}");
    let (code, said) = fails(ServerBuilder::default().command(Path::new("/proc/kefu"))).await?;
    ensure!(code != 0 && said.contains("/proc/kefu"), "{code}: {said}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_unknown_key_is_named() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let builder = ServerBuilder::default().set("KEFU__SERVER__LISTENN", "127.0.0.1:1");
    let (code, said) = fails(builder.command(&folder.path().join("data"))).await?;
    ensure!(code == 2 && said.to_lowercase().contains("listenn"), "{code}: {said}");
    let file = folder.path().join("kefu.toml");
    std::fs::write(&file, "[server]\nlisten = \"127.0.0.1:0\"\nlissten = 1\n")?;
    let mut command = ServerBuilder::default().command(&folder.path().join("data"));
    command.arg("check-config").arg("--config").arg(&file);
    let (code, said) = fails(command).await?;
    ensure!(code == 2 && said.contains("lissten"), "{code}: {said}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_second_gateway_on_the_same_data_is_refused() -> Result<()> {
    let server = Server::start().await?;
    let (code, _) = fails(ServerBuilder::default().command(&server.data)).await?;
    ensure!(code != 0);
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_disk_loses_nothing_acked_and_heals_without_a_restart() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let disk = folder.path().join("disk");
    std::fs::create_dir(&disk)?;
    let server = ServerBuilder::default()
        .set("KEFU__LIMITS__MESSAGE_BURST", 1_000_000)
        .set("KEFU__LIMITS__MESSAGES_PER_SECOND", 1_000_000)
        .on_small_disk(&disk)
        .start_in(disk.join("data"))
        .await?;
    let (mut client, connected) = Client::visitor(&server, "user").await?;
    let session = connected["sessionId"].as_str().context("a session")?.to_owned();
    let text = "x".repeat(500);
    let mut acked = 0;
    let refusal = loop {
        let payload = json!({
            "sessionId": session, "msgType": "text", "content": text,
            "clientMsgId": format!("k{acked}"),
        });
        let answer = client.ask("chat.message.send", payload).await?;
        if answer["event"] == "chat.error" {
            break answer["payload"].clone();
        }
        acked += 1;
        ensure!(acked < 100_000, "the disk never fills");
    };
    ensure!(refusal["code"] == "unavailable", "{refusal}");
    ensure!(acked > 0);
    // The filler was made so that there is something to give back.
    let filler = format!("/proc/{}/root{}", server.pid(), disk.join("filler").display());
    std::fs::remove_file(filler)?;
    let healed = client.say(&session, &format!("k{acked}"), &text).await?;
    ensure!(healed["seq"] == acked + 1, "the refused key is stored once, next in order: {healed}");
    let mut seen = 0;
    loop {
        let page = json!({"sessionId": session, "afterSeq": seen});
        let page = client.call("chat.history", page).await?;
        for message in page["messages"].as_array().into_iter().flatten() {
            seen += 1;
            ensure!(message["seq"] == seen);
        }
        if page["hasMore"] == false {
            break;
        }
    }
    ensure!(seen == acked + 1, "acked {acked}, stored {seen}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_term_signal_ends_within_the_grace_and_asks_clients_back() -> Result<()> {
    let server =
        ServerBuilder::default().set("KEFU__SERVER__SHUTDOWN_GRACE_MS", 5_000).start().await?;
    let (mut client, _) = Client::visitor(&server, "user").await?;
    let (took, well) = server.terminate().await?;
    ensure!(client.gone().await?.code == Some(1012), "L3");
    ensure!(well && took.as_millis() <= 5_500, "L3: {took:?}");
    Ok(())
}
