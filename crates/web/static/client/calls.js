// What calls and frames mean: the event of each call, and what frames change of their session.

/** Calls that are one frame and its answer. */
export const CALLS = {
  end: "session.end",
  rate: "session.rate",
  online: "agent.online",
  offline: "agent.offline",
  transfer: "session.transfer",
  claim: "session.claim",
  agents: "agent.list",
  queue: "queue.list",
  history: "history",
  addNote: "note.add",
  notes: "note.list",
  canned: "canned.list",
  putCanned: "canned.put",
  deleteCanned: "canned.delete",
  listSessions: "sessions.list",
  watch: "session.watch",
  unwatch: "session.unwatch",
  board: "board",
  explain: "assignment.explain",
};

/** What a frame changes of its session, besides what it says itself. @type {Record<string, object>} */
export const CHANGES = {
  "session.assigned": { status: "active", position: null },
  "session.requeued": { status: "waiting", agentInfo: null },
  "session.ended": { status: "ended", position: null },
  "session.rated": {},
  "queue.position": { agentsOnline: true },
};
