import { beforeAll, expect, test, vi } from "vitest";
import type { AgentToolCall, EntityRef } from "../../src/protocol/rpc.ts";
import { jsonHash } from "../../src/shared/canonical-json.ts";
import { type Outcome, ok, unwrap } from "../../src/shared/errors.ts";
import { maxExpiredAtOnce } from "../../src/space/bounds.ts";
import { Workspace } from "../../src/workspace/workspace.ts";
import { undoLater } from "../agent/fixture.ts";
import { createGate } from "../support/gate.ts";
import { apiError, installModel, refusal, scriptedModel, step, text, waitAt } from "../support/scripted-model.ts";
import {
  answersTo,
  called,
  compartmentOf,
  deliveredTo,
  entity,
  followed,
  type House,
  heardBy,
  house,
  ids,
  recordReceivers,
  said,
  settled,
} from "./fixture.ts";
import { listen } from "./listener.ts";

beforeAll(recordReceivers);

const restore = undoLater();

const cast = () => ({
  ann: entity("human", "Ann"),
  ben: entity("human", "Ben"),
  robo: entity("agent", "Robo"),
  hal: entity("agent", "Hal"),
});

const say = async (home: House, who: EntityRef, text: string) =>
  unwrap(await home.rpc.post(home.as(who), { text })).message;

const seal = async (home: House): Promise<void> => void unwrap(await home.rpc.update(home.key, { confidential: true }));

/** What an agent's run in its compartment says or shows. */
const fromCompartment = (home: House, agent: EntityRef) => ({ mindId: compartmentOf(agent, home).id });

const calledInside = (home: House, agent: EntityRef, call: string, more: Partial<AgentToolCall> = {}) => {
  const { mindId } = fromCompartment(home, agent);
  const toolCallId = ids.deriveOwned("tc", mindId, call);
  const messageId = ids.deriveOwned("msg", home.space.id, toolCallId);
  return called(home, agent, call, { mindId, toolCallId, messageId, ...more });
};

const question = { kind: "answer", approvers: undefined, quorum: 1, expiresAt: "2099-01-01T00:00:00.000Z" } as const;
const asks = { status: "requires_action", awaits: question } as const;

const problemOf = (outcome: Outcome<unknown>): string =>
  outcome.ok ? "none" : `${outcome.problem.code}: ${outcome.problem.detail}`;

test("[C17] what is said in a confidential space is delivered to compartments alone", async () => {
  const { ann, robo, hal } = cast();
  const home = await house([ann, robo, hal], { confidential: true });
  await say(home, ann, "one");
  unwrap(await home.rpc.append({ ...said(home, robo, "two"), ...fromCompartment(home, robo) }));
  await vi.waitFor(() => expect(heardBy(compartmentOf(hal, home))).toEqual(["one", "two"]));
  await settled(home);
  expect(heardBy(compartmentOf(robo, home))).toEqual(["one"]);
  expect([heardBy(robo), heardBy(hal)]).toEqual([[], []]);
  const [told] = deliveredTo(compartmentOf(hal, home));
  expect(told).toMatchObject({ compartment: { mindId: compartmentOf(hal, home).id, agentId: hal.id } });
  expect(told?.space).toMatchObject({ confidential: true });
  expect(told).not.toHaveProperty("openUpTo");
  expect(deliveredTo(hal)[0]).toMatchObject({ openUpTo: 0 });
  expect(deliveredTo(hal)[0]).not.toHaveProperty("compartment");
});

test("[C17] from the switch on each agent's compartment is told, and its open mind is not", async () => {
  const { ann, robo } = cast();
  const home = await house([ann, robo]);
  await say(home, ann, "open");
  await vi.waitFor(() => expect(heardBy(robo)).toEqual(["open"]));
  await seal(home);
  await vi.waitFor(() => expect(deliveredTo(robo).at(-1)?.space.confidential).toBe(true));
  await settled(home);
  const toldInside = deliveredTo(compartmentOf(robo, home)).map(({ messages, after, cursor }) => [
    messages,
    cursor - after,
  ]);
  expect(toldInside).toEqual([[[], 1]]);
  const before = deliveredTo(robo).length;
  for (const text of ["secret", "@Robo: secret"]) await say(home, ann, text);
  await vi.waitFor(() => expect(heardBy(compartmentOf(robo, home))).toEqual(["secret", "@Robo: secret"]));
  await settled(home);
  expect(deliveredTo(robo)).toHaveLength(before);
  unwrap(await home.rpc.renameMember(home.workspaceId, ann.id, "Anna"));
  await settled(home);
  const names = (agent: EntityRef) =>
    deliveredTo(agent)
      .at(-1)
      ?.space.members.map(({ name }) => name);
  expect([names(robo), names(compartmentOf(robo, home))]).toEqual([
    ["Anna", "Robo"],
    ["Anna", "Robo"],
  ]);
  expect(heardBy(robo)).toEqual(["open"]);
});

