import { describe, expect, test } from "vitest";
import type { Message } from "../../src/protocol/message.ts";
import type { Run } from "../../src/protocol/run.ts";
import type {
  AgentEvidence,
  ClientEvidence,
  Evidence,
  FollowerEvidence,
  LineEvidence,
  ReceiverEvidence,
  SpaceEvidence,
} from "./evidence.ts";
import { judgeFollowers } from "./followers-verdict.ts";
import { slope } from "./memory.ts";
import { seededRandom } from "./random.ts";
import { recoveryTimes } from "./recovery.ts";
import { judge, type Verdict } from "./verdict.ts";

/** The judge of the kill test must find what it looks for: each fault is put into evidence that has none. */
const at = "2026-11-22T00:00:00.000Z";
const person = { id: "ent_P", name: "P", type: "human" } as const;
const robot = { id: "ent_A", name: "s0a0", type: "agent" } as const;

const message = (id: string, seq: number, more: Partial<Message>): Message => ({
  id,
  seq,
  spaceId: "spc_1",
  kind: "text",
  sender: person,
  createdAt: at,
  ...more,
});

const log: Message[] = [
  message("msg_1", 1, { text: "#s0-1 say s0a0" }),
  message("msg_2", 2, { text: "#s0-2 refund s0a0" }),
  message("msg_3", 3, { sender: robot, text: "done s0-1 said word0 " }),
  message("msg_4", 4, { sender: robot, text: "done s0-2 refunded word0 " }),
];

const refunded: Run["steps"][number]["toolCalls"][number] = {
  id: "call_1",
  name: "refund",
  input: { order: "s0-2" },
  output: { refunded: "s0-2" },
  status: "complete",
};

const runOf = (toolCalls: Run["steps"][number]["toolCalls"], eventCount: number): Run => ({
  id: "run_1",
  agentId: robot.id,
  status: "completed",
  trigger: { type: "space_message", eventId: "evt_1", eventCount },
  roots: [],
  steps: [
    { index: 0, text: "", toolCalls, usage: { inputTokens: 1, outputTokens: 1, estimated: false }, durationMs: 1 },
  ],
  startedAt: at,
});

const client: ClientEvidence = {
  sent: [
    { text: "#s0-1 say s0a0", at: 0, acknowledgedAt: 1 },
    { text: "#s0-2 refund s0a0", at: 0, acknowledgedAt: 1 },
  ],
  saw: ["msg_1", "msg_2", "msg_3", "msg_4"],
  shows: ["msg_1", "msg_2", "msg_3", "msg_4"],
  openStreams: 0,
  waiting: 0,
  wire: { doubled: 0, forgotten: 0, connections: 1 },
};

const agent: AgentEvidence = {
  id: robot.id,
  name: robot.name,
  continuity: "consciousness",
  state: "idle",
  runs: [runOf([refunded], 2)],
  inbox: [],
  read: [["msg_1", "msg_2"]],
};

const none: FollowerEvidence = { lines: [], receivers: [] };
const space: SpaceEvidence = { id: "spc_1", name: "s0", log, clients: [client], agents: [agent], notes: [] };
const sound: Evidence = {
  spaces: [space],
  payments: [{ tool: "refund", order: "s0-2", key: "call_1" }],
  signedOut: [401],
  unsealed: 0,
  followers: none,
};
/** A note that a visitor wrote, as it stands in the log and as it was meant. */
const noted = (more: Partial<Message>, isDeleted: boolean): Evidence => {
  const visitor = { id: "ent_V", name: "V", type: "human" } as const;
  const note = message("msg_5", 5, { sender: visitor, ...more });
  const seen = { ...client, saw: [...client.saw, note.id], shows: [...client.shows, note.id] };
  const read = { ...agent, read: [...agent.read, [note.id]], runs: [...agent.runs, runOf([], 1)] };
  const notes = [{ text: "a note", id: note.id, isDeleted }];
  return { ...sound, spaces: [{ ...space, log: [...log, note], clients: [seen], agents: [read], notes }] };
};

const withClient = (more: Partial<ClientEvidence>): Evidence => ({
  ...sound,
  spaces: [{ ...space, clients: [{ ...client, ...more }] }],
});
const withAgent = (more: Partial<AgentEvidence>): Evidence => ({
  ...sound,
  spaces: [{ ...space, agents: [{ ...agent, ...more }] }],
});
const withLog = (changed: Message[]): Evidence => {
  const ids = changed.map(({ id }) => id);
  return { ...sound, spaces: [{ ...space, log: changed, clients: [{ ...client, saw: ids, shows: ids }] }] };
};

