import { runDurableObjectAlarm, runInDurableObject } from "cloudflare:test";
import { afterEach, beforeAll, beforeEach, expect, onTestFinished, test, vi } from "vitest";
import type { Message } from "../../src/protocol/message.ts";
import type { AgentToolCall, EntityRef } from "../../src/protocol/rpc.ts";
import type { AwaitedAnswer, ToolAnswer } from "../../src/protocol/tool-call.ts";
import { jsonHash } from "../../src/shared/canonical-json.ts";
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
  settled,
} from "./fixture.ts";
import { listen } from "./listener.ts";

beforeAll(recordReceivers);
beforeEach(() => deliveries.clear());
afterEach(() => {
  vi.useRealTimers();
  disarmFaults();
  answers.clear();
});

/** A space of these members. */
const open = async <Name extends "ann" | "bob" | "bot" | "robo" | "hal">(...names: Name[]) => {
  const cast = {
    ann: entity("human", "Ann"),
    bob: entity("human", "Bob"),
    bot: entity("service", "CI"),
    robo: entity("agent", "Robo"),
    hal: entity("agent", "Hal"),
  };
  const home = await house(names.map((name) => cast[name]));
  return { ...cast, home };
};

const record = async (home: House, call: AgentToolCall): Promise<Message> =>
  unwrap(await home.rpc.recordToolCall(call));

/** Shows a call of the agent. */
const show = async (...named: Parameters<typeof called>): Promise<AgentToolCall> => {
  const call = called(...named);
  await record(named[0], call);
  return call;
};

const decide = async (home: House, who: EntityRef, { toolCallId }: AgentToolCall, answer: ToolAnswer) =>
  unwrap(await home.rpc.answerToolCall(home.as(who), toolCallId, answer));

const inMinutes = (minutes: number): string => new Date(Date.now() + minutes * 60_000).toISOString();

const approval = (more: Partial<AwaitedAnswer> = {}): Partial<AgentToolCall> => ({
  status: "requires_action",
  awaits: { kind: "approval", quorum: 1, expiresAt: inMinutes(60), ...more },
});
const question = (more: Partial<AwaitedAnswer> = {}): Partial<AgentToolCall> => ({
  status: "requires_action",
  awaits: { kind: "answer", quorum: 1, expiresAt: inMinutes(10), ...more },
});
/** What `called` shows. */
const inputHash = jsonHash({ version: "1.2" });
const yes = { result: { approved: true, inputHash } };

const code = (outcome: Outcome<unknown>): string => (outcome.ok ? "ok" : outcome.problem.code);

/** Lets time pass, and rings the object's alarm. */
const pass = async (home: House, milliseconds: number): Promise<void> => {
  vi.useFakeTimers({ toFake: ["Date"], now: Date.now() + milliseconds });
  await runDurableObjectAlarm(home.stub);
};

const query = (home: House, statement: string) =>
  runInDurableObject(home.stub, (_, { storage: { sql } }) => sql.exec(statement).toArray());

test("[R2] [D4] a visible call is one message that ends its stream; each state is one update", async () => {
  const { home, ann, robo } = await open("ann", "robo");
  const listener = await listen(home, home.as(ann));
  const streamId = ids.mint("str");
  const call = called(home, robo, "c1", { streamId });
  const shown = await record(home, call);
  expect(shown).toMatchObject({ kind: "tool_call", streamId, toolCall: { name: "deploy", status: "running" } });
  expect(await record(home, call)).toEqual(shown);
  const done = { ...call, status: "complete" as const, output: { url: "https://x.example" } };
  const complete = await record(home, done);
  const { id, seq } = shown;
  expect(complete).toMatchObject({ id, seq, toolCall: { status: "complete", output: done.output } });
  expect(await record(home, done)).toEqual(complete);
  expect(await record(home, { ...call, status: "error" })).toEqual(complete);
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
  const { home, robo, hal } = await open("ann", "robo", "hal");
  await show(home, robo, "c1");
  await vi.waitFor(() => expect(deliveredTo(hal).flatMap(({ messages }) => messages)).toHaveLength(1));
  const [delivered] = deliveredTo(hal).flatMap(({ messages }) => messages);
  expect(delivered).toMatchObject({ triggerSource: "none", message: { kind: "tool_call" } });
  const pair = await house([robo, hal]);
  unwrap(await pair.rpc.recordToolCall(called(pair, robo, "c2")));
  await vi.waitFor(() => expect(deliveredTo(hal).flatMap(({ messages }) => messages)).toHaveLength(2));
  const sources = deliveredTo(hal).flatMap(({ messages }) => messages.map((one) => one.triggerSource));
  expect(sources).toEqual(["none", "none"]);
});