test("[C17] an agent that leaves and comes back hears each stay once, and its compartment too", async () => {
  const { ann, robo } = cast();
  const home = await house([ann, robo], { confidential: true });
  const inside = compartmentOf(robo, home);
  await say(home, ann, "one");
  unwrap(await home.rpc.removeMember(home.key, robo.id));
  await say(home, ann, "not for you");
  unwrap(await home.rpc.addMember(home.key, robo));
  await say(home, ann, "two");
  await vi.waitFor(() => expect(heardBy(inside)).toEqual(["one", "two"]));
  await settled(home);
  expect(deliveredTo(inside).filter(({ left }) => left)).toHaveLength(1);
  expect(deliveredTo(robo).filter(({ left }) => left)).toHaveLength(1);
  expect(heardBy(robo)).toEqual([]);
});

test("[C17] a deleted space tells the compartment of each agent that was in since the switch", async () => {
  const { ann, robo, hal } = cast();
  const home = await house([ann, robo, hal]);
  unwrap(await home.rpc.removeMember(home.key, hal.id));
  await seal(home);
  await say(home, ann, "secret");
  unwrap(await home.rpc.removeMember(home.key, robo.id));
  await settled(home);
  unwrap(await home.rpc.remove(home.key));
  await vi.waitFor(() => expect(deliveredTo(hal).at(-1)?.space.deleted).toBe(true));
  await settled(home);
  for (const mind of [robo, compartmentOf(robo, home)]) {
    expect(deliveredTo(mind).at(-1)).toMatchObject({ left: true, space: { deleted: true, name: "", members: [] } });
  }
  expect(deliveredTo(compartmentOf(hal, home))).toEqual([]);
});

test("[C17] a message that the router has yet to decide about holds up no open mind", async () => {
  const { ann, ben, robo } = cast();
  const gate = createGate();
  restore.push(installModel(scriptedModel([step(waitAt(gate), text(JSON.stringify({ wake: ["Robo"] })))])));
  const router = { model: { provider: "rehearsal" as const, deltasPerSecond: 0 }, maxTokensPerDay: 200_000 };
  const home = await house([ann, robo], { wakePolicy: "addressed", router, confidential: true });
  unwrap(await home.rpc.addMember(home.key, ben));
  await settled(home);
  await say(home, ann, "for whom?");
  await gate.reached;
  unwrap(await home.rpc.renameMember(home.workspaceId, ben.id, "Benny"));
  const names = (agent: EntityRef) =>
    deliveredTo(agent)
      .at(-1)
      ?.space.members.map(({ name }) => name);
  await vi.waitFor(() => expect(names(robo)).toEqual(["Ann", "Robo", "Benny"]));
  expect(names(compartmentOf(robo, home))).toEqual(["Ann", "Robo", "Ben"]);
  gate.open();
  await vi.waitFor(() => expect(heardBy(compartmentOf(robo, home))).toEqual(["for whom?"]));
});

test("[C19] what a router's provider says of its input is in no log line", async () => {
  const { ann, ben, robo } = cast();
  const lines = (["log", "info", "warn", "error"] as const).map((level) => vi.spyOn(console, level));
  restore.push(installModel(scriptedModel([refusal(apiError(400, { message: "no Kestrel here" }))])));
  const router = { model: { provider: "rehearsal" as const, deltasPerSecond: 0 }, maxTokensPerDay: 200_000 };
  const home = await house([ann, ben, robo], { wakePolicy: "addressed", router, confidential: true });
  const { id: messageId } = await say(home, ann, "Kestrel");
  const routed = async () => unwrap(await home.rpc.routing(home.key, messageId));
  await vi.waitFor(async () => expect(await routed()).toMatchObject({ error: { code: "model_rejected" } }));
  const written = lines.flatMap(({ mock }) => mock.calls.flat()).join("\n");
  expect(written).toContain(messageId);
  expect(written).not.toContain("Kestrel");
});

