import { runDurableObjectAlarm, runInDurableObject } from "cloudflare:test";
import { afterEach, beforeAll, beforeEach, expect, onTestFinished, test, vi } from "vitest";
import type { AgentToolCall, EntityRef } from "../../src/protocol/rpc.ts";
import type { AwaitedAnswer } from "../../src/protocol/tool-call.ts";
import { type Outcome, ok, refuse, unwrap } from "../../src/shared/errors.ts";
import { armFault, disarmFaults } from "../../src/shared/fault.ts";
import {
  maxAnswerBytes,
  maxDatabaseBytes,
  maxOpenToolCalls,
  maxToolInputBytes,
  maxToolOutputBytes,
} from "../../src/space/bounds.ts";
import { counted } from "./counted.ts";
import {
  answers,
  answersTo,
  called,
  deliveredTo,
  deliveries,
  entity,
  type House,
  house,
  ids,
  recordReceivers,
  said,
} from "./fixture.ts";
import { listen } from "./listener.ts";

beforeAll(recordReceivers);
beforeEach(() => deliveries.clear());
afterEach(() => {
  vi.useRealTimers();
  disarmFaults();
  answers.clear();
});

const cast = () => ({
  ann: entity("human", "Ann"),
  bob: entity("human", "Bob"),
  bot: entity("service", "CI"),
  robo: entity("agent", "Robo"),
  hal: entity("agent", "Hal"),
});

const inMinutes = (minutes: number): string => new Date(Date.now() + minutes * 60_000).toISOString();

const approval = (more: Partial<AwaitedAnswer> = {}): Partial<AgentToolCall> => ({
  status: "requires_action",
  awaits: { kind: "approval", quorum: 1, expiresAt: inMinutes(60), ...more },
});
const question = (more: Partial<AwaitedAnswer> = {}): Partial<AgentToolCall> => ({
  status: "requires_action",
  awaits: { kind: "answer", quorum: 1, expiresAt: inMinutes(10), ...more },
});
const yes = { result: { approved: true } };

const code = (outcome: Outcome<unknown>): string => (outcome.ok ? "ok" : outcome.problem.code);

/** Lets time pass, and rings the object's alarm. */
const pass = async (home: House, milliseconds: number): Promise<void> => {
  vi.useFakeTimers({ toFake: ["Date"], now: Date.now() + milliseconds });
  await runDurableObjectAlarm(home.stub);
};

const settled = (home: House): Promise<void> =>
  vi.waitFor(async () => {
    const lags = await runInDurableObject(home.stub, (_, { storage: { sql } }) =>
      sql.exec("SELECT count(*) AS due FROM timers WHERE name = 'deliver'").one(),
    );
    expect(lags).toEqual({ due: 0 });
  });

test("[R2] [D4] a visible call is one message that ends its stream; each state is one update", async () => {
  const { ann, robo } = cast();
  const home = await house([ann, robo]);
  const listener = await listen(home, home.as(ann));
  const streamId = ids.mint("str");
  const call = called(home, robo, "c1", { streamId });
  const shown = unwrap(await home.rpc.recordToolCall(call));
  expect(shown).toMatchObject({ kind: "tool_call", streamId, toolCall: { name: "deploy", status: "running" } });
  expect(unwrap(await home.rpc.recordToolCall(call))).toEqual(shown);
  const done = { ...call, status: "complete" as const, output: { url: "https://x.example" } };
  const complete = unwrap(await home.rpc.recordToolCall(done));
  expect(complete).toMatchObject({
    id: shown.id,
    seq: shown.seq,
    toolCall: { status: "complete", output: done.output },
  });
  expect(unwrap(await home.rpc.recordToolCall(done))).toEqual(complete);
  expect(unwrap(await home.rpc.recordToolCall({ ...call, status: "error" }))).toEqual(complete);
  await listener.until("space.message.updated");
  expect(listener.types).toEqual(["space.message", "space.message.updated"]);
  expect(listener.of("space.message.updated")[0]).toMatchObject({ cursor: shown.seq + 1, message: complete });
  expect(unwrap(await home.rpc.list(home.as(ann), { limit: 9 })).items).toEqual([complete]);
  expect(unwrap(await home.rpc.latest(home.as(ann)))).toEqual({ lastMessage: complete, unreadCount: 1 });
  const window = unwrap(await home.rpc.window(home.workspaceId, robo.id, { limit: 9, offset: 0 }));
  expect(window.messages).toEqual([complete]);
  const late = await listen(home, home.as(ann), `?cursor=${shown.seq - 1}`);
  await late.until("space.message.updated");
  expect(late.of("space.message")[0]?.message).toEqual(shown);
});

