//! `AssignmentStore`: what one transaction promises.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use kefu_assignment::{Candidate, Change, DecisionRecord, Outcome, Rule, Scope, Snapshot, Verdict};
use kefu_core::{Actor, AdminId, IdSource, SessionId, StoreFault};
use kefu_events::{Envelope, Event, RequeueReason};
use kefu_presence::Agent;
use kefu_session::{Refusal, Session, Status};
use rand::RngExt;

use crate::build::{self, admin, agent_row};
use crate::{Harness, World, race, seeded};

/// The snapshot holds the scope's rows that exist, and of their records the newest.
pub async fn the_snapshot_is_the_scope<H: Harness>() {
    let (_harness, world) = World::start::<H>().await;
    let a1 = world.agent("a1", 5).await;
    let a2 = world.agent("a2", 5).await;
    let moved = world.open("u1", 0).await;
    let fresh = world.open("u2", 0).await;
    world.open("u3", 0).await;
    world.claim(&a1, moved.id).await.unwrap();
    world.transfer(&build::agent_caller(&a1), moved.id, &a2).await.unwrap();
    let unknown = SessionId::new(9).unwrap();
    let scope = Scope::new([a2.clone(), admin("nobody")], [moved.id, fresh.id, unknown]);
    let seen = look(&world, &scope).await;
    let records = world.stores.assignments.list_records(moved.id).await.unwrap();
    let expected = Snapshot {
        agents: [(a2.clone(), world.agent_row(&a2).await)].into(),
        sessions: [(moved.id, world.session(moved.id).await), (fresh.id, fresh)].into(),
        latest: [(moved.id, records.last().unwrap().clone())].into(),
    };
    assert_eq!(seen, expected);
    assert_eq!(records.len(), 2);
}

/// Agents (new and old), sessions, records and events are written together, as they are.
pub async fn an_apply_writes_everything<H: Harness>() {
    let (mut harness, world) = World::start::<H>().await;
    let session = world.open("u1", 0).await;
    let change = assignment(&world, &session, &agent_row("a1", 3));
    let verdict = world.apply(&change).await.unwrap();
    assert_eq!(verdict, Verdict::Apply(change.clone()));
    assert_written(&world, &change).await;
    let world = world.restarted(&mut harness).await;
    assert_written(&world, &change).await;
}

/// An existing agent's row is replaced whole.
pub async fn an_apply_replaces_rows<H: Harness>() {
    let (_harness, world) = World::start::<H>().await;
    world.agent("a1", 3).await;
    let row = Agent { live_gen: 9, ..agent_row("a1", 7).vanished(world.context().now).offline() };
    world.put_agents(std::slice::from_ref(&row)).await;
    assert_eq!(world.agent_row(&row.info.admin_id).await, row);
}

/// `Refuse` and `Stale` are handed back and write nothing; an empty `Apply` writes nothing either.
pub async fn other_verdicts_write_nothing<H: Harness>() {
    let (_harness, world) = World::start::<H>().await;
    let a1 = world.agent("a1", 3).await;
    let session = world.open("u1", 0).await;
    let agent = world.agent_row(&a1).await;
    let before = world.outbox().await;
    let scope = Scope::new([a1.clone()], [session.id]);
    for verdict in [
        Verdict::Refuse(Refusal::Conflict),
        Verdict::Refuse(Refusal::BadRequest("for a reason")),
        Verdict::Stale,
        Verdict::Apply(Change::default()),
    ] {
        let answer = world.transact(&scope, &|_, _| verdict.clone()).await.unwrap();
        assert_eq!(answer, verdict);
    }
    assert_eq!(world.agent_row(&a1).await, agent);
    assert_eq!(world.session(session.id).await, session);
    assert_eq!(world.outbox().await, before);
    assert_eq!(world.stores.assignments.list_records(session.id).await.unwrap(), []);
}