test("[C19] an admin who is no member sets no router that reads a confidential space", async () => {
  const { ann, ben } = cast();
  const router = { model: { provider: "rehearsal" as const, deltasPerSecond: 0 }, maxTokensPerDay: 200_000 };
  const home = await house([ann], { confidential: true });
  const boss = home.as(ben, true);
  const refused = await home.rpc.update(boss, { router });
  expect(problemOf(refused)).toMatch(/^forbidden: .* join it first/);
  expect(unwrap(await home.rpc.describe(home.key)).router).toBeUndefined();
  unwrap(await home.rpc.update(boss, { name: "Board" }));
  unwrap(await home.rpc.update(home.as(ann, true), { router }));
  unwrap(await home.rpc.update(home.key, { router: null }));
  // Nor does one begin to read with the switch.
  const open = await house([ann]);
  expect(problemOf(await open.rpc.update(open.as(ben, true), { confidential: true, router }))).toMatch(/^forbidden/);
  unwrap(await open.rpc.update(open.as(ben, true), { router }));
  expect(problemOf(await open.rpc.update(open.as(ben, true), { confidential: true }))).toMatch(/^forbidden/);
  unwrap(await open.rpc.addMember(open.key, ben));
  unwrap(await open.rpc.update(open.as(ben, true), { confidential: true }));
});

test("[C17] [B3] the switch withdraws all that open minds asked; later answers go inside", async () => {
  const { ann, robo } = cast();
  const home = await house([ann, robo]);
  const open = Array.from({ length: maxExpiredAtOnce + 1 }, (_, index) => called(home, robo, `open ${index}`, asks));
  for (const call of open) unwrap(await home.rpc.recordToolCall(call));
  await seal(home);
  const answer = ({ toolCallId }: AgentToolCall) =>
    home.rpc.answerToolCall(home.as(ann), toolCallId, { result: "yes" });
  for (const call of [...open.slice(0, 1), ...open.slice(-1)]) {
    expect(problemOf(await answer(call))).toMatch(/^gone: .* became confidential, .* let the agent ask here again/);
  }
  const kept = calledInside(home, robo, "kept", asks);
  unwrap(await home.rpc.recordToolCall(kept));
  unwrap(await answer(kept));
  const idsOf = (agent: EntityRef) => answersTo(agent).map(({ toolCallId }) => toolCallId);
  await vi.waitFor(() => expect(idsOf(compartmentOf(robo, home))).toEqual([kept.toolCallId]));
  await vi.waitFor(async () => {
    const { items } = unwrap(await home.rpc.list(home.key, { limit: 100 }));
    expect(items.filter(({ toolCall }) => toolCall?.status === "canceled")).toHaveLength(open.length);
  });
  await settled(home);
  expect(idsOf(robo)).toEqual([]);
});

/** What a mind of the agent reads, in three ways. `mindId` left out: its open mind. */
const readBy = async (home: House, agent: EntityRef, mindId?: string) => {
  const { workspaceId, rpc } = home;
  const window = unwrap(await rpc.window(workspaceId, agent.id, { limit: 50, offset: 0 }, mindId));
  const history = unwrap(await rpc.history(workspaceId, agent.id, { after: 0, limit: 50 }, mindId));
  const texts = (messages: { text?: string | undefined }[]) => messages.map((message) => message.text).join(" ");
  return { window: texts(window.messages), total: window.total, history: texts(history.messages), more: history.more };
};

test("[C17] an open mind reads nothing of a space that was confidential from its creation", async () => {
  const { ann, robo } = cast();
  const home = await house([ann, robo], { confidential: true });
  const { id } = await say(home, ann, "secret");
  const nothing = { window: "", total: 0, history: "", more: false };
  expect(await readBy(home, robo)).toEqual(nothing);
  expect(await readBy(home, robo, ids.mint("ent"))).toEqual(nothing);
  expect(await home.rpc.message(home.workspaceId, robo.id, id)).toMatchObject({ problem: { code: "not_found" } });
  const { mindId } = fromCompartment(home, robo);
  expect(await readBy(home, robo, mindId)).toEqual({ window: "secret", total: 1, history: "secret", more: false });
  expect(unwrap(await home.rpc.message(home.workspaceId, robo.id, id, mindId))).toMatchObject({ text: "secret" });
});