test("[D2] a tool call is delivered to every other agent and wakes nobody, neither in a pair", async () => {
  const { ann, robo, hal } = cast();
  const home = await house([ann, robo, hal]);
  unwrap(await home.rpc.recordToolCall(called(home, robo, "c1")));
  await vi.waitFor(() => expect(deliveredTo(hal).flatMap(({ messages }) => messages)).toHaveLength(1));
  const [delivered] = deliveredTo(hal).flatMap(({ messages }) => messages);
  expect(delivered).toMatchObject({ triggerSource: "none", message: { kind: "tool_call" } });
  const pair = await house([robo, hal]);
  unwrap(await pair.rpc.recordToolCall(called(pair, robo, "c2")));
  await vi.waitFor(() => expect(deliveredTo(hal).flatMap(({ messages }) => messages)).toHaveLength(2));
  expect(deliveredTo(hal).flatMap(({ messages }) => messages.map((one) => one.triggerSource))).toEqual([
    "none",
    "none",
  ]);
});

test("[S6] a call of another agent, or an id that was not issued, is refused", async () => {
  const { ann, robo, hal } = cast();
  const home = await house([ann, robo]);
  const call = called(home, robo, "c1");
  expect(code(await home.rpc.recordToolCall({ ...call, agentId: hal.id }))).toBe("invalid_request");
  expect(code(await home.rpc.recordToolCall({ ...call, toolCallId: "tc_invented" }))).toBe("invalid_request");
  expect(code(await home.rpc.recordToolCall(called(home, hal, "c1")))).toBe("not_a_member");
  expect(code(await home.rpc.recordToolCall({ ...call, workspaceId: ids.mint("wsp") }))).toBe("not_found");
  expect(code(await home.rpc.recordToolCall({ ...call, status: "requires_action" }))).toBe("invalid_request");
  expect(unwrap(await home.rpc.list(home.key, { limit: 9 })).items).toEqual([]);
});

test("[B3] a long input is refused, and of a long output the beginning is kept with a note", async () => {
  const { ann, robo } = cast();
  const home = await house([ann, robo]);
  const input = { text: "x".repeat(maxToolInputBytes) };
  const refused = await home.rpc.recordToolCall(called(home, robo, "c1", { input }));
  expect(refused).toMatchObject({
    problem: { code: "payload_too_large", detail: expect.stringContaining("maxToolInputBytes") },
  });
  const output = { text: "é".repeat(maxToolOutputBytes) };
  const kept = unwrap(await home.rpc.recordToolCall(called(home, robo, "c2", { status: "complete", output })));
  expect(kept.toolCall?.output).toMatchObject({
    note: expect.stringContaining(`${maxToolOutputBytes * 2 + 11} bytes`),
  });
  expect(JSON.stringify(kept.toolCall).length).toBeLessThan(maxToolOutputBytes + 500);
});