test("[S6] a call of another agent, or an id that was not issued, is refused", async () => {
  const { home, robo, hal } = await open("ann", "robo");
  const call = called(home, robo, "c1");
  expect(code(await home.rpc.recordToolCall({ ...call, agentId: hal.id }))).toBe("invalid_request");
  expect(code(await home.rpc.recordToolCall({ ...call, toolCallId: "tc_invented" }))).toBe("invalid_request");
  expect(code(await home.rpc.recordToolCall(called(home, hal, "c1")))).toBe("not_a_member");
  expect(code(await home.rpc.recordToolCall({ ...call, workspaceId: ids.mint("wsp") }))).toBe("not_found");
  expect(code(await home.rpc.recordToolCall({ ...call, status: "requires_action" }))).toBe("invalid_request");
  expect(unwrap(await home.rpc.list(home.key, { limit: 9 })).items).toEqual([]);
});

test("[B3] a long input is refused, and of a long output the beginning is kept with a note", async () => {
  const { home, robo } = await open("ann", "robo");
  const input = { text: "x".repeat(maxToolInputBytes) };
  const refused = await home.rpc.recordToolCall(called(home, robo, "c1", { input }));
  const problem = { code: "payload_too_large", detail: expect.stringContaining("maxToolInputBytes") };
  expect(refused).toMatchObject({ problem });
  const output = { text: "é".repeat(maxToolOutputBytes) };
  const kept = await record(home, called(home, robo, "c2", { status: "complete", output }));
  const note = expect.stringContaining(`${maxToolOutputBytes * 2 + 11} bytes`);
  expect(kept.toolCall?.output).toMatchObject({ note });
  expect(JSON.stringify(kept.toolCall).length).toBeLessThan(maxToolOutputBytes + 500);
});

test("approvals are counted live, and the calling agent alone is told once that enough approved", async () => {
  const { home, ann, bob, robo, hal } = await open("ann", "bob", "robo", "hal");
  const listener = await listen(home, home.as(ann));
  const call = await show(home, robo, "c1", approval({ quorum: 2, approvers: [ann.id, bob.id] }));
  const first = await decide(home, ann, call, yes);
  expect(first).toMatchObject({ created: true, message: { toolCall: { status: "requires_action" } } });
  const again = await decide(home, ann, call, yes);
  expect(again).toEqual({ message: first.message, created: false });
  const no = { result: { approved: false } };
  expect(code(await home.rpc.answerToolCall(home.as(ann), call.toolCallId, no))).toBe("conflict");
  const second = await decide(home, bob, call, yes);
  expect(second.message.toolCall).toMatchObject({ status: "running" });
  await listener.until("space.message.updated", 2);
  const counts = listener.of("space.message.updated").map(({ message }) => message.toolCall?.awaits?.answers.length);
  expect(counts).toEqual([1, 2]);
  // Its run was replayed: what it shows again is not taken back.
  expect(await record(home, call)).toEqual(second.message);
  await vi.waitFor(() => expect(answersTo(robo)).toHaveLength(1));
  const by = [ann, bob].map(({ id, name }) => ({ id, name }));
  const { toolCallId } = call;
  expect(answersTo(robo)).toEqual([{ seq: second.message.seq + 2, toolCallId, outcome: "approved", by, inputHash }]);
  await settled(home);
  expect(answersTo(hal)).toEqual([]);
  const done = await record(home, { ...call, status: "complete", output: "deployed" });
  expect(done.toolCall).toMatchObject({ status: "complete", output: "deployed", awaits: { answers: [{}, {}] } });
  await settled(home);
  expect(answersTo(robo)).toHaveLength(1);
});

test("[C2] a call that changed while people read it is shown anew; what they read is refused", async () => {
  const { home, ann, bob, robo } = await open("ann", "bob", "robo");
  const listener = await listen(home, home.as(bob));
  const call = await show(home, robo, "c1", approval({ quorum: 2 }));
  await decide(home, ann, call, yes);
  const changed = { ...call, input: { version: "6.6.6" } };
  const { toolCall } = await record(home, changed);
  expect(toolCall?.awaits).toMatchObject({ answers: [], shown: [{ text: "deploy" }, { text: "6.6.6" }] });
  await listener.until("space.message.updated", 2);
  expect(listener.of("space.message.updated")[1]?.message.toolCall).toEqual(toolCall);
  const refused = await home.rpc.answerToolCall(home.as(bob), call.toolCallId, yes);
  expect(refused).toMatchObject({ problem: { code: "approval_changed", status: 409 } });
  const now = { result: { approved: true, inputHash: toolCall?.awaits?.inputHash ?? "" } };
  for (const who of [ann, bob]) await decide(home, who, call, now);
  await vi.waitFor(() =>
    expect(answersTo(robo)).toMatchObject([{ outcome: "approved", inputHash: toolCall?.awaits?.inputHash }]),
  );
});