test("[C17] an open mind reads up to the switch, and counts no more than that", async () => {
  const { ann, robo } = cast();
  const home = await house([ann, robo]);
  const [first] = [await say(home, ann, "one"), await say(home, ann, "two")];
  await seal(home);
  const { seq } = await say(home, ann, "secret");
  await say(home, ann, "secret");
  expect(await readBy(home, robo)).toEqual({ window: "one two", total: 2, history: "one two", more: false });
  const all = "one two secret secret";
  const { mindId } = fromCompartment(home, robo);
  expect(await readBy(home, robo, mindId)).toEqual({ window: all, total: 4, history: all, more: false });
  const { workspaceId, rpc } = home;
  expect(unwrap(await rpc.message(workspaceId, robo.id, first.id)).newer).toBe(1);
  expect(unwrap(await rpc.message(workspaceId, robo.id, first.id, mindId)).newer).toBe(3);
  const past = unwrap(await rpc.history(workspaceId, robo.id, { after: seq, limit: 1 }));
  expect([past.before?.text, past.messages, past.more]).toEqual(["two", [], false]);
  const cursorOf = async (after: number) =>
    unwrap(await rpc.history(workspaceId, robo.id, { after, limit: 9 })).cursor - first.seq;
  expect([await cursorOf(0), await cursorOf(seq)]).toEqual([2, 2]);
  const [older] = unwrap(await rpc.window(workspaceId, robo.id, { limit: 1, offset: 1 })).messages;
  expect(older?.text).toBe("one");
});

test("[C17] a compartment reads open spaces as its agent does", async () => {
  const { ann, robo, hal } = cast();
  const [home, kept] = [await house([ann, robo]), await house([ann, robo], { confidential: true })];
  await say(home, ann, "open");
  const { mindId } = fromCompartment(kept, robo);
  expect(await readBy(home, robo, mindId)).toMatchObject({ window: "open", total: 1 });
  const strange = await home.rpc.window(home.workspaceId, hal.id, { limit: 1, offset: 0 }, mindId);
  expect(strange).toMatchObject({ problem: { code: "not_a_member" } });
});

test("[C17] a call that changes after the switch is shown to other open minds as it stood then", async () => {
  const { ann, robo, hal } = cast();
  const home = await house([ann, robo, hal]);
  const call = called(home, robo, "one");
  unwrap(await home.rpc.recordToolCall(call));
  unwrap(await home.rpc.recordToolCall(called(home, robo, "two", asks)));
  await seal(home);
  unwrap(await home.rpc.recordToolCall({ ...call, status: "complete", output: "late" }));
  const callsFor = async (agent: EntityRef, mindId?: string) => {
    const page = { limit: 9, offset: 0 };
    const { messages } = unwrap(await home.rpc.window(home.workspaceId, agent.id, page, mindId));
    return messages.map(({ toolCall }) => [toolCall?.status, toolCall?.output]);
  };
  // All see the withdrawn calls as canceled.
  const open = ["canceled", undefined];
  expect(await callsFor(hal)).toEqual([["running", undefined], open]);
  expect(await callsFor(hal, fromCompartment(home, hal).mindId)).toEqual([["complete", "late"], open]);
  expect(await callsFor(robo)).toEqual([["complete", "late"], open]);
});