const figures = ({ lost, doubled, stuck }: Verdict): string => {
  const is = (found: string[]): string => (found.length > 0 ? "yes" : "no");
  return `lost ${is(lost)}, doubled ${is(doubled)}, stuck ${is(stuck)}`;
};

const unknown: typeof refunded = { ...refunded, output: { error: { code: "outcome_unknown" } }, status: "error" };

test("what was kept is found to be kept", () => {
  const verdict = judge(sound);
  expect(figures(verdict)).toBe("lost no, doubled no, stuck no");
  expect(verdict.payments.refund).toEqual({ calls: 1, effects: 1, repeated: 0, unknown: 0, unknownPaid: 0 });
  expect(verdict.counts).toMatchObject({ messages: 4, events: 2, runs: 1, connections: 1 });
});

describe.each<[name: string, evidence: Evidence, figures: string]>([
  ["an acknowledged message that the log lost", withLog(log.slice(1)), "lost yes, doubled yes, stuck no"],
  [
    "a message that is stored twice",
    withLog([...log, message("msg_5", 5, { text: "#s0-1 say s0a0" })]),
    "lost yes, doubled yes, stuck no",
  ],
  [
    "an answer that is said twice",
    withLog([...log, message("msg_5", 5, { sender: robot, text: "done s0-1 said word0 " })]),
    "lost no, doubled yes, stuck no",
  ],
  ["an answer that never came", withLog(log.slice(0, 3)), "lost yes, doubled no, stuck no"],
  [
    "a gap at a client",
    withClient({ saw: ["msg_1", "msg_2", "msg_4"], shows: ["msg_1", "msg_2", "msg_4"] }),
    "lost yes, doubled no, stuck no",
  ],
  [
    "another order at a client",
    withClient({ saw: ["msg_2", "msg_1", "msg_3", "msg_4"] }),
    "lost yes, doubled no, stuck no",
  ],
  [
    "a message that a client saw twice",
    withClient({ saw: [...client.saw, "msg_4"] }),
    "lost yes, doubled yes, stuck no",
  ],
  [
    "an event that came again on a socket",
    withClient({ wire: { ...client.wire, doubled: 1 } }),
    "lost no, doubled yes, stuck no",
  ],
  ["an open stream", withClient({ openStreams: 1 }), "lost no, doubled no, stuck yes"],
  [
    "a message that nobody acknowledged",
    withClient({ sent: [...client.sent, { text: "#s0-3 say s0a0", at: 0 }], waiting: 1 }),
    "lost no, doubled no, stuck yes",
  ],
  [
    "an event that no run took",
    withAgent({ read: [["msg_1"]], runs: [runOf([refunded], 1)] }),
    "lost yes, doubled no, stuck no",
  ],
  [
    "an event that two runs took",
    withAgent({ read: [["msg_1", "msg_2"], ["msg_2"]], runs: [runOf([refunded], 2), runOf([], 1)] }),
    "lost no, doubled yes, stuck no",
  ],
  [
    "a run that never ended",
    withAgent({ runs: [{ ...runOf([refunded], 2), status: "running" }] }),
    "lost no, doubled no, stuck yes",
  ],
  [
    "a refund that was paid twice",
    { ...sound, payments: [...sound.payments, ...sound.payments] },
    "lost no, doubled yes, stuck no",
  ],
  [
    "an order that two calls paid",
    { ...sound, payments: [...sound.payments, { tool: "refund", order: "s0-2", key: "call_2" }] },
    "lost no, doubled yes, stuck no",
  ],
  ["a note that nobody deleted and is gone", noted({ deleted: { at } }, false), "lost yes, doubled no, stuck no"],
  ["a note that was deleted and is there", noted({ text: "a note" }, true), "lost yes, doubled no, stuck no"],
  ["a token that outlived its sign-out", { ...sound, signedOut: [200] }, "lost yes, doubled no, stuck no"],
  ["a secret that was not sent", { ...sound, unsealed: 1 }, "lost yes, doubled no, stuck no"],
  ["a refund that was told and not paid", { ...sound, payments: [] }, "lost yes, doubled no, stuck no"],
])("%s", (_, evidence, expected) => {
  test("is found", () => {
    expect(figures(judge(evidence))).toBe(expected);
  });
});

test("a call whose outcome is unknown may have paid or not, and is counted", () => {
  const cut = withAgent({ runs: [runOf([unknown], 2)] });
  expect(figures(judge(cut))).toBe("lost no, doubled no, stuck no");
  expect(judge(cut).payments.refund).toMatchObject({ effects: 1, unknown: 1, unknownPaid: 1 });
  expect(judge({ ...cut, payments: [] }).payments.refund).toMatchObject({ effects: 0, unknown: 1, unknownPaid: 0 });
});

