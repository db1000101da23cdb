import { env } from "cloudflare:workers";
import { afterEach, expect, test, vi } from "vitest";
import { unwrap } from "../../src/shared/errors.ts";
import { Space } from "../../src/space/space.ts";
import { createGate } from "../support/gate.ts";
import { call, step, text, waitAt } from "../support/scripted-model.ts";
import { ended, inboxOf, openScene, runsOf, scripted } from "./fixture.ts";

afterEach(() => void vi.restoreAllMocks());

const stage = async () => {
  const { house, husam, analyst, space } = await openScene({
    continuity: "timeline",
    limits: { maxConcurrentRuns: 2 },
  });
  return { house, husam, analyst, space, key: house.key, agent: env.AGENT.getByName(analyst.id) };
};

type Stage = Awaited<ReturnType<typeof stage>>;

/** Each way in which others end what an agent is saying. `isGone`: afterwards there is no agent to ask. */
const cuts: [string, { tool?: string; cut: (stage: Stage, runId: string) => Promise<unknown>; isGone?: true }][] = [
  ["its run is canceled", { cut: ({ agent, house }, runId) => agent.cancelRun(house.workspaceId, runId) }],
  ["another run stops it", { tool: "stop_run", cut: ({ space, husam }) => space.post(husam, "Stop") }],
  ["a run absorbs it", { tool: "absorb_run", cut: ({ space, husam }) => space.post(husam, "And this") }],
  ["its space removes it", { cut: ({ space, key, analyst }) => space.stub().removeMember(key, analyst.id) }],
  ["the space is deleted", { cut: ({ space, key }) => space.stub().remove(key) }],
  ["the agent is deleted", { cut: ({ agent, house }) => agent.remove(house.workspaceId), isGone: true }],
];

test.each(cuts)("[R5] [D4] %s as it speaks: its words are taken back at once, never said", async (_, how) => {
  const staged = await stage();
  const { house, husam, analyst, space, agent } = staged;
  const gate = createGate();
  let speaking = "";
  scripted(({ prompt }, index) => {
    if (index === 0) return step(call("send_message", { text: "Never to be said." }), waitAt(gate));
    const isFresh = !prompt.some(({ role }) => role === "tool");
    return isFresh && how.tool ? step(call(how.tool, { runId: speaking })) : step(text("Done."));
  });
  const watching = await space.watch(husam);
  await space.post(husam, "Speak");
  await vi.waitUntil(() => watching.some(({ type }) => type === "tool-input-delta"));
  speaking = (await runsOf(house.workspaceId, analyst))[0]?.id ?? "";
  await how.cut(staged, speaking);
  // The model is still in the middle of its answer: nothing but the cut can have taken the words back.
  await vi.waitUntil(() => watching.some(({ type }) => type === "tool-call.error"));
  await vi.waitUntil(() => watching.some(({ type }) => type === "agent.inactive"));
  gate.open();
  if (how.isGone) {
    expect(await agent.describe(house.workspaceId)).toMatchObject({ ok: false, problem: { code: "not_found" } });
  } else {
    await ended(house.workspaceId, analyst, how.tool ? 2 : 1);
    expect(await inboxOf(house.workspaceId, analyst)).toEqual([]);
    expect(unwrap(await agent.describe(house.workspaceId)).activity?.state).toBe("idle");
  }
  expect(watching.filter(({ type }) => type === "tool-call.error")).toHaveLength(1);
  const said = watching.flatMap((frame) => (frame.type === "space.message" ? [frame.message.sender.name] : []));
  expect(new Set(said)).toEqual(new Set(["Husam"]));
});

test("[R5] [R2] what a space takes in after its run was canceled is not said, however late", async () => {
  const { house, husam, analyst, space, agent } = await stage();
  scripted(() => step(call("send_message", { text: "Never to be said." })));
  const gate = createGate();
  const { append } = Space.prototype;
  const hung = vi.fn<() => void>();
  vi.spyOn(Space.prototype, "append").mockImplementation(async function (this: Space, message) {
    gate.reach();
    await gate.opened;
    return append.call(this, message).finally(hung);
  });
  await space.post(husam, "Speak");
  await gate.reached;
  const [run] = await runsOf(house.workspaceId, analyst);
  expect(unwrap(await agent.cancelRun(house.workspaceId, run?.id ?? "")).status).toBe("canceled");
  gate.open();
  await vi.waitFor(() => expect(hung).toHaveBeenCalled());
  expect(await space.texts()).toEqual(["Husam: Speak"]);
});

test("[R3] [R2] a message that its space stored and never confirmed is told as possibly said", async () => {
  const { house, husam, analyst, space } = await stage();
  scripted([step(call("send_message", { text: "Said." })), step(text("Done."))]);
  const { append } = Space.prototype;
  vi.spyOn(Space.prototype, "append").mockImplementation(async function (this: Space, message) {
    await append.call(this, message);
    throw new Error("overloaded");
  });
  await space.post(husam, "Speak");
  const [run] = await ended(house.workspaceId, analyst, 1);
  expect(await space.texts()).toEqual(["Husam: Speak", "Analyst: Said."]);
  expect(run?.steps[0]?.toolCalls[0]).toMatchObject({ output: { error: { code: "outcome_unknown" } } });
});

test("[D4] what a re-invited agent says is not mixed with the stream that its removal cut", async () => {
  const { house, husam, analyst, space, key } = await stage();
  const gate = createGate();
  const speaking = [call("send_message", { text: "Said after all." }), waitAt(gate)];
  scripted([step(...speaking), step(text("Done."))]);
  const watching = await space.watch(husam);
  await space.post(husam, "Speak");
  await vi.waitUntil(() => watching.some(({ type }) => type === "tool-input-delta"));
  unwrap(await space.stub().removeMember(key, analyst.id));
  unwrap(await space.stub().addMember(key, analyst));
  await vi.waitUntil(() => watching.some(({ type }) => type === "tool-call.error"));
  gate.open();
  await ended(house.workspaceId, analyst, 1);
  await vi.waitFor(async () => expect(await space.texts()).toEqual(["Husam: Speak", "Analyst: Said after all."]));
  const takenBack = watching.flatMap((frame) => (frame.type === "tool-call.error" ? [frame.streamId] : []));
  const [, said] = await space.messages();
  expect(takenBack).toHaveLength(1);
  expect(said?.streamId).not.toBe(takenBack[0]);
});