test("[C18] an open mind may speak into a confidential space, and may not wait for its people", async () => {
  const { ann, robo } = cast();
  const home = await house([ann, robo], { confidential: true });
  unwrap(await home.rpc.append(said(home, robo, "for you")));
  const waits = await home.rpc.append({ ...said(home, robo, "well?"), awaits: [ann.id] });
  const expects = await home.rpc.append({ ...said(home, robo, "so?"), expectsReply: true });
  const approval = await home.rpc.recordToolCall(called(home, robo, "asks", asks));
  for (const refused of [waits, expects, approval]) {
    expect(problemOf(refused)).toMatch(/^forbidden: This space is confidential: .* Say it without waiting/);
  }
  unwrap(await home.rpc.recordToolCall(called(home, robo, "shows")));
  const inside = { ...said(home, robo, "you?"), awaits: [ann.id], ...fromCompartment(home, robo) };
  unwrap(await home.rpc.append(inside));
  unwrap(await home.rpc.recordToolCall(calledInside(home, robo, "asks", asks)));
  const { items } = unwrap(await home.rpc.list(home.key, { limit: 50 }));
  expect(items.map(({ text, toolCall }) => text ?? toolCall?.status)).toEqual([
    ...["for you", "running", "you?", "requires_action"],
  ]);
});

test("[C18] the compartment of one space says, shows and streams nothing in another", async () => {
  const { ann, robo } = cast();
  const kept = await house([ann, robo], { confidential: true });
  const { mindId } = fromCompartment(kept, robo);
  for (const home of [await house([ann, robo]), await house([ann, robo], { confidential: true })]) {
    const call = calledInside(kept, robo, "shows");
    const messageId = ids.deriveOwned("msg", home.space.id, call.toolCallId);
    const open = { workspaceId: home.workspaceId, agentId: robo.id, mindId, runId: call.runId };
    const refused = [
      await home.rpc.append({ ...said(home, robo, "secret"), mindId }),
      await home.rpc.recordToolCall({ ...call, workspaceId: home.workspaceId, messageId }),
      await home.rpc.speak(open, new IdentityTransformStream().readable),
    ];
    for (const each of refused) expect(problemOf(each)).toMatch(/^forbidden: A run of a confidential space speaks/);
    expect(unwrap(await home.rpc.list(home.key, { limit: 50 })).items).toEqual([]);
  }
});

test("a run in a compartment is present, streams and marks what it read as its agent", async () => {
  const { ann, robo } = cast();
  const home = await house([ann, robo], { confidential: true });
  const socket = await listen(home, home.as(ann));
  const { id: messageId } = await say(home, ann, "secret");
  const { mindId } = fromCompartment(home, robo);
  const runId = ids.deriveOwned("run", mindId, "one");
  const { readable, writable } = new IdentityTransformStream();
  const answer = home.rpc.speak({ workspaceId: home.workspaceId, agentId: robo.id, mindId, runId }, readable);
  const writer = writable.getWriter();
  const read = { type: "read", messageId, outcome: "silent" };
  for (const frame of [{ type: "active" }, read, { type: "end" }]) {
    await writer.write(new TextEncoder().encode(`${JSON.stringify(frame)}\n`));
  }
  unwrap(await answer);
  await socket.until("agent.inactive");
  expect(socket.of("agent.active")).toEqual([{ type: "agent.active", entityId: robo.id, runId }]);
  expect(unwrap(await home.rpc.reads(home.key, messageId))).toMatchObject([{ entityId: robo.id, runId }]);
});

test("a space becomes confidential once, by who runs it, and never open again", async () => {
  const { ann, ben, robo } = cast();
  const home = await house([ann, ben, robo], { createdBy: ann });
  expect(problemOf(await home.rpc.update(home.as(ben), { confidential: true }))).toMatch(/^forbidden/);
  expect(unwrap(await home.rpc.update(home.as(ann), { confidential: false })).confidential).toBeUndefined();
  const sealed = unwrap(await home.rpc.update(home.as(ann), { confidential: true }));
  expect(sealed.confidential).toBe(true);
  const opened = await home.rpc.update(home.key, { name: "Open", confidential: false });
  expect(problemOf(opened)).toMatch(/^conflict: A confidential space stays confidential: make a new space/);
  await say(home, ann, "secret");
  unwrap(await home.rpc.update(home.key, { confidential: true, name: "Vault" }));
  expect(unwrap(await home.rpc.describe(home.key))).toMatchObject({ name: "Vault", confidential: true });
  expect(await readBy(home, robo)).toMatchObject({ total: 0 });
  expect(followed.get(home.workspaceId)?.at(-1)?.space).toMatchObject({ name: "Vault", confidential: true });
});