/// Every kind of record comes back as it was written, by id.
pub async fn records_survive_and_are_listed_by_id<H: Harness>() {
    let (_harness, world) = World::start::<H>().await;
    let session = world.open("u1", 0).await;
    let outcomes = [
        (Rule::LeastLoad, Outcome::Assigned),
        (Rule::Claim, Outcome::Claimed),
        (Rule::Named, Outcome::Transferred),
        (Rule::None, Outcome::Requeued(RequeueReason::AgentGone)),
        (Rule::None, Outcome::Requeued(RequeueReason::AgentOffline)),
        (Rule::None, Outcome::Ended),
    ];
    let actors = [
        Actor::System,
        Actor::Agent(admin("a1")),
        Actor::Supervisor(admin("s.1")),
        Actor::System,
        Actor::Agent(admin("a1")),
        Actor::User(session.user.user_id.clone()),
    ];
    let mut records: Vec<_> = outcomes
        .into_iter()
        .zip(actors)
        .map(|((rule, outcome), actor)| rich_record(&world, session.id, rule, outcome, actor))
        .collect();
    records[0].candidates.clear();
    records[0].note = None;
    records[5].admin_id = None;
    records[5].from = None;
    let shuffled = records.iter().rev().cloned().collect();
    world.apply(&Change { records: shuffled, ..Change::default() }).await.unwrap();
    let listed = world.stores.assignments.list_records(session.id).await.unwrap();
    assert_eq!(listed, records);
    let unknown = SessionId::new(9).unwrap();
    assert_eq!(world.stores.assignments.list_records(unknown).await.unwrap(), []);
    let seen = look(&world, &Scope::new([], [session.id])).await;
    assert_eq!(seen.latest.get(&session.id), records.last());
}

/// One bad row, and nothing of the change is written; the fault says that it never will be.
pub async fn a_poisoned_change_writes_nothing<H: Harness>() {
    let (_harness, world) = World::start::<H>().await;
    let session = world.open("u1", 0).await;
    let stored = build::record(world.ids.as_ref(), session.id, None, world.context().now);
    world.apply(&Change { records: vec![stored.clone()], ..Change::default() }).await.unwrap();
    let before = world.outbox().await;

    let sound = assignment(&world, &session, &agent_row("a1", 3));
    let given = &sound.sessions[0];
    let spoil = |spoilt: Session| Change { sessions: vec![spoilt], ..sound.clone() };
    let poisoned = [
        ("a record id given twice", Change { records: vec![stored], ..sound.clone() }),
        ("waiting with an owner", spoil(Session { status: Status::Waiting, ..given.clone() })),
        ("active without an owner", spoil(Session { admin_id: None, ..given.clone() })),
        ("an event id given twice", Change { events: before.clone(), ..sound.clone() }),
    ];
    for (what, change) in poisoned {
        let answer = world.apply(&change).await;
        assert!(matches!(answer, Err(StoreFault::Internal { .. })), "{what}: {answer:?}");
        assert_eq!(world.session(session.id).await, session, "{what}");
        assert_eq!(world.stores.agents.find(&admin("a1")).await.unwrap(), None, "{what}");
        assert_eq!(world.outbox().await, before, "{what}");
        let records = world.stores.assignments.list_records(session.id).await.unwrap();
        assert_eq!(records.len(), 1, "{what}");
    }
    world.apply(&sound).await.unwrap();
    assert_eq!(&world.session(session.id).await, given);
}

/// Transactions over one row follow one another: a hundred increments are a hundred.
pub async fn transactions_over_one_row_follow_one_another<H: Harness>() {
    let (_harness, world) = World::start::<H>().await;
    let row = agent_row("a1", 3);
    world.put_agents(std::slice::from_ref(&row)).await;
    race(100, |_| {
        let world = world.clone();
        async move { raise_generations(&world, &Scope::new([admin("a1")], [])).await }
    })
    .await;
    assert_eq!(world.agent_row(&admin("a1")).await.live_gen, row.live_gen + 100);
}

