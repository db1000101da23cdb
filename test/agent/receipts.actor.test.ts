import { afterEach, expect, test, vi } from "vitest";
import { maxAttempts } from "../../src/agent/bounds.ts";
import { unwrap } from "../../src/shared/errors.ts";
import { armFault, disarmFaults } from "../../src/shared/fault.ts";
import { createGate } from "../support/gate.ts";
import { apiError, call, refusal, step, text, waitAt } from "../support/scripted-model.ts";
import { type AgentSettings, agentStub, ended, openScene, passTime, runsOf, scripted, waits } from "./fixture.ts";

afterEach(() => void disarmFaults());

const stage = async (settings: Partial<AgentSettings> = {}) => {
  const { house, husam, analyst, space } = await openScene(settings);
  const frames = await space.watch(husam);
  const marks = () => frames.flatMap((frame) => (frame.type === "member.read" ? [frame] : []));
  const readsOf = async (messageId: string) => unwrap(await space.stub().reads(space.as(husam), messageId));
  return { house, husam, analyst, space, frames, marks, readsOf };
};

test("[D3] what a run took is read, with what came of it: an answer, or silence with its reason", async () => {
  const { house, husam, analyst, space, marks, readsOf } = await stage();
  scripted([
    step(call("enter_space", { spaceId: space.id })),
    step(call("send_message", { text: "Here." })),
    step(text("Done.")),
    step(call("skip", { reason: "nothing to add" })),
  ]);
  const asked = await space.post(husam, "Anyone?");
  const [answering] = await ended(house.workspaceId, analyst, 1);
  await vi.waitUntil(() => marks().length === 1);
  const thanked = await space.post(husam, "Thanks");
  const [, silent] = await ended(house.workspaceId, analyst, 2);
  await vi.waitUntil(() => marks().length === 2);
  const mark = { type: "member.read", entityId: analyst.id };
  expect(marks()).toMatchObject([
    { ...mark, messageId: asked.id, runId: answering?.id, outcome: "answered" },
    { ...mark, messageId: thanked.id, runId: silent?.id, outcome: "silent", reason: "nothing to add" },
  ]);
  const reader = { entityId: analyst.id, name: "Analyst", type: "agent", at: expect.any(String) };
  expect(await readsOf(asked.id)).toEqual([{ ...reader, runId: answering?.id, outcome: "answered" }]);
  expect(await readsOf(thanked.id)).toEqual([
    { ...reader, runId: silent?.id, outcome: "silent", reason: "nothing to add" },
  ]);
});

test("a run marks the newest message that it took of each space", async () => {
  const { house, husam, analyst, space, marks, readsOf } = await stage();
  const other = await house.space("Beta", [husam, analyst]);
  const gate = createGate();
  scripted([step(call("skip", {}), waitAt(gate)), step(call("skip", { reason: "all read" }))]);
  await space.post(husam, "zero");
  await gate.reached;
  const [one, two] = [await space.post(husam, "one"), await space.post(husam, "two")];
  const there = await other.post(husam, "there");
  gate.open();
  const [, run] = await ended(house.workspaceId, analyst, 2);
  const silent = { runId: run?.id, outcome: "silent", reason: "all read" };
  await vi.waitUntil(() => marks().length === 2);
  expect(await readsOf(one.id)).toMatchObject([silent]);
  expect(await readsOf(two.id)).toMatchObject([silent]);
  await vi.waitFor(async () => {
    expect(unwrap(await other.stub().reads(other.as(husam), there.id))).toMatchObject([silent]);
  });
});

test("[C7] why a run is silent is told to who is in each space that it took messages of", async () => {
  const { house, husam, analyst, space, frames, readsOf } = await stage();
  const sara = await house.person("Sara");
  const board = await house.space("Board", [sara, analyst]);
  const gate = createGate();
  scripted([step(call("skip", {}), waitAt(gate)), step(call("skip", { reason: "Sara only says what she earns" }))]);
  await space.post(husam, "zero");
  await gate.reached;
  const [here, there] = [await space.post(husam, "Lunch?"), await board.post(sara, "I earn 5000")];
  gate.open();
  const [, run] = await ended(house.workspaceId, analyst, 2);
  const reads = async () => [await readsOf(here.id), unwrap(await board.stub().reads(board.as(sara), there.id))];
  const silent = { runId: run?.id, outcome: "silent" };
  await vi.waitFor(async () => expect(await reads()).toMatchObject([[silent], [silent]]));
  expect(JSON.stringify([frames, await reads()])).not.toContain("earns");
  expect(run?.reason).toContain("earns");
});