test("[C19] who asks in its maker's name for a confidential space again is shown no router", async () => {
  const { ann, robo } = cast();
  const model = { provider: "rehearsal", deltasPerSecond: 8 } as const;
  const router = { instructions: "Wake Robo", model, maxTokensPerDay: 1000 };
  const home = await house([ann, robo], { createdBy: ann, confidential: true, router });
  const { id, name, wakePolicy, shareOrigin } = home.space;
  const settings = { name, wakePolicy, shareOrigin, confidential: true };
  const again = await home.rpc.create({ id, workspaceId: home.workspaceId, settings, members: [], createdBy: ann.id });
  expect(unwrap(again).id).toBe(id);
  expect(unwrap(again).router).toBeUndefined();
  expect(unwrap(await home.rpc.describe(home.key)).router).toMatchObject({ instructions: "Wake Robo" });
});

test("a release names people of a confidential space, and no more of them than there are", async () => {
  const { ann, ben, robo } = cast();
  const open = await house([ann, robo]);
  expect(problemOf(await open.rpc.update(open.key, { release: { quorum: 1 } }))).toMatch(
    /^invalid_request: release: only a confidential space has one/,
  );
  const home = await house([ann, robo], { confidential: true, release: { quorum: 1 } });
  expect(home.space.release).toEqual({ quorum: 1 });
  for (const stranger of [ben.id, robo.id]) {
    const release = { approvers: [ann.id, stranger], quorum: 1 };
    expect(problemOf(await home.rpc.update(home.key, { release }))).toMatch(
      new RegExp(`^unknown_reference: release.approvers: ${stranger}`),
    );
  }
  const many = await home.rpc.update(home.key, { release: { approvers: [ann.id, ann.id], quorum: 2 } });
  expect(problemOf(many)).toMatch(/^invalid_request: release.quorum: 2 must agree, and release.approvers names 1/);
  expect(unwrap(await home.rpc.describe(home.key)).release).toEqual({ quorum: 1 });
  const release = { approvers: [ann.id], quorum: 1 };
  expect(unwrap(await home.rpc.update(home.key, { release })).release).toEqual(release);
  // An approver who has left does not keep the space from being changed.
  unwrap(await home.rpc.removeMember(home.key, ann.id));
  expect(unwrap(await home.rpc.update(home.key, { name: "Vault" })).release).toEqual(release);
  expect(unwrap(await home.rpc.update(home.key, { release: null })).release).toBeUndefined();
});

test.each([true, false])("[C19] [L3] no hash of a confidential call is in the audit log: %s", async (confidential) => {
  const told: string[] = [];
  vi.spyOn(Workspace.prototype, "noteAudit").mockImplementation(async (note) => {
    told.push(JSON.stringify(note));
    return ok(null);
  });
  const { ann, robo } = cast();
  const home = await house([ann, robo], { confidential });
  const compartment = compartmentOf(robo, home);
  const toolCallId = ids.deriveOwned("tc", confidential ? compartment.id : robo.id, "fire");
  const input = { text: "We let Ben go" };
  const awaits = { ...question, kind: "approval" } as const;
  const messageId = ids.deriveOwned("msg", home.space.id, toolCallId);
  const mind = confidential ? { mindId: compartment.id } : {};
  const call = { ...called(home, robo, "fire"), ...mind, toolCallId, messageId, input };
  unwrap(await home.rpc.recordToolCall({ ...call, status: "requires_action", awaits }));
  const inputHash = jsonHash(input);
  unwrap(await home.rpc.answerToolCall(home.as(ann), toolCallId, { result: { approved: true, inputHash } }));
  await vi.waitFor(() => expect(told.join()).toContain("approval.answered"));
  // A hash would prove a guess of the words.
  expect(told.join().includes(inputHash)).toBe(!confidential);
});

test("[L4] [L18] an answered confidential call is deleted once its compartment has heard", async () => {
  const { ann, robo } = cast();
  const home = await house([ann, robo], { confidential: true });
  const { id, toolCall } = unwrap(await home.rpc.recordToolCall(calledInside(home, robo, "ask", asks)));
  unwrap(await home.rpc.answerToolCall(home.as(ann), toolCall?.id ?? "", { result: "yes" }));
  await vi.waitFor(() => expect(answersTo(compartmentOf(robo, home))).toHaveLength(1));
  await settled(home);
  expect(problemOf(await home.rpc.deleteMessage(home.key, id))).toBe("none");
});