/// Agents created by a first transaction are seen by the next, not created twice.
pub async fn an_unknown_agent_is_created_once<H: Harness>() {
    let (_harness, world) = World::start::<H>().await;
    race(50, |_| {
        let world = world.clone();
        async move {
            let create = |snapshot: &Snapshot, _: &dyn IdSource| {
                let known = snapshot.agents.get(&admin("a1")).cloned();
                let mut row = known.unwrap_or_else(|| agent_row("a1", 3));
                row.live_gen += 1;
                Verdict::Apply(Change { agents: vec![row], ..Change::default() })
            };
            world.transact(&Scope::new([admin("a1")], []), &create).await.unwrap();
        }
    })
    .await;
    assert_eq!(world.agent_row(&admin("a1")).await.live_gen, agent_row("a1", 3).live_gen + 50);
}

/// Overlapping scopes in any order neither deadlock nor lose an update.
pub async fn overlapping_scopes_do_not_deadlock<H: Harness>() {
    let (_harness, world) = World::start::<H>().await;
    let mut random = seeded("overlapping_scopes_do_not_deadlock");
    let rows: Vec<_> = (0..6).map(|n| agent_row(&format!("a{n}"), 3)).collect();
    world.put_agents(&rows).await;
    let mut sessions = Vec::new();
    for n in 0..6 {
        sessions.push(world.open(&format!("u{n}"), 0).await.id);
    }
    let scopes: Vec<_> = (0..60).map(|_| random_scope(&rows, &sessions, &mut random)).collect();
    race(scopes.len(), |n| {
        let (world, scope) = (world.clone(), scopes[n].clone());
        async move { raise_generations(&world, &scope).await }
    })
    .await;
    for row in &rows {
        let id = &row.info.admin_id;
        let expected = scopes.iter().filter(|scope| scope.agents.contains(id)).count() as i64;
        assert_eq!(world.agent_row(id).await.live_gen, row.live_gen + expected);
    }
    for id in sessions {
        let expected = scopes.iter().filter(|scope| scope.sessions.contains(&id)).count() as i64;
        assert_eq!(world.session(id).await.version, 1 + expected);
    }
}

/// A decision may run more than once; only what the returned verdict lists is written.
pub async fn only_the_returned_verdict_is_written<H: Harness>() {
    let (_harness, world) = World::start::<H>().await;
    let session = world.open("u1", 0).await;
    world.put_agents(&[agent_row("a1", 3)]).await;
    let decided = Arc::new(Mutex::new(BTreeSet::new()));
    let returned = race(30, |_| {
        let (world, decided) = (world.clone(), Arc::clone(&decided));
        async move {
            let now = world.context().now;
            let decide = |snapshot: &Snapshot, ids: &dyn IdSource| {
                ids.next_after(0);
                let record = build::record(ids, session.id, None, now);
                decided.lock().unwrap().insert(record.id);
                let mut row = snapshot.agents.values().next().unwrap().clone();
                row.live_gen += 1;
                let (agents, records) = (vec![row], vec![record]);
                Verdict::Apply(Change { agents, records, ..Change::default() })
            };
            let scope = Scope::new([admin("a1")], [session.id]);
            match world.transact(&scope, &decide).await.unwrap() {
                Verdict::Apply(change) => change.records[0].id,
                other => panic!("{other:?}"),
            }
        }
    })
    .await;
    let returned: BTreeSet<_> = returned.into_iter().collect();
    let listed = world.stores.assignments.list_records(session.id).await.unwrap();
    assert_eq!(listed.iter().map(|record| record.id).collect::<BTreeSet<_>>(), returned);
    assert!(decided.lock().unwrap().is_superset(&returned));
}

