//! The drain pass: the plan from unlocked reads and the re-check under lock (Z1–Z3, 2.3, 2.6).

use std::collections::BTreeMap;

use kefu_assignment::{
    Change, DecisionRecord, Outcome, Pair, Rule, Snapshot, Verdict, choose, decide_pass, plan_pass,
    scope_of,
};
use kefu_core::{Actor, AdminId, AssignmentId, Clock, ManualClock, ManualIds, SessionId};
use kefu_events::{Event, EventContext, How};
use kefu_presence::Agent;
use kefu_session::{OpenVerdict, Session, Status, decide_open};
use kefu_testkit::build::{admin, agent_info, agent_row, node, trace, user};

fn context() -> EventContext {
    EventContext { now: ManualClock::default().now(), source: node(), trace_id: trace() }
}

fn heads(count: usize) -> Vec<Session> {
    let ids = ManualIds::default();
    (0..count)
        .map(|n| match decide_open(None, &user(&format!("u{n}"), 0), "web", 0, &context(), &ids) {
            OpenVerdict::Insert(session, _) => session,
            verdict => panic!("not opened: {verdict:?}"),
        })
        .collect()
}

fn with_load(id: &str, load: u32, last: Option<i64>) -> Agent {
    let last_assigned = last.map(|raw| AssignmentId::new(raw).expect("positive"));
    Agent { active_sessions: load, last_assigned, ..agent_row(id, 10) }
}

fn chosen(pairs: &[Pair]) -> Vec<&str> {
    pairs.iter().map(|pair| pair.agent.as_str()).collect()
}

fn snapshot(sessions: &[Session], agents: &[Agent]) -> Snapshot {
    Snapshot {
        agents: agents.iter().map(|a| (a.info.admin_id.clone(), a.clone())).collect(),
        sessions: sessions.iter().map(|s| (s.id, s.clone())).collect(),
        latest: BTreeMap::new(),
    }
}

fn decide(snapshot: &Snapshot, pairs: &[Pair]) -> Change {
    match decide_pass(snapshot, pairs, &context(), &ManualIds::default()) {
        Verdict::Apply(change) => change,
        verdict => panic!("not applied: {verdict:?}"),
    }
}

#[test]
fn the_least_loaded_wins_then_the_longest_unassigned_then_the_id() {
    let pick = |agents: &[Agent]| choose(agents).map(|a| a.info.admin_id.to_string());
    let two = [with_load("a", 2, None), with_load("b", 1, Some(900))];
    assert_eq!(pick(&two).as_deref(), Some("b"), "load before all else");
    let tie = [with_load("a", 1, Some(7)), with_load("b", 1, Some(3))];
    assert_eq!(pick(&tie).as_deref(), Some("b"), "unassigned longest");
    let never = [with_load("a", 1, Some(3)), with_load("b", 1, None)];
    assert_eq!(pick(&never).as_deref(), Some("b"), "never assigned counts as longest");
    let equal = [with_load("b", 1, Some(3)), with_load("a", 1, Some(3))];
    assert_eq!(pick(&equal).as_deref(), Some("a"), "by id");
}

#[test]
fn offline_gone_and_full_agents_are_never_chosen() {
    let offline = agent_row("a", 10).offline();
    let gone = agent_row("b", 10).vanished(context().now);
    let full = with_load("c", 10, None);
    assert_eq!(plan_pass(&heads(3), &[offline, gone, full]), []);
}

#[test]
fn ten_agents_and_a_hundred_users_make_exactly_ten_each() {
    let agents: Vec<_> = (0..10).map(|n| agent_row(&format!("a{n}"), 10)).collect();
    let pairs = plan_pass(&heads(101), &agents);
    let mut loads: BTreeMap<&AdminId, u32> = BTreeMap::new();
    for pair in &pairs {
        *loads.entry(&pair.agent).or_default() += 1;
    }
    assert_eq!(pairs.len(), 100, "the 101st waits (CC-03)");
    assert!(loads.len() == 10 && loads.values().all(|load| *load == 10), "2.6: {loads:?}");
}