test("approvals are counted live, and the calling agent alone is told once that enough approved", async () => {
  const { ann, bob, robo, hal } = cast();
  const home = await house([ann, bob, robo, hal]);
  const listener = await listen(home, home.as(ann));
  const call = called(home, robo, "c1", approval({ quorum: 2, approvers: [ann.id, bob.id] }));
  unwrap(await home.rpc.recordToolCall(call));
  const first = unwrap(await home.rpc.answerToolCall(home.as(ann), call.toolCallId, yes));
  expect(first).toMatchObject({ created: true, message: { toolCall: { status: "requires_action" } } });
  const again = unwrap(await home.rpc.answerToolCall(home.as(ann), call.toolCallId, yes));
  expect(again).toEqual({ message: first.message, created: false });
  expect(code(await home.rpc.answerToolCall(home.as(ann), call.toolCallId, { result: { approved: false } }))).toBe(
    "conflict",
  );
  const second = unwrap(await home.rpc.answerToolCall(home.as(bob), call.toolCallId, yes));
  expect(second.message.toolCall).toMatchObject({ status: "running" });
  await listener.until("space.message.updated", 2);
  expect(listener.of("space.message.updated").map(({ message }) => message.toolCall?.awaits?.answers.length)).toEqual([
    1, 2,
  ]);
  // Its run was replayed: what it shows again is not taken back.
  expect(unwrap(await home.rpc.recordToolCall(call))).toEqual(second.message);
  await vi.waitFor(() => expect(answersTo(robo)).toHaveLength(1));
  expect(answersTo(robo)).toEqual([
    {
      seq: second.message.seq + 2,
      toolCallId: call.toolCallId,
      outcome: "approved",
      by: [
        { id: ann.id, name: "Ann" },
        { id: bob.id, name: "Bob" },
      ],
    },
  ]);
  await settled(home);
  expect(answersTo(hal)).toEqual([]);
  const done = unwrap(await home.rpc.recordToolCall({ ...call, status: "complete", output: "deployed" }));
  expect(done.toolCall).toMatchObject({ status: "complete", output: "deployed", awaits: { answers: [{}, {}] } });
  await settled(home);
  expect(answersTo(robo)).toHaveLength(1);
});

test("one rejection rejects, and its note reaches the agent", async () => {
  const { ann, bob, robo } = cast();
  const home = await house([ann, bob, robo]);
  const call = called(home, robo, "c1", approval({ quorum: 2 }));
  unwrap(await home.rpc.recordToolCall(call));
  const no = { result: { approved: false, note: "not today" } };
  const { message } = unwrap(await home.rpc.answerToolCall(home.as(bob), call.toolCallId, no));
  expect(message.toolCall).toMatchObject({ status: "error", error: { code: "approval_rejected" } });
  await vi.waitFor(() => expect(answersTo(robo)).toMatchObject([{ outcome: "rejected", note: "not today" }]));
  expect(code(await home.rpc.answerToolCall(home.as(ann), call.toolCallId, yes))).toBe("conflict");
});

test("the first valid answer wins, and is checked against the schema", async () => {
  const { ann, bob, robo } = cast();
  const home = await house([ann, bob, robo]);
  const schema = { type: "object", properties: { color: { type: "string" } }, required: ["color"] };
  const call = called(home, robo, "c1", question({ schema }));
  unwrap(await home.rpc.recordToolCall(call));
  expect(await home.rpc.answerToolCall(home.as(ann), call.toolCallId, { result: { color: 3 } })).toMatchObject({
    problem: { code: "answer_invalid", status: 422, issues: [{ path: "result.color" }] },
  });
  expect(code(await home.rpc.recordToolCall({ ...call, status: "complete", output: 1 }))).toBe("conflict");
  const given = { result: { color: "red" } };
  const { message } = unwrap(await home.rpc.answerToolCall(home.as(ann), call.toolCallId, given));
  expect(message.toolCall).toMatchObject({ status: "complete", output: { color: "red" } });
  expect(unwrap(await home.rpc.answerToolCall(home.as(ann), call.toolCallId, given)).created).toBe(false);
  expect(code(await home.rpc.answerToolCall(home.as(bob), call.toolCallId, given))).toBe("conflict");
  await vi.waitFor(() => expect(answersTo(robo)).toMatchObject([{ outcome: "answered", output: { color: "red" } }]));
});