test("[R1] [C7] a failed run's event is unread; once dead, it is read and failed, in our words", async () => {
  const { husam, analyst, space, frames, marks, house } = await stage();
  // An input tells of other spaces, and a provider may quote it.
  const quoting = apiError(400, { message: "bad messages[3].content: 'the merger, as Sara said elsewhere'" });
  scripted(Array.from({ length: maxAttempts }, () => refusal(quoting)));
  const { id: messageId } = await space.post(husam, "Try");
  for (let attempt = 1; attempt < maxAttempts; attempt += 1) {
    await ended(house.workspaceId, analyst, attempt);
    expect(marks()).toEqual([]);
    await passTime(analyst, 60_000);
  }
  await ended(house.workspaceId, analyst, maxAttempts);
  await vi.waitUntil(() => marks().length === 1);
  const reason = "The model's provider refused the request (HTTP 400).";
  expect(marks()).toMatchObject([{ entityId: analyst.id, messageId, outcome: "failed", reason }]);
  expect(frames.filter(({ type }) => type === "run.failed")).toHaveLength(maxAttempts);
  expect(JSON.stringify(frames)).not.toContain("merger");
});

test("[R5] a run that is canceled has read what it took and says so", async () => {
  const { house, husam, analyst, space, marks } = await stage();
  const gate = createGate();
  scripted([step(text("never"), waitAt(gate))]);
  const { id: messageId } = await space.post(husam, "Think");
  await gate.reached;
  const [run] = await runsOf(house.workspaceId, analyst);
  unwrap(await agentStub(analyst).cancelRun(house.workspaceId, run?.id ?? ""));
  gate.open();
  await vi.waitUntil(() => marks().length === 1);
  expect(marks()).toMatchObject([{ messageId, runId: run?.id, outcome: "silent", reason: "the run was canceled" }]);
});

test("[D3] [R1] a crash between the commit and the telling leaves the mark told, once", async () => {
  const { house, husam, analyst, space, marks } = await stage();
  scripted([step(call("skip", { reason: "not for me" }))]);
  const crashed = armFault("agent.after-commit");
  const { id: messageId } = await space.post(husam, "Hello?");
  await crashed;
  await passTime(analyst, 26_000);
  await vi.waitUntil(() => marks().length > 0, { timeout: 5000 });
  const [run] = await ended(house.workspaceId, analyst, 1);
  expect(marks()).toMatchObject([{ messageId, runId: run?.id, outcome: "silent", reason: "not for me" }]);
});

test.each(["consciousness", "timeline"] as const)(
  "[K13] what came of each message stays while the agent, a %s, reads on",
  async (continuity) => {
    const { house, husam, analyst, space, marks, readsOf } = await stage({ continuity });
    const enters = continuity === "timeline" ? [] : [step(call("enter_space", { spaceId: space.id }))];
    scripted([
      ...enters,
      step(call("send_message", { text: "Here." })),
      step(text("Done.")),
      step(text("Nothing to add.")),
      step(text("Nothing either.")),
    ]);
    const said: string[] = [];
    for (const words of ["Anyone?", "Thanks", "Bye"]) {
      said.push((await space.post(husam, words)).id);
      await ended(house.workspaceId, analyst, said.length);
      await vi.waitUntil(() => marks().length === said.length);
    }
    const runs = await runsOf(house.workspaceId, analyst);
    const outcomes = ["answered", "silent", "silent"];
    const expected = runs.toReversed().map(({ id: runId }, index) => [{ runId, outcome: outcomes[index] }]);
    expect(await Promise.all(said.map(readsOf))).toMatchObject(expected);
  },
);

test("[K13] a timeline's run that waited has read what it took, and nothing of a run beside it", async () => {
  const { house, husam, analyst, space, marks, readsOf } = await stage({
    continuity: "timeline",
    messaging: "threaded",
  });
  const sara = await house.person("Sara");
  unwrap(await space.stub().addMember({ kind: "key", workspaceId: house.workspaceId, keyId: "key" }, sara));
  const gate = createGate();
  const asks = step(call("send_message", { text: "@Husam which quarter?", wait: true }));
  scripted([asks, step(waitAt(gate), text("Not for me.")), step(text("Noted."))]);
  const numbers = await space.post(husam, "The numbers");
  await waits(house.workspaceId, analyst);
  const aside = await space.post(sara, "Good morning");
  await gate.reached;
  const answer = await space.post(husam, "Q4");
  await vi.waitUntil(() => marks().length === 1);
  const [beside, waited] = await runsOf(house.workspaceId, analyst);
  const unnamed = { entityId: analyst.id, name: "Analyst", type: "agent", at: expect.any(String) };
  expect(await readsOf(aside.id)).toEqual([unnamed]);
  gate.open();
  await ended(house.workspaceId, analyst, 2);
  for (const [{ id }, run] of [
    [numbers, waited],
    [aside, beside],
    [answer, waited],
  ] as const) {
    const outcome = run === waited ? "answered" : "silent";
    await vi.waitFor(async () => expect(await readsOf(id)).toMatchObject([{ runId: run?.id, outcome }]));
  }
});