test("[C1] an approval that an earlier version stored shows its fields too, and can be given", async () => {
  const { home, ann, robo } = await open("ann", "robo");
  const call = await show(home, robo, "c1", approval());
  const fields = "'$.toolCall.awaits.shown', '$.toolCall.awaits.inputHash'";
  await query(home, `UPDATE tool_calls SET message = json_remove(message, ${fields})`);
  const [message] = unwrap(await home.rpc.list(home.as(ann), { limit: 9 })).items;
  expect(message?.toolCall?.awaits).toMatchObject({ inputHash, shown: [{ path: "tool" }, { path: "input.version" }] });
  expect((await decide(home, ann, call, yes)).message.toolCall?.status).toBe("running");
});

test("[C2] [S5] an approval of somebody who has left since counts no more", async () => {
  const { home, ann, bob, robo } = await open("ann", "bob", "robo");
  const cyd = entity("human", "Cyd");
  unwrap(await home.rpc.addMember(home.key, cyd));
  const call = await show(home, robo, "c1", approval({ quorum: 2 }));
  await decide(home, ann, call, yes);
  unwrap(await home.rpc.removeMember(home.key, ann.id));
  const second = await decide(home, bob, call, yes);
  expect(second.message.toolCall).toMatchObject({ status: "requires_action", awaits: { answers: [{}, {}] } });
  expect((await decide(home, cyd, call, yes)).message.toolCall?.status).toBe("running");
});

test("one rejection rejects, and its note reaches the agent", async () => {
  const { home, ann, bob, robo } = await open("ann", "bob", "robo");
  const call = await show(home, robo, "c1", approval({ quorum: 2 }));
  const no = { result: { approved: false, note: "not today" } };
  const { message } = await decide(home, bob, call, no);
  expect(message.toolCall).toMatchObject({ status: "error", error: { code: "approval_rejected" } });
  await vi.waitFor(() => expect(answersTo(robo)).toMatchObject([{ outcome: "rejected", note: "not today" }]));
  expect(code(await home.rpc.answerToolCall(home.as(ann), call.toolCallId, yes))).toBe("conflict");
});

test("the first valid answer wins, and is checked against the schema", async () => {
  const { home, ann, bob, robo } = await open("ann", "bob", "robo");
  const schema = { type: "object", properties: { color: { type: "string" } }, required: ["color"] };
  const call = await show(home, robo, "c1", question({ schema }));
  expect(await home.rpc.answerToolCall(home.as(ann), call.toolCallId, { result: { color: 3 } })).toMatchObject({
    problem: { code: "answer_invalid", status: 422, issues: [{ path: "result.color" }] },
  });
  expect(code(await home.rpc.recordToolCall({ ...call, status: "complete", output: 1 }))).toBe("conflict");
  const given = { result: { color: "red" } };
  const { message } = await decide(home, ann, call, given);
  expect(message.toolCall).toMatchObject({ status: "complete", output: { color: "red" } });
  expect((await decide(home, ann, call, given)).created).toBe(false);
  expect(code(await home.rpc.answerToolCall(home.as(bob), call.toolCallId, given))).toBe("conflict");
  await vi.waitFor(() => expect(answersTo(robo)).toMatchObject([{ outcome: "answered", output: { color: "red" } }]));
});

test("[S1] only a person of the space who was asked may answer", async () => {
  const { home, ann, bob, bot, robo } = await open("ann", "bob", "bot", "robo");
  const stranger = entity("human", "Eve");
  const call = await show(home, robo, "c1", approval({ approvers: [bob.id] }));
  const by = async (who: EntityRef) => code(await home.rpc.answerToolCall(home.as(who), call.toolCallId, yes));
  for (const who of [ann, bot, robo]) expect(await by(who)).toBe("forbidden");
  expect(await by(stranger)).toBe("not_found");
  expect(code(await home.rpc.answerToolCall(home.key, call.toolCallId, yes))).toBe("acting_entity_required");
  const unknown = ids.mintOwned("tc", robo.id);
  expect(code(await home.rpc.answerToolCall(home.as(ann), unknown, yes))).toBe("not_found");
  const long = { result: "x".repeat(maxAnswerBytes) };
  expect(code(await home.rpc.answerToolCall(home.as(bob), call.toolCallId, long))).toBe("payload_too_large");
  expect(await by(bob)).toBe("ok");
});