test("[S1] only a person of the space who was asked may answer", async () => {
  const { ann, bob, bot, robo } = cast();
  const stranger = entity("human", "Eve");
  const home = await house([ann, bob, bot, robo]);
  const call = called(home, robo, "c1", approval({ approvers: [bob.id] }));
  unwrap(await home.rpc.recordToolCall(call));
  const by = async (who: EntityRef) => code(await home.rpc.answerToolCall(home.as(who), call.toolCallId, yes));
  expect([await by(ann), await by(bot), await by(robo), await by(stranger)]).toEqual([
    "forbidden",
    "forbidden",
    "forbidden",
    "not_found",
  ]);
  expect(code(await home.rpc.answerToolCall(home.key, call.toolCallId, yes))).toBe("acting_entity_required");
  const unknown = ids.mintOwned("tc", robo.id);
  expect(code(await home.rpc.answerToolCall(home.as(ann), unknown, yes))).toBe("not_found");
  const long = { result: "x".repeat(maxAnswerBytes) };
  expect(code(await home.rpc.answerToolCall(home.as(bob), call.toolCallId, long))).toBe("payload_too_large");
  expect(await by(bob)).toBe("ok");
});

test("a call expires by the space's own timer, and an answer after that is too late", async () => {
  const { ann, robo } = cast();
  const home = await house([ann, robo]);
  const soon = called(home, robo, "soon", question({ expiresAt: inMinutes(1) }));
  const later = called(home, robo, "later", question({ expiresAt: inMinutes(30) }));
  for (const call of [later, soon]) unwrap(await home.rpc.recordToolCall(call));
  await settled(home);
  await pass(home, 61_000);
  await vi.waitFor(() => expect(answersTo(robo)).toMatchObject([{ toolCallId: soon.toolCallId, outcome: "expired" }]));
  const { items } = unwrap(await home.rpc.list(home.key, { limit: 9 }));
  expect(items.map(({ toolCall }) => toolCall?.status)).toEqual(["requires_action", "expired"]);
  const answer = (call: AgentToolCall) => home.rpc.answerToolCall(home.as(ann), call.toolCallId, { result: 1 });
  // A person's token lives as long as the clock stands in this test.
  expect(code(await answer(soon))).toBe("gone");
  // The time is up, and the timer has not come to it yet.
  vi.setSystemTime(Date.now() + 31 * 60_000);
  expect(code(await answer(later))).toBe("gone");
  await vi.waitFor(() => expect(answersTo(robo).map(({ outcome }) => outcome)).toEqual(["expired", "expired"]));
});

test("[D2] an answer that is stored when the space crashes reaches the agent, once", async () => {
  for (const point of ["space.after-append", "space.after-deliver"] as const) {
    const { ann, robo } = cast();
    const home = await house([ann, robo]);
    const call = called(home, robo, "c1", approval());
    unwrap(await home.rpc.recordToolCall(call));
    await settled(home);
    const crashed = armFault(point);
    home.rpc.answerToolCall(home.as(ann), call.toolCallId, yes).catch(() => undefined);
    await crashed;
    await pass(home, 25_001);
    await vi.waitFor(() => expect(answersTo(robo)).toMatchObject([{ outcome: "approved" }]));
    await settled(home);
    expect(answersTo(robo)).toHaveLength(1);
    vi.useRealTimers();
  }
});

