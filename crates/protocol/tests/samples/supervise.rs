//! The frames that go to supervisors, and those about who reads and looks.

use std::time::Duration;

use kefu_assignment::{Candidate, DecisionRecord, Outcome, Rule};
use kefu_console::{BOARD_MINUTES, BoardAgent, BoardFigures, Percentiles};
use kefu_core::{Actor, AssignmentId, Seq, Timestamp};
use kefu_protocol::{
    BoardFrame, Explanation, PageShown, ServerFrame, SessionRead, SessionRef, SessionWatch,
    session_object,
};
use serde_json::{Value, json};

use super::{NOW, active, admin, agent_info, session_id, user_info};

pub(super) fn supervise() -> Vec<(ServerFrame, Value)> {
    let session = active();
    let object = session_object(&session, Some(&agent_info()), None, true);
    let mut arrivals = [0; BOARD_MINUTES];
    arrivals[BOARD_MINUTES - 1] = 2;
    let figures = BoardFigures {
        time: Timestamp(NOW),
        waiting: 3,
        longest_wait: Duration::from_millis(1_500),
        agents: vec![BoardAgent {
            admin_id: admin("a1"),
            name: "Ann".into(),
            online: false,
            active_sessions: 1,
            max_sessions: 5,
        }],
        arrivals,
        first_response: Percentiles::of(vec![Duration::from_secs(2), Duration::from_secs(1)]),
    };
    let record = DecisionRecord {
        id: AssignmentId::new(9).expect("valid"),
        session_id: session_id(),
        admin_id: Some(admin("a2")),
        from: Some(admin("a1")),
        candidates: vec![Candidate { admin_id: admin("a2"), load: 1, max_sessions: 5 }],
        rule: Rule::Named,
        outcome: Outcome::Transferred,
        actor: Actor::Supervisor(admin("boss")),
        note: Some("VIP".into()),
        time: Timestamp(NOW),
    };
    let mut minutes = vec![0; BOARD_MINUTES];
    minutes[BOARD_MINUTES - 1] = 2;
    vec![
        (
            ServerFrame::SessionRead(SessionRead { session_id: session_id(), seq: Seq(3) }),
            json!({ "sessionId": "12", "seq": 3 }),
        ),
        (
            ServerFrame::SessionWatch(SessionWatch {
                session: object.for_agent(&session, 2, None),
            }),
            json!({ "session": {
                "sessionId": "12", "status": "active",
                "agentInfo": { "adminId": "a1", "name": "Ann" }, "lastSeq": 3,
                "agentsOnline": true, "startedAt": NOW, "userInfo": user_info(), "source": "web",
                "unreadCount": 2
            } }),
        ),
        (
            ServerFrame::SessionUnwatch(SessionRef { session_id: session_id() }),
            json!({ "sessionId": "12" }),
        ),
        (
            ServerFrame::Board(BoardFrame::from(&figures)),
            json!({
                "time": NOW, "waiting": 3, "longestWaitMs": 1_500, "agents": [{
                    "adminId": "a1", "name": "Ann", "status": "offline", "activeSessions": 1,
                    "maxSessions": 5
                }],
                "arrivalsPerMinute": minutes, "firstResponseMs": { "p50": 1_000, "p90": 2_000 }
            }),
        ),
        (
            ServerFrame::Explanation(Explanation::new(session_id(), &[record])),
            json!({ "sessionId": "12", "records": [{
                "id": "9", "time": NOW, "result": "transferred", "reason": "transfer",
                "rule": "named", "adminId": "a2", "fromAdminId": "a1",
                "actor": { "type": "supervisor", "id": "boss" },
                "candidates": [{ "adminId": "a2", "activeSessions": 1, "maxSessions": 5 }],
                "note": "VIP"
            }] }),
        ),
        (
            ServerFrame::Page(PageShown {
                session_id: session_id(),
                url: "https://a.b".into(),
                title: "商品".into(),
                language: String::new(),
                time: Timestamp(NOW),
            }),
            json!({
                "sessionId": "12", "url": "https://a.b", "title": "商品", "language": "", "time": NOW
            }),
        ),
    ]
}