/// Sixty-four pairs, the size of a full pass, fit one transaction.
pub async fn a_full_pass_fits_one_transaction<H: Harness>() {
    let (_harness, world) = World::start::<H>().await;
    let mut change = Change::default();
    for n in 0..64 {
        let session = world.open(&format!("u{n}"), 0).await;
        let one = assignment(&world, &session, &agent_row(&format!("a{n}"), 1));
        change.agents.extend(one.agents);
        change.sessions.extend(one.sessions);
        change.records.extend(one.records);
        change.events.extend(one.events);
    }
    world.apply(&change).await.unwrap();
    assert_written(&world, &change).await;
    assert_eq!(world.stores.line.front(1).await.unwrap().total, 0);
}

async fn look(world: &World, scope: &Scope) -> Snapshot {
    let seen = Mutex::new(Snapshot::default());
    let decide = |snapshot: &Snapshot, _: &dyn IdSource| {
        snapshot.clone_into(&mut seen.lock().unwrap());
        Verdict::Stale
    };
    world.transact(scope, &decide).await.unwrap();
    seen.into_inner().unwrap()
}

/// A change that gives `session` to `agent`, with record and event.
fn assignment(world: &World, session: &Session, agent: &Agent) -> Change {
    let context = world.context();
    let owner = &agent.info.admin_id;
    let record = build::record(world.ids.as_ref(), session.id, Some(owner), context.now);
    let given = session.assigned(owner, context.now).unwrap();
    let event = Event::SessionAssigned {
        session_id: given.id,
        user_id: given.user.user_id.clone(),
        admin_id: owner.clone(),
        from: None,
        how: kefu_events::How::Drain,
        actor: Actor::System,
        version: given.version,
    };
    Change {
        agents: vec![agent.loaded(record.id)],
        sessions: vec![given],
        records: vec![record],
        events: vec![Envelope::new(event, &context, world.ids.as_ref())],
    }
}

async fn assert_written(world: &World, change: &Change) {
    for agent in &change.agents {
        assert_eq!(&world.agent_row(&agent.info.admin_id).await, agent);
    }
    for session in &change.sessions {
        assert_eq!(&world.session(session.id).await, session);
    }
    for record in &change.records {
        let listed = world.stores.assignments.list_records(record.session_id).await.unwrap();
        assert_eq!(listed, std::slice::from_ref(record));
    }
    let outbox = world.outbox().await;
    for event in &change.events {
        assert_eq!(outbox.iter().filter(|row| *row == event).count(), 1, "{event:?}");
    }
}

/// Adds one to something of every row of the scope, from what the snapshot shows.
async fn raise_generations(world: &World, scope: &Scope) {
    let decide = |snapshot: &Snapshot, _: &dyn IdSource| {
        let raise_agent = |agent: &Agent| Agent { live_gen: agent.live_gen + 1, ..agent.clone() };
        let raise = |row: &Session| Session { version: row.version + 1, ..row.clone() };
        Verdict::Apply(Change {
            agents: snapshot.agents.values().map(raise_agent).collect(),
            sessions: snapshot.sessions.values().map(raise).collect(),
            ..Change::default()
        })
    };
    world.transact(scope, &decide).await.unwrap();
}

fn random_scope(rows: &[Agent], sessions: &[SessionId], random: &mut rand::rngs::StdRng) -> Scope {
    let admins: Vec<AdminId> = rows
        .iter()
        .filter(|_| random.random_bool(0.5))
        .map(|row| row.info.admin_id.clone())
        .collect();
    let sessions: Vec<_> = sessions.iter().copied().filter(|_| random.random_bool(0.5)).collect();
    Scope::new(admins, sessions)
}

fn rich_record(
    world: &World,
    session: SessionId,
    rule: Rule,
    outcome: Outcome,
    actor: Actor,
) -> DecisionRecord {
    let candidate = |id: &str, load| Candidate { admin_id: admin(id), load, max_sessions: 10 };
    DecisionRecord {
        from: Some(admin("a9")),
        candidates: vec![candidate("z", 3), candidate("a", 0)],
        rule,
        outcome,
        actor,
        note: Some("请看 😀\n\"quoted\"".into()),
        ..build::record(world.ids.as_ref(), session, Some(&admin("z")), world.context().now)
    }
}