test("[D2] an expiry that is stored when the space crashes reaches the agent, once", async () => {
  const { ann, robo } = cast();
  const home = await house([ann, robo]);
  const call = called(home, robo, "c1", question({ expiresAt: inMinutes(1) }));
  unwrap(await home.rpc.recordToolCall(call));
  await settled(home);
  const crashed = armFault("space.after-append");
  pass(home, 61_000).catch(() => undefined);
  await crashed;
  await pass(home, 26_000);
  await vi.waitFor(() => expect(answersTo(robo)).toMatchObject([{ outcome: "expired" }]));
  await settled(home);
  expect(answersTo(robo)).toHaveLength(1);
});

test("[D2] answers keep their place among messages, and wait with them for an agent that is away", async () => {
  const { ann, robo } = cast();
  const home = await house([ann, robo]);
  const call = called(home, robo, "c1", approval());
  unwrap(await home.rpc.recordToolCall(call));
  await settled(home);
  answers.set(robo.id, async () => refuse("unavailable", "not now"));
  unwrap(await home.rpc.post(home.as(ann), { text: "before" }));
  unwrap(await home.rpc.answerToolCall(home.as(ann), call.toolCallId, yes));
  unwrap(await home.rpc.post(home.as(ann), { text: "after" }));
  answers.set(robo.id, async ({ cursor }) => ok({ cursor }));
  await pass(home, 60_000);
  await vi.waitFor(() => expect(answersTo(robo)).toHaveLength(1));
  await settled(home);
  const seqs = deliveredTo(robo).flatMap(({ messages }) => messages.map(({ message }) => message.seq));
  const [answered] = answersTo(robo);
  expect(answered?.seq).toBe(Math.max(...seqs) - 1);
  for (const { after, cursor, answers: told = [] } of deliveredTo(robo)) {
    for (const { seq } of told) expect(after < seq && seq <= cursor).toBe(true);
  }
});

test("an agent that leaves takes its open calls with it", async () => {
  const { ann, robo, hal } = cast();
  const home = await house([ann, robo, hal]);
  const waits = called(home, robo, "waits", approval());
  for (const call of [waits, called(home, robo, "runs"), called(home, hal, "other")]) {
    unwrap(await home.rpc.recordToolCall(call));
  }
  unwrap(await home.rpc.recordToolCall(called(home, robo, "over", { status: "complete", output: 1 })));
  unwrap(await home.rpc.removeMember(home.key, robo.id));
  const { items } = unwrap(await home.rpc.list(home.key, { limit: 9 }));
  expect(items.map(({ toolCall }) => toolCall?.status)).toEqual(["canceled", "canceled", "running", "complete"]);
  expect(code(await home.rpc.answerToolCall(home.as(ann), waits.toolCallId, yes))).toBe("gone");
  expect(unwrap(await home.rpc.recordToolCall({ ...waits, status: "complete", output: 1 })).toolCall?.status).toBe(
    "canceled",
  );
  await settled(home);
  expect(answersTo(robo)).toEqual([]);
});

test("[B3] however many open calls an agent leaves behind, all of them are canceled", async () => {
  const { ann, robo } = cast();
  const home = await house([ann, robo]);
  for (let index = 0; index < 120; index += 1) unwrap(await home.rpc.recordToolCall(called(home, robo, `c${index}`)));
  unwrap(await home.rpc.removeMember(home.key, robo.id));
  await vi.waitFor(async () => {
    await runDurableObjectAlarm(home.stub);
    const { items } = unwrap(await home.rpc.list(home.key, { limit: 200 }));
    expect(new Set(items.map(({ toolCall }) => toolCall?.status))).toEqual(new Set(["canceled"]));
  });
});

test("a tool call cannot be replied to, by nobody", async () => {
  const { ann, robo, hal } = cast();
  const home = await house([ann, robo, hal]);
  const { id } = unwrap(await home.rpc.recordToolCall(called(home, robo, "c1")));
  const refused = await home.rpc.post(home.as(ann), { text: "nice", replyTo: id });
  expect(refused).toMatchObject({ problem: { code: "not_repliable", status: 422 } });
  expect(code(await home.rpc.append({ ...said(home, hal, "nice"), replyTo: id }))).toBe("not_repliable");
});