test("a call expires by the space's own timer, and an answer after that is too late", async () => {
  const { home, ann, robo } = await open("ann", "robo");
  const soon = called(home, robo, "soon", question({ expiresAt: inMinutes(1) }));
  const later = called(home, robo, "later", question({ expiresAt: inMinutes(30) }));
  for (const call of [later, soon]) await record(home, call);
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
    const { home, ann, robo } = await open("ann", "robo");
    const call = await show(home, robo, "c1", approval());
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
  const { home, robo } = await open("ann", "robo");
  await show(home, robo, "c1", question({ expiresAt: inMinutes(1) }));
  await settled(home);
  const crashed = armFault("space.after-append");
  pass(home, 61_000).catch(() => undefined);
  await crashed;
  await pass(home, 26_000);
  await vi.waitFor(() => expect(answersTo(robo)).toMatchObject([{ outcome: "expired" }]));
  await settled(home);
  expect(answersTo(robo)).toHaveLength(1);
});

test("[D2] answers keep their place among messages, and wait with these for an absent agent", async () => {
  const { home, ann, robo } = await open("ann", "robo");
  const call = await show(home, robo, "c1", approval());
  await settled(home);
  answers.set(robo.id, async () => refuse("unavailable", "not now"));
  unwrap(await home.rpc.post(home.as(ann), { text: "before" }));
  await decide(home, ann, call, yes);
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
  const { home, ann, robo, hal } = await open("ann", "robo", "hal");
  const waits = called(home, robo, "waits", approval());
  for (const call of [waits, called(home, robo, "runs"), called(home, hal, "other")]) {
    await record(home, call);
  }
  await show(home, robo, "over", { status: "complete", output: 1 });
  unwrap(await home.rpc.removeMember(home.key, robo.id));
  const { items } = unwrap(await home.rpc.list(home.key, { limit: 9 }));
  expect(items.map(({ toolCall }) => toolCall?.status)).toEqual(["canceled", "canceled", "running", "complete"]);
  expect(code(await home.rpc.answerToolCall(home.as(ann), waits.toolCallId, yes))).toBe("gone");
  expect((await record(home, { ...waits, status: "complete", output: 1 })).toolCall?.status).toBe("canceled");
  await settled(home);
  expect(answersTo(robo)).toEqual([]);
});

test("[B3] however many open calls an agent leaves behind, all of them are canceled", async () => {
  const { home, robo } = await open("ann", "robo");
  for (let index = 0; index < 120; index += 1) await show(home, robo, `c${index}`);
  unwrap(await home.rpc.removeMember(home.key, robo.id));
  await vi.waitFor(async () => {
    await runDurableObjectAlarm(home.stub);
    const { items } = unwrap(await home.rpc.list(home.key, { limit: 200 }));
    expect(new Set(items.map(({ toolCall }) => toolCall?.status))).toEqual(new Set(["canceled"]));
  });
});

test("a tool call cannot be replied to, by nobody", async () => {
  const { home, ann, robo, hal } = await open("ann", "robo", "hal");
  const { id } = await record(home, called(home, robo, "c1"));
  const refused = await home.rpc.post(home.as(ann), { text: "nice", replyTo: id });
  expect(refused).toMatchObject({ problem: { code: "not_repliable", status: 422 } });
  expect(code(await home.rpc.append({ ...said(home, hal, "nice"), replyTo: id }))).toBe("not_repliable");
});

test("a read mark may stand on a tool call, and its receipts are told", async () => {
  const { home, ann, bob, robo } = await open("ann", "bob", "robo");
  const { id } = await record(home, called(home, robo, "c1"));
  expect(unwrap(await home.rpc.latest(home.as(ann))).unreadCount).toBe(1);
  unwrap(await home.rpc.markRead(home.as(ann), id));
  expect(unwrap(await home.rpc.latest(home.as(ann))).unreadCount).toBe(0);
  expect(unwrap(await home.rpc.reads(home.as(bob), id))).toMatchObject([{ name: "Ann" }]);
});

