//! What agents and supervisors have among themselves, through real sockets.

mod support;

use anyhow::{Result, ensure};
use serde_json::{Value, json};
use support::{Client, Server, until};

async fn supervisor(server: &Server) -> Result<Client> {
    Ok(Client::connect(server, json!({"token": server.supervisor("boss")})).await?.0)
}

fn shortcuts(list: &Value) -> Vec<&str> {
    let items = list["items"].as_array().into_iter().flatten();
    items.filter_map(|item| item["shortcut"].as_str()).collect()
}

fn reply(shortcut: &str, content: &str, scope: &str) -> Value {
    json!({"shortcut": shortcut, "content": content, "scope": scope})
}

/// That each of these is refused with its code.
async fn refused(
    client: &mut Client,
    asked: impl IntoIterator<Item = (&str, Value, &str)>,
) -> Result<()> {
    for (event, payload, code) in asked {
        let refusal = client.refused(event, payload.clone()).await?;
        ensure!(refusal["code"] == code, "{event} {payload}: {refusal}");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn notes_are_paged_and_kept() -> Result<()> {
    let server = Server::start().await?;
    let (mut anna, _) = Client::agent(&server, "anna", 5).await?;
    let (mut bert, _) = Client::connect(&server, json!({"token": server.agent("bert")})).await?;
    let (_user, connected) = Client::visitor(&server, "user").await?;
    let session = &connected["sessionId"];
    anna.expect("chat.session.new").await?;
    for n in 1..=5 {
        let note = json!({"sessionId": session, "content": format!("note {n}")});
        anna.call("chat.note.add", note).await?;
    }
    let page = anna.call("chat.note.list", json!({"sessionId": session, "limit": 2})).await?;
    let texts = |page: &Value| -> Vec<String> {
        let notes = page["notes"].as_array().into_iter().flatten();
        notes.filter_map(|note| note["content"].as_str()).map(str::to_owned).collect()
    };
    ensure!(texts(&page) == ["note 4", "note 5"] && page["hasMore"] == true, "{page}");
    let before = json!({"sessionId": session, "before": page["notes"][0]["noteId"]});
    let page = anna.call("chat.note.list", before).await?;
    ensure!(texts(&page) == ["note 1", "note 2", "note 3"] && page["hasMore"] == false, "{page}");

    for event in ["chat.note.list", "chat.note.add"] {
        for id in [session.clone(), json!("1")] {
            let asked = json!({"sessionId": id, "content": "x"});
            let refusal = bert.refused(event, asked).await?;
            ensure!(refusal["code"] == "not_found", "A3: {event} {refusal}");
        }
    }
    let mut boss = supervisor(&server).await?;
    let all = boss.call("chat.note.list", json!({"sessionId": session})).await?;
    ensure!(texts(&all).len() == 5, "{all}");
    let unknown = boss.refused("chat.note.list", json!({"sessionId": "1"})).await?;
    ensure!(unknown["code"] == "not_found", "{unknown}");
    let key = json!({"sessionId": session, "content": "", "clientMsgId": "n"});
    let refusal = anna.refused("chat.note.add", key).await?;
    ensure!(refusal["code"] == "content_empty" && refusal["clientMsgId"] == "n", "{refusal}");

    let server = server.kill_and_restart().await?;
    let (mut anna, _) = Client::connect(&server, json!({"token": server.agent("anna")})).await?;
    let kept = anna.call("chat.note.list", json!({"sessionId": session})).await?;
    ensure!(kept == all, "{kept}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn canned_replies_are_the_agents_own_or_the_teams() -> Result<()> {
    let server = Server::start().await?;
    let (mut anna, _) = Client::connect(&server, json!({"token": server.agent("anna")})).await?;
    let (mut bert, _) = Client::connect(&server, json!({"token": server.agent("bert")})).await?;
    let mut boss = supervisor(&server).await?;
    let (mut user, _) = Client::visitor(&server, "user").await?;

    let own = anna.call("chat.canned.put", reply("hi", "您好 {name}", "mine")).await?;
    ensure!(own["item"]["scope"] == "mine" && own["item"]["title"] == "", "{own}");
    let team = boss.call("chat.canned.put", reply("hi", "Welcome", "team")).await?;
    boss.call("chat.canned.put", reply("退款", "三天内到账", "team")).await?;
    let list = anna.call("chat.canned.list", json!({})).await?;
    ensure!(shortcuts(&list) == ["hi", "hi", "退款"] && list["nextCursor"].is_null(), "{list}");
    ensure!(list["items"][0] == own["item"] && list["items"][1] == team["item"], "own first");
    ensure!(shortcuts(&bert.call("chat.canned.list", json!({})).await?) == ["hi", "退款"]);
    ensure!(shortcuts(&boss.call("chat.canned.list", json!({})).await?) == ["hi", "退款"]);
    let found = anna.call("chat.canned.list", json!({"query": "/退"})).await?;
    ensure!(shortcuts(&found) == ["退款"], "{found}");
    let first = anna.call("chat.canned.list", json!({"limit": 2})).await?;
    let rest = json!({"limit": 2, "cursor": first["nextCursor"]});
    let rest = anna.call("chat.canned.list", rest).await?;
    ensure!(shortcuts(&rest) == ["退款"] && rest["nextCursor"].is_null(), "{rest}");

    let mut changed = reply("hey", "Hello", "mine");
    changed["id"] = own["item"]["id"].clone();
    let changed = anna.call("chat.canned.put", changed).await?;
    ensure!(changed["item"]["id"] == own["item"]["id"], "{changed}");
    ensure!(anna.call("chat.canned.put", reply("hey", "Hello", "mine")).await? == changed);

    let mut foreign = reply("x", "x", "mine");
    foreign["id"] = changed["item"]["id"].clone();
    let id = json!({"id": changed["item"]["id"]});
    let of_anna = [
        ("chat.canned.put", reply("hey", "other", "mine"), "conflict"),
        ("chat.canned.put", reply("x", "x", "team"), "forbidden"),
        ("chat.canned.put", reply("/x", "x", "mine"), "bad_request"),
        ("chat.canned.delete", json!({"id": team["item"]["id"]}), "not_found"),
    ];
    let of_bert = [
        ("chat.canned.put", foreign, "not_found"),
        ("chat.canned.delete", id.clone(), "not_found"),
    ];
    let of_boss = [
        ("chat.canned.put", reply("x", "x", "mine"), "forbidden"),
        ("chat.canned.delete", id.clone(), "not_found"),
    ];
    let of_user = [
        ("chat.canned.list", json!({}), "forbidden"),
        ("chat.canned.put", reply("x", "x", "mine"), "forbidden"),
        ("chat.canned.delete", id.clone(), "forbidden"),
    ];
    refused(&mut anna, of_anna).await?;
    refused(&mut bert, of_bert).await?;
    refused(&mut boss, of_boss).await?;
    refused(&mut user, of_user).await?;
    ensure!(anna.call("chat.canned.delete", id.clone()).await? == id);
    ensure!(anna.refused("chat.canned.delete", id).await?["code"] == "not_found");
    ensure!(shortcuts(&anna.call("chat.canned.list", json!({})).await?) == ["hi", "退款"]);
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn past_sessions_are_listed_and_found_by_what_was_said() -> Result<()> {
    let server = Server::start().await?;
    let (mut anna, _) = Client::agent(&server, "anna", 5).await?;
    let mut boss = supervisor(&server).await?;
    let mut sessions = Vec::new();
    for (n, words) in ["我要退款", "Where is my parcel?", "再见"].iter().enumerate() {
        let (mut user, connected) = Client::visitor(&server, "user").await?;
        let session = connected["sessionId"].as_str().unwrap_or_default().to_owned();
        anna.expect("chat.session.new").await?;
        user.say(&session, &format!("k{n}"), words).await?;
        if n < 2 {
            user.call("chat.session.end", json!({"sessionId": session})).await?;
        }
        sessions.insert(0, session);
    }
    let ids = |list: &Value| -> Vec<String> {
        let sessions = list["sessions"].as_array().into_iter().flatten();
        sessions.filter_map(|entry| entry["sessionId"].as_str()).map(str::to_owned).collect()
    };
    let of = json!({"scope": "visitor", "sessionId": sessions[2]});
    let list = anna.call("chat.sessions.list", of).await?;
    ensure!(ids(&list) == sessions && list["nextCursor"].is_null(), "{list}");
    let newest = &list["sessions"][0];
    ensure!(newest["lastMessage"]["content"] == "再见" && newest["status"] == "active");
    ensure!(newest["userInfo"]["userId"] == "user" && newest["unreadCount"] == 1, "{newest}");
    let page = anna.call("chat.sessions.list", json!({"scope": "mine", "limit": 2})).await?;
    ensure!(ids(&page) == sessions[..2], "{page}");
    let rest = json!({"scope": "mine", "limit": 2, "cursor": page["nextCursor"]});
    ensure!(ids(&anna.call("chat.sessions.list", rest).await?) == sessions[2..]);

    for (scope, query, expected) in [
        ("mine", "退款", &sessions[2]),
        ("all", "parc", &sessions[1]),
        ("all", "我要", &sessions[2]),
    ] {
        let asked = json!({"scope": scope, "query": query});
        until(query, async || {
            let found = boss.call("chat.sessions.list", asked.clone()).await?;
            let mine = anna.call("chat.sessions.list", json!({"scope": "mine", "query": query}));
            let mine = mine.await?;
            let by_scope = if scope == "all" { ids(&found) } else { ids(&mine) };
            Ok(by_scope == [expected.clone()])
        })
        .await?;
    }
    let (mut user, _) = Client::visitor(&server, "other").await?;
    let (mut bert, _) = Client::connect(&server, json!({"token": server.agent("bert")})).await?;
    let none = bert.call("chat.sessions.list", json!({"scope": "mine", "query": "退款"})).await?;
    ensure!(ids(&none).is_empty(), "A3: {none}");
    let visitor = |session: &str| json!({"scope": "visitor", "sessionId": session});
    refused(
        &mut bert,
        [
            ("chat.sessions.list", json!({"scope": "all"}), "forbidden"),
            ("chat.sessions.list", visitor(&sessions[0]), "not_found"),
            ("chat.sessions.list", visitor("1"), "not_found"),
            ("chat.sessions.list", json!({"scope": "mine", "query": "?"}), "bad_request"),
        ],
    )
    .await?;
    refused(
        &mut user,
        [
            ("chat.sessions.list", json!({"scope": "mine"}), "forbidden"),
            ("chat.sessions.list", visitor(&sessions[0]), "forbidden"),
        ],
    )
    .await
}

/// Why a session went where it went, in the words of the table.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_supervisor_sees_why_a_visitor_waited() -> Result<()> {
    let server = Server::start().await?;
    let (mut user, connected) = Client::visitor(&server, "user").await?;
    let of = json!({"sessionId": connected["sessionId"]});
    let mut boss = supervisor(&server).await?;
    let waits = boss.call("chat.assignment.explain", of.clone()).await?;
    ensure!(waits["records"] == json!([]), "nothing was decided yet: {waits}");
    let (mut anna, _) = Client::agent(&server, "anna", 1).await?;
    anna.expect("chat.session.new").await?;
    user.call("chat.session.end", of.clone()).await?;
    let explained = boss.call("chat.assignment.explain", of.clone()).await?;
    let records = &explained["records"];
    ensure!(records.as_array().map(Vec::len) == Some(2), "{explained}");
    let (assigned, ended) = (&records[0], &records[1]);
    ensure!(assigned["result"] == "assigned" && assigned["reason"] == "drain", "{assigned}");
    ensure!(assigned["adminId"] == "anna" && assigned["fromAdminId"].is_null(), "{assigned}");
    let considered = json!([{"adminId": "anna", "activeSessions": 0, "maxSessions": 1}]);
    ensure!(assigned["candidates"] == considered && assigned["rule"] == "least_load");
    ensure!(assigned["actor"] == json!({"type": "system", "id": null}), "{assigned}");
    ensure!(ended["actor"] == json!({"type": "user", "id": "user"}), "{ended}");
    refused(&mut boss, [("chat.assignment.explain", json!({"sessionId": "1"}), "not_found")])
        .await?;
    refused(&mut anna, [("chat.assignment.explain", of.clone(), "forbidden")]).await?;
    refused(&mut user, [("chat.assignment.explain", of, "forbidden")]).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_visitors_page_is_shown_to_the_agent() -> Result<()> {
    let server = Server::start().await?;
    let (mut user, connected) = Client::visitor(&server, "user").await?;
    let page = json!({"url": "https://shop.test/a?b=c#d", "title": "商品", "language": "zh-CN"});
    user.send("chat.page", page.clone()).await?;
    let (mut anna, _) = Client::agent(&server, "anna", 1).await?;
    anna.expect("chat.session.new").await?;
    anna.expect_none("chat.page").await?;
    user.send("chat.page", page).await?;
    let shown = anna.expect("chat.page").await?;
    ensure!(shown["sessionId"] == connected["sessionId"] && shown["title"] == "商品", "{shown}");
    ensure!(shown["url"] == "https://shop.test/a?b=c#d" && shown["language"] == "zh-CN");
    user.send("chat.page", json!({"url": "http://shop.test"})).await?;
    ensure!(anna.expect("chat.page").await?["title"] == "");
    for bad in [
        json!({}),
        json!({"url": "javascript:alert(1)"}),
        json!({"url": "https://"}),
        json!({"url": "ftp://shop.test"}),
        json!({"url": format!("https://{}", "x".repeat(1_024))}),
        json!({"url": "https://shop.test/\n"}),
        json!({"url": "https://shop.test", "title": "x".repeat(257)}),
        json!({"url": "https://shop.test", "language": "x".repeat(36)}),
        json!({"url": 7}),
    ] {
        refused(&mut user, [("chat.page", bad, "bad_request")]).await?;
    }
    refused(&mut anna, [("chat.page", json!({"url": "https://shop.test"}), "forbidden")]).await?;
    user.call("chat.session.end", json!({"sessionId": connected["sessionId"]})).await?;
    let page = json!({"url": "https://shop.test"});
    refused(&mut user, [("chat.page", page, "not_found")]).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_supervisor_watches_and_looks_at_the_board() -> Result<()> {
    let server = Server::start().await?;
    let mut boss = supervisor(&server).await?;
    let board = boss.call("chat.board", json!({})).await?;
    ensure!(board["waiting"] == 0 && board["longestWaitMs"] == 0, "{board}");
    ensure!(board["arrivalsPerMinute"].as_array().map(Vec::len) == Some(60), "{board}");
    ensure!(board["firstResponseMs"] == json!({"p50": null, "p90": null}), "{board}");
    let (mut anna, _) = Client::agent(&server, "anna", 3).await?;
    let (mut user, connected) = Client::visitor(&server, "user").await?;
    let of = json!({"sessionId": connected["sessionId"]});
    let session = connected["sessionId"].as_str().unwrap_or_default();
    anna.expect("chat.session.new").await?;
    let watched = boss.call("chat.session.watch", of.clone()).await?;
    ensure!(watched["session"]["status"] == "active", "{watched}");
    ensure!(watched["session"]["userInfo"]["userId"] == "user", "{watched}");

    user.say(session, "q", "hello").await?;
    let question = boss.expect("chat.message.new").await?;
    ensure!(question["senderType"] == "user" && question.get("clientMsgId").is_none());
    anna.send("chat.typing", json!({"sessionId": session, "isTyping": true})).await?;
    let typing = boss.expect("chat.typing").await?;
    ensure!(typing["senderType"] == "agent" && typing["isTyping"] == true, "{typing}");
    anna.say(session, "a", "good day").await?;
    ensure!(boss.expect("chat.message.new").await?["senderType"] == "agent");
    refused(
        &mut boss,
        [
            (
                "chat.message.send",
                json!({
                    "sessionId": session, "msgType": "text", "content": "x", "clientMsgId": "k"
                }),
                "forbidden",
            ),
            ("chat.message.ack", json!({"msgId": question["msgId"]}), "forbidden"),
            ("chat.session.watch", json!({"sessionId": "1"}), "not_found"),
        ],
    )
    .await?;
    let busy = boss
        .expect_where("chat.board", |p| {
            p["agents"][0]["activeSessions"] == 1 && p["firstResponseMs"]["p50"].is_u64()
        })
        .await?;
    ensure!(busy["agents"][0]["adminId"] == "anna" && busy["waiting"] == 0, "{busy}");
    ensure!(busy["arrivalsPerMinute"].as_array().is_some_and(|m| m.contains(&json!(1))));

    ensure!(boss.call("chat.session.unwatch", of.clone()).await? == of);
    user.say(session, "q2", "still there?").await?;
    anna.expect_where("chat.message.new", |p| p["seq"] == 3).await?;
    boss.expect_none("chat.message.new").await?;
    boss.call("chat.session.watch", of.clone()).await?;
    user.call("chat.session.end", of.clone()).await?;
    ensure!(boss.expect("chat.session.ended").await?["sessionId"] == session);
    ensure!(boss.call("chat.session.watch", of.clone()).await?["session"]["status"] == "ended");
    boss.call("chat.board", json!({"subscribe": false})).await?;
    for client in [&mut anna, &mut user] {
        refused(
            client,
            [
                ("chat.session.watch", of.clone(), "forbidden"),
                ("chat.session.unwatch", of.clone(), "forbidden"),
                ("chat.board", json!({}), "forbidden"),
            ],
        )
        .await?;
    }
    refused(&mut boss, [("chat.board", json!({"subscribe": "no"}), "bad_request")]).await
}