test("requests of an idempotent tool under one key are one payment", () => {
  const credit = { tool: "credit", order: "s0-2", key: "call_1" } as const;
  const evidence = {
    ...withAgent({ runs: [runOf([{ ...refunded, name: "credit" }], 2)] }),
    payments: [credit, credit],
  };
  expect(figures(judge(evidence))).toBe("lost no, doubled no, stuck no");
  expect(judge(evidence).payments.credit).toMatchObject({ calls: 1, effects: 1, repeated: 0 });
});

test("the slope of memory is that of the line through it", () => {
  const samples = [0, 1, 2, 3].map((minute) => ({ minute, megabytes: 100 + 2.5 * minute }));
  expect(slope(samples)).toBeCloseTo(2.5);
  expect(slope([{ minute: 1, megabytes: 100 }])).toBe(0);
});

test("the same seed draws the same numbers, another one others", () => {
  const draw = (seed: number): number[] => {
    const random = seededRandom(seed);
    return [random.between(0, 1), random.between(5, 6), random.pick([1, 2, 3])];
  };
  expect(draw(7)).toEqual(draw(7));
  expect(draw(8)).not.toEqual(draw(7));
});

describe("the time from a restart to the answer of what was cut", () => {
  const from = Date.parse(at);
  const after = (ms: number): string => new Date(from + ms).toISOString();
  const asked = message("msg_1", 1, { text: "#s0-1 say s0a0" });
  const answer = message("msg_2", 2, { sender: robot, text: "done s0-1 said word0 ", createdAt: after(9000) });

  test("counts from the last restart before the answer", () => {
    const kills = [1000, 4000, 20_000].map((ms) => ({ at: from + ms, restartedAt: from + ms + 2000 }));
    expect(recoveryTimes([asked, answer], kills)).toEqual([3000]);
  });

  test("leaves out what was asked after the kill, or answered before it", () => {
    const kills = [{ at: from + 10_000, restartedAt: from + 12_000 }];
    const later = message("msg_3", 3, { text: "#s0-2 say s0a0", createdAt: after(11_000) });
    expect(recoveryTimes([asked, answer, later], kills)).toEqual([]);
  });
});

test.each([
  ["kept", noted({ text: "a note" }, false)],
  ["deleted", noted({ deleted: { at } }, true)],
])("a note that is %s, as it was meant, is sound", (_, evidence) => {
  expect(figures(judge(evidence))).toBe("lost no, doubled no, stuck no");
});

/** Olga looks, and is mentioned and replied to. She has read nothing. */
const olga = { id: "ent_O", name: "Olga", type: "human" } as const;
const addressing: Message[] = [
  message("msg_1", 1, { sender: olga, text: "Hello" }),
  message("msg_2", 2, { text: "@Olga well?", mentions: [olga.id] }),
  message("msg_3", 3, { text: "Hello to you", replyTo: "msg_1" }),
  message("msg_4", 4, { deleted: { at } }),
];
const due = ["mention msg_2", "reply msg_3"];
const line: LineEvidence = {
  ...{ name: "Olga", personId: olga.id, space: "s0", isReader: false, isOpen: true },
  ...{ told: due, left: due, kept: due, shown: due, needs: due, unread: 2, mentions: 2, listed: 2 },
  frames: { saw: ["msg_1", "msg_2", "msg_3", "msg_4"], doubled: 0, forgotten: 0 },
};
const read: LineEvidence = {
  ...line,
  ...{ isReader: true, left: [], kept: [], needs: [], unread: 0, mentions: 0, listed: 0 },
};
const event = (about: string, place?: number, id = `spc_1_${place ?? "run_1"}`) => ({
  events: [{ id, about, spaceId: "spc_1", place }],
  ...{ webhookId: id, isTaken: true },
});
const tries: ReceiverEvidence["tries"] = [
  ...addressing.map(({ id, seq }) => event(`space.message ${id}`, seq)),
  event("run.completed run_1"),
  event("message.deleted msg_4", 5),
];
const receiver: ReceiverEvidence = { name: "slow", tries, unsigned: 0, isDisabled: false };
const followed = ({ lines = [], receivers = [] }: Partial<FollowerEvidence>): string => {
  const heard = { ...space, log: addressing, agents: [{ ...agent, runs: [runOf([], 0)] }] };
  return figures({ ...judge(sound), ...judgeFollowers([heard], { lines, receivers }) });
};