test("a read mark may stand on a tool call, and its receipts are told", async () => {
  const { ann, bob, robo } = cast();
  const home = await house([ann, bob, robo]);
  const { id } = unwrap(await home.rpc.recordToolCall(called(home, robo, "c1")));
  expect(unwrap(await home.rpc.latest(home.as(ann))).unreadCount).toBe(1);
  unwrap(await home.rpc.markRead(home.as(ann), id));
  expect(unwrap(await home.rpc.latest(home.as(ann))).unreadCount).toBe(0);
  expect(unwrap(await home.rpc.reads(home.as(bob), id))).toMatchObject([{ name: "Ann" }]);
});

test("an answer by socket is told to all, and a refused one to its sender by the call's id", async () => {
  const { ann, bob, robo } = cast();
  const home = await house([ann, bob, robo]);
  const call = called(home, robo, "c1", approval());
  unwrap(await home.rpc.recordToolCall(call));
  const [one, other] = [await listen(home, home.as(ann)), await listen(home, home.as(bob))];
  const frame = (result: unknown, toolCallId = call.toolCallId) => ({ type: "tool.result", toolCallId, result });
  one.send(frame({ approved: 7 }));
  await one.until("error");
  expect(one.of("error")[0]).toMatchObject({ code: "answer_invalid", toolCallId: call.toolCallId });
  one.send(frame({ approved: true }));
  await other.until("space.message.updated");
  await one.until("space.message.updated");
  one.send(frame({ approved: true }));
  await one.until("space.message.updated", 2);
  expect(one.of("space.message.updated")[1]).toEqual(one.of("space.message.updated")[0]);
  other.send(frame({ approved: true }));
  await other.until("error");
  expect(other.of("error")[0]).toMatchObject({ code: "conflict", toolCallId: call.toolCallId });
  other.send(
    `{"type":"tool.result","toolCallId":"${call.toolCallId}","result":${"[".repeat(9000)}${"]".repeat(9000)}}`,
  );
  await other.until("error", 2);
  expect(other.of("error")[1]).toMatchObject({ code: "bad_frame" });
  expect(other.of("space.message.updated")).toHaveLength(1);
});

test("nothing of a call outlives its space", async () => {
  const { ann, robo } = cast();
  const home = await house([ann, robo]);
  const call = called(home, robo, "c1", question({ expiresAt: inMinutes(1) }));
  unwrap(await home.rpc.recordToolCall(call));
  unwrap(await home.rpc.remove(home.key));
  await settled(home);
  await pass(home, 61_000);
  const kept = await runInDurableObject(home.stub, (_, { storage: { sql } }) =>
    sql.exec("SELECT count(*) AS kept FROM tool_calls").one(),
  );
  expect(kept).toEqual({ kept: 0 });
});

test("[R5] a deleted space ends no calls of an absent agent; it hears only that it left", async () => {
  const { ann, robo } = cast();
  const home = await house([ann, robo]);
  unwrap(await home.rpc.recordToolCall(called(home, robo, "c1", question({ expiresAt: inMinutes(1) }))));
  await settled(home);
  answers.set(robo.id, async () => refuse("unavailable", "not now"));
  const rows = () =>
    runInDurableObject(home.stub, (_, { storage: { sql } }) => sql.exec("SELECT seq FROM log").toArray());
  const before = await rows();
  unwrap(await home.rpc.remove(home.key));
  await vi.waitFor(() => expect(deliveredTo(robo).at(-1)).toMatchObject({ left: true }));
  await pass(home, 61_000);
  expect(await rows()).toEqual(before);
  answers.delete(robo.id);
  await pass(home, 60 * 60_000);
  await settled(home);
  expect(answersTo(robo)).toEqual([]);
  expect(await rows()).toEqual([]);
});