#[test]
fn a_plan_counts_what_it_gives_away_itself() {
    let agents = [with_load("a", 0, Some(5)), with_load("b", 0, Some(4)), with_load("c", 1, None)];
    let pairs = plan_pass(&heads(6), &agents);
    // b then a level up with c; then the longest unassigned each time.
    assert_eq!(chosen(&pairs), ["b", "a", "c", "b", "a", "c"]);
    assert_eq!(pairs[2].candidates.iter().map(|c| c.load).collect::<Vec<_>>(), [1, 1, 1]);
}

#[test]
fn the_heads_keep_their_order_and_the_plan_stops_when_nobody_has_room() {
    let sessions = heads(5);
    let agents = [agent_row("a", 1), agent_row("b", 2)];
    let pairs = plan_pass(&sessions, &agents);
    let served: Vec<_> = pairs.iter().map(|pair| pair.session).collect();
    let first: Vec<_> = sessions.iter().take(3).map(|session| session.id).collect();
    assert_eq!(served, first, "Q1: nobody is passed over");
}

#[test]
fn only_chosen_agents_are_locked() {
    let agents = [with_load("a", 0, None), with_load("b", 5, None), with_load("c", 9, None)];
    let scope = scope_of(&plan_pass(&heads(2), &agents));
    assert_eq!(scope.agents.into_iter().collect::<Vec<_>>(), [admin("a")], "Z3");
    assert_eq!(scope.sessions.len(), 2);
}

#[test]
fn a_pair_that_holds_is_written_with_its_record_and_event() {
    let (sessions, agents) = (heads(1), [agent_row("a", 1)]);
    let pairs = plan_pass(&sessions, &agents);
    let change = decide(&snapshot(&sessions, &agents), &pairs);

    let [session] = &change.sessions[..] else { panic!("one session: {change:?}") };
    assert!(session.is_owned_by(&admin("a")));
    let [agent] = &change.agents[..] else { panic!("one agent: {change:?}") };
    let [record] = &change.records[..] else { panic!("one record: {change:?}") };
    assert_eq!((agent.active_sessions, agent.last_assigned), (1, Some(record.id)));
    assert_eq!((record.rule, record.outcome), (Rule::LeastLoad, Outcome::Assigned));
    assert_eq!((&record.actor, &record.from), (&Actor::System, &None));
    assert_eq!(record.candidates, pairs[0].candidates);
    let [event] = &change.events[..] else { panic!("one event: {change:?}") };
    let expected = Event::SessionAssigned {
        session_id: session.id,
        user_id: session.user.user_id.clone(),
        admin_id: admin("a"),
        from: None,
        how: How::Drain,
        actor: Actor::System,
        version: session.version,
    };
    assert_eq!(event.event, expected);
}

/// One pair planned over `sessions[0]` and agent `a`, decided on what is there by then.
fn decided_later(sessions: &[Session], agents: &[Agent]) -> Change {
    let pairs = plan_pass(&heads(1), &[agent_row("a", 1)]);
    decide(&snapshot(sessions, agents), &pairs)
}

#[test]
fn an_agent_who_went_offline_between_choice_and_write_leaves_the_session_waiting() {
    let change = decided_later(&heads(1), &[agent_row("a", 1).offline()]);
    assert_eq!(change, Change::default(), "2.3: nothing is written, admin_id stays NULL");
}

#[test]
fn a_gone_agent_a_new_life_and_a_full_one_change_nothing() {
    let gone = agent_row("a", 1).vanished(context().now);
    let reborn = gone.connected(&agent_info("a"));
    let full = Agent { active_sessions: 1, ..agent_row("a", 1) };
    assert_eq!(decided_later(&heads(1), std::slice::from_ref(&gone)), Change::default());
    assert!(reborn.is_eligible(), "only the generation differs");
    assert_eq!(decided_later(&heads(1), &[reborn]), Change::default(), "Z2: live_gen");
    assert_eq!(decided_later(&heads(1), &[full]), Change::default());
    assert_eq!(decided_later(&heads(1), &[]), Change::default(), "no such agent");
}