test("an answer by socket is told to all, and a refused one to its sender by the call's id", async () => {
  const { home, ann, bob, robo } = await open("ann", "bob", "robo");
  const call = await show(home, robo, "c1", approval());
  const [one, other] = [await listen(home, home.as(ann)), await listen(home, home.as(bob))];
  const frame = (result: unknown, toolCallId = call.toolCallId) => ({ type: "tool.result", toolCallId, result });
  one.send(frame({ approved: 7 }));
  await one.until("error");
  expect(one.of("error")[0]).toMatchObject({ code: "answer_invalid", toolCallId: call.toolCallId });
  one.send(frame(yes.result));
  await other.until("space.message.updated");
  await one.until("space.message.updated");
  one.send(frame(yes.result));
  await one.until("space.message.updated", 2);
  expect(one.of("space.message.updated")[1]).toEqual(one.of("space.message.updated")[0]);
  other.send(frame(yes.result));
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
  const { home, robo } = await open("ann", "robo");
  await show(home, robo, "c1", question({ expiresAt: inMinutes(1) }));
  unwrap(await home.rpc.remove(home.key));
  await settled(home);
  await pass(home, 61_000);
  expect(await query(home, "SELECT * FROM tool_calls")).toEqual([]);
});

test("[R5] a deleted space ends no calls of an absent agent; it hears only that it left", async () => {
  const { home, robo } = await open("ann", "robo");
  await show(home, robo, "c1", question({ expiresAt: inMinutes(1) }));
  await settled(home);
  answers.set(robo.id, async () => refuse("unavailable", "not now"));
  const rows = () => query(home, "SELECT seq FROM log");
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
  const { home, ann, robo } = await open("ann", "robo");
  const showAll = async (from: number, to: number): Promise<void> => {
    for (let index = from; index < to; index += 1) {
      const call = await show(home, robo, `c${index}`);
      await record(home, { ...call, status: "complete", output: index });
    }
  };
  await showAll(0, 10);
  await settled(home);
  const page = () => home.rpc.list(home.as(ann), { limit: 5 });
  // The caller is read once.
  await page();
  const few = await counted(home, page);
  await showAll(10, 60);
  await settled(home);
  const many = await counted(home, page);
  expect(many.rowsRead).toBe(few.rowsRead);
  expect(many.rowsRead).toBeLessThan(30);
});

test("[R5] a call does not show where it was canceled before, or its agent stopped waiting", async () => {
  const { home, robo } = await open("ann", "robo");
  const first = called(home, robo, "first");
  expect(code(await home.rpc.recordToolCall({ ...first, status: "canceled" }))).toBe("gone");
  expect(code(await home.rpc.recordToolCall({ ...first, until: Date.now() - 1 }))).toBe("unavailable");
  expect(unwrap(await home.rpc.list(home.key, { limit: 10 })).items).toEqual([]);
  await record(home, first);
  const canceled = await record(home, { ...first, status: "canceled", until: Date.now() - 1 });
  expect(canceled.toolCall?.status).toBe("canceled");
});

test("[B3] a space has so many open calls at a time, and one that ends makes room", async () => {
  const { home, robo } = await open("ann", "robo");
  const first = await show(home, robo, "first");
  await runInDurableObject(home.stub, (_, { storage: { sql } }) => {
    sql.exec(
      `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?1)
       INSERT INTO tool_calls (seq, agent_id, is_open, updated_seq, message) SELECT 1000000 + i, ?2, 1, 1, '{}' FROM n`,
      maxOpenToolCalls - 1,
      robo.id,
    );
  });
  const refused = await home.rpc.recordToolCall(called(home, robo, "one more"));
  const problem = { code: "limit_reached", detail: expect.stringContaining("maxOpenToolCalls") };
  expect(refused).toMatchObject({ problem });
  await record(home, { ...first, status: "canceled" });
  await show(home, robo, "one more");
});

test("[B3] a full space takes no message and no call, names the bound, and is read as before", async () => {
  const { home, ann, robo } = await open("ann", "robo");
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
  const problem = { code: "limit_reached", detail: expect.stringContaining("(maxDatabaseBytes)") };
  for (const refused of refusals) expect(refused).toMatchObject({ ok: false, problem });
  expect(unwrap(await home.rpc.list(home.as(ann), { limit: 10 })).items).toEqual([message]);
  expect(unwrap(await home.rpc.post(home.as(ann), { text: "The last one", clientKey: "k1" })).created).toBe(false);
});