test("[B4] [B3] a page of messages reads one more row for each tool call on it", async () => {
  const { ann, robo } = cast();
  const home = await house([ann, robo]);
  const show = async (from: number, to: number): Promise<void> => {
    for (let index = from; index < to; index += 1) {
      const call = called(home, robo, `c${index}`);
      unwrap(await home.rpc.recordToolCall(call));
      unwrap(await home.rpc.recordToolCall({ ...call, status: "complete", output: index }));
    }
  };
  await show(0, 10);
  await settled(home);
  const page = () => home.rpc.list(home.as(ann), { limit: 5 });
  // Who asks is read once.
  await page();
  const few = await counted(home, page);
  await show(10, 60);
  await settled(home);
  const many = await counted(home, page);
  expect(many.rowsRead).toBe(few.rowsRead);
  expect(many.rowsRead).toBeLessThan(30);
});

test("[R5] a call does not show where it was canceled before, or its agent stopped waiting", async () => {
  const { ann, robo } = cast();
  const home = await house([ann, robo]);
  const first = called(home, robo, "first");
  expect(code(await home.rpc.recordToolCall({ ...first, status: "canceled" }))).toBe("gone");
  expect(code(await home.rpc.recordToolCall({ ...first, until: Date.now() - 1 }))).toBe("unavailable");
  expect(unwrap(await home.rpc.list(home.key, { limit: 10 })).items).toEqual([]);
  unwrap(await home.rpc.recordToolCall(first));
  const canceled = unwrap(await home.rpc.recordToolCall({ ...first, status: "canceled", until: Date.now() - 1 }));
  expect(canceled.toolCall?.status).toBe("canceled");
});

test("[B3] a space has so many open calls at a time, and one that ends makes room", async () => {
  const { ann, robo } = cast();
  const home = await house([ann, robo]);
  const first = called(home, robo, "first");
  unwrap(await home.rpc.recordToolCall(first));
  await runInDurableObject(home.stub, (_, { storage: { sql } }) => {
    sql.exec(
      `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?1)
       INSERT INTO tool_calls (seq, agent_id, is_open, updated_seq, message) SELECT 1000000 + i, ?2, 1, 1, '{}' FROM n`,
      maxOpenToolCalls - 1,
      robo.id,
    );
  });
  const refused = await home.rpc.recordToolCall(called(home, robo, "one more"));
  expect(refused).toMatchObject({
    problem: { code: "limit_reached", detail: expect.stringContaining("maxOpenToolCalls") },
  });
  unwrap(await home.rpc.recordToolCall({ ...first, status: "canceled" }));
  unwrap(await home.rpc.recordToolCall(called(home, robo, "one more")));
});

test("[B3] a full space takes no message and no call, names the bound, and is read as before", async () => {
  const { ann, robo } = cast();
  const home = await house([ann, robo]);
  const { message } = unwrap(await home.rpc.post(home.as(ann), { text: "The last one", clientKey: "k1" }));
  await runInDurableObject(home.stub, (_, { storage: { sql } }) => {
    const full = vi.spyOn(sql, "databaseSize", "get").mockReturnValue(maxDatabaseBytes + 1);
    onTestFinished(() => full.mockRestore());
  });
  const refusals = [
    await home.rpc.post(home.as(ann), { text: "One more" }),
    await home.rpc.append(said(home, robo, "And one more")),
    await home.rpc.recordToolCall(called(home, robo, "deploy")),
  ];
  for (const refused of refusals) {
    expect(refused).toMatchObject({
      ok: false,
      problem: { code: "limit_reached", detail: expect.stringContaining("(maxDatabaseBytes)") },
    });
  }
  expect(unwrap(await home.rpc.list(home.as(ann), { limit: 10 })).items).toEqual([message]);
  expect(unwrap(await home.rpc.post(home.as(ann), { text: "The last one", clientKey: "k1" })).created).toBe(false);
});