#[test]
fn a_session_that_is_gone_taken_or_over_changes_nothing() {
    let agents = [agent_row("a", 1)];
    let taken = heads(1)[0].assigned(&admin("b"), context().now).expect("waits");
    let over = heads(1)[0].ended(&Actor::System, context().now).expect("open");
    for sessions in [vec![], vec![taken], vec![over]] {
        assert_eq!(decided_later(&sessions, &agents), Change::default(), "{sessions:?}");
    }
}

#[test]
fn the_cap_is_re_checked_against_what_the_same_pass_gave() {
    // Planned with room for three; by now the agent has lowered the cap to two.
    let sessions = heads(3);
    let pairs = plan_pass(&sessions, &[agent_row("a", 3)]);
    let change = decide(&snapshot(&sessions, &[agent_row("a", 2)]), &pairs);
    assert_eq!(change.sessions.len(), 2, "CC-03");
    let [agent] = &change.agents[..] else { panic!("each agent once: {change:?}") };
    assert_eq!(agent.active_sessions, 2);
}

#[test]
fn nobody_behind_a_broken_pair_overtakes_it() {
    let sessions = heads(4);
    let agents = [agent_row("a", 2), agent_row("b", 2)];
    let pairs = plan_pass(&sessions, &agents);
    assert_eq!(chosen(&pairs), ["a", "b", "a", "b"]);
    let now = [agent_row("a", 2), agent_row("b", 2).offline()];
    let change = decide(&snapshot(&sessions, &now), &pairs);
    let given: Vec<SessionId> = change.sessions.iter().map(|s| s.id).collect();
    assert_eq!(given, [sessions[0].id], "Q1: the second stays in front of the third");
    assert!(change.sessions.iter().all(|s| s.status == Status::Active));
}

/// Another node's pass committed between this one's reading of the line and of the agents.
#[test]
fn a_plan_whose_heads_were_served_meanwhile_gives_nothing_to_whom_it_took_for_busier() {
    let sessions = heads(3);
    let agents = [with_load("a", 1, None), with_load("b", 1, None)];
    let pairs = plan_pass(&sessions, &agents);
    assert_eq!(chosen(&pairs), ["a", "b", "a"]);
    let given = |n: usize| sessions[n].assigned(&admin("c"), context().now).expect("waits");
    let now = [given(0), given(1), sessions[2].clone()];
    let change = decide(&snapshot(&now, &agents), &pairs);
    assert_eq!(change, Change::default(), "Z1: a has one, not the two it was planned with");
}

#[test]
fn a_record_is_above_what_another_node_recorded_of_the_session() {
    let (sessions, agents) = (heads(1), [agent_row("a", 1)]);
    let pairs = plan_pass(&sessions, &agents);
    let mut snapshot = snapshot(&sessions, &agents);
    let earlier = decide(&snapshot, &pairs).records[0].clone();
    let ahead = AssignmentId::new(1 << 60).expect("positive");
    snapshot.latest.insert(sessions[0].id, DecisionRecord { id: ahead, ..earlier });
    assert!(decide(&snapshot, &pairs).records[0].id > ahead, "T3");
}

#[test]
fn an_agent_who_became_busier_than_planned_is_left_to_the_next_plan() {
    let (heads, planned) = (heads(2), [with_load("a", 1, None), with_load("b", 3, None)]);
    let pairs = plan_pass(&heads, &planned);
    assert_eq!(chosen(&pairs), ["a", "a"]);
    let claimed = [with_load("a", 4, None), with_load("b", 3, None)];
    assert!(
        decide(&snapshot(&heads, &claimed), &pairs).sessions.is_empty(),
        "Z1: now b is less loaded"
    );
    let relieved = [with_load("a", 0, None), with_load("b", 3, None)];
    assert_eq!(decide(&snapshot(&heads, &relieved), &pairs).sessions.len(), 2, "still the least");
}