test.each<[string, Partial<FollowerEvidence>]>([
  ["a line whose person has read nothing", { lines: [line] }],
  ["a line whose person has read all", { lines: [read] }],
  ["what was said while nobody looked, and is shown since", { lines: [{ ...line, told: [], left: [], kept: [] }] }],
  ["what was read before it was told", { lines: [{ ...read, told: [], shown: [] }] }],
  ["an endpoint that has all", { receivers: [receiver] }],
  ["an event that came again", { receivers: [{ ...receiver, tries: [...tries, ...tries] }] }],
  [
    "an event that was taken at the second try",
    { receivers: [{ ...receiver, tries: tries.flatMap((each) => [{ ...each, isTaken: false }, each]) }] },
  ],
])("%s is sound", (_, evidence) => {
  expect(followed(evidence)).toBe("lost no, doubled no, stuck no");
});

test.each<[string, Partial<LineEvidence>, string]>([
  ["a notification that came twice", { told: [...due, "reply msg_3"] }, "lost no, doubled yes, stuck no"],
  ["one of what nobody said", { told: [...due, "mention msg_9"] }, "lost no, doubled yes, stuck no"],
  ["a mention that was neither told nor shown", { told: due.slice(1), shown: [] }, "lost yes, doubled no, stuck no"],
  ["a reply that is not among what needs them", { needs: due.slice(0, 1) }, "lost yes, doubled no, stuck no"],
  ["another count of unread messages", { unread: 3 }, "lost yes, doubled no, stuck no"],
  ["another count of mentions", { mentions: 1 }, "lost yes, doubled no, stuck no"],
  ["another count in the list of spaces", { listed: 1 }, "lost yes, doubled no, stuck no"],
  ["a line that is closed", { isOpen: false }, "lost no, doubled no, stuck yes"],
  [
    "a gap among a space's frames",
    { frames: { saw: ["msg_1", "msg_3", "msg_4"], doubled: 0, forgotten: 0 } },
    "lost yes, doubled no, stuck no",
  ],
  [
    "a frame that came again",
    { frames: { saw: addressing.map(({ id }) => id), doubled: 1, forgotten: 0 } },
    "lost no, doubled yes, stuck no",
  ],
])("a line: %s is found", (_, more, expected) => {
  expect(followed({ lines: [{ ...line, ...more }] })).toBe(expected);
});

test.each<[string, Partial<LineEvidence>]>([
  ["a notification is left of what was read", { left: ["mention msg_2"] }],
  ["one is kept for who comes back", { kept: ["mention msg_2"] }],
  ["what was read still needs them", { needs: ["reply msg_3"] }],
])("a line: %s is found", (_, more) => {
  expect(followed({ lines: [{ ...read, ...more }] })).toBe("lost no, doubled no, stuck yes");
});

test.each<[string, Partial<ReceiverEvidence>, string]>([
  ["an event that never came", { tries: tries.slice(1) }, "lost yes, doubled no, stuck no"],
  [
    "an event that was never taken",
    { tries: tries.map((each, index) => ({ ...each, isTaken: index > 0 })) },
    "lost no, doubled no, stuck yes",
  ],
  [
    "an event that came under two ids",
    { tries: [...tries, event("message.deleted msg_4", 5, "spc_1_6")] },
    "lost no, doubled yes, stuck no",
  ],
  ["an event that never was", { tries: [...tries, event("space.message msg_9", 9)] }, "lost no, doubled yes, stuck no"],
  ["another order", { tries: tries.toReversed() }, "lost yes, doubled no, stuck no"],
  [
    "one webhook-id with other events",
    { tries: [...tries, { ...event("run.completed run_1"), webhookId: "spc_1_1" }] },
    "lost yes, doubled no, stuck no",
  ],
  ["a delivery without a signature", { unsigned: 1 }, "lost yes, doubled no, stuck no"],
  ["an endpoint that was disabled", { isDisabled: true }, "lost no, doubled no, stuck yes"],
])("an endpoint: %s is found", (_, more, expected) => {
  expect(followed({ receivers: [{ ...receiver, ...more }] })).toBe(expected);
});

test("commands to guests count in no time of recovery", () => {
  const from = Date.parse(at);
  const kills = [{ at: from + 1000, restartedAt: from + 2000 }];
  const asked = message("msg_1", 1, { text: "#s0-1 say s0g" });
  const answer = message("msg_2", 2, {
    text: "done s0-1 said word0 ",
    createdAt: new Date(from + 60_000).toISOString(),
  });
  expect(recoveryTimes([asked, answer], kills)).toEqual([58_000]);
  expect(recoveryTimes([asked, answer], kills, new Set(["s0g"]))).toEqual([]);
});
