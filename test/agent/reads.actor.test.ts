import { env } from "cloudflare:workers";
import { expect, test } from "vitest";
import { searchNewsMs } from "../../src/agent/bounds.ts";
import type { AgentConfig } from "../../src/protocol/agent.ts";
import { maxToldReads } from "../../src/protocol/run.ts";
import type { ShareOrigin } from "../../src/protocol/space.ts";
import { unwrap } from "../../src/shared/errors.ts";
import { compartmentId } from "../../src/shared/ids.ts";
import { createGate } from "../support/gate.ts";
import { call, type ScriptedPart, step, text, waitAt } from "../support/scripted-model.ts";
import { toolOf } from "../support/tool-of.ts";
import { ended, ids, openHouse, passTime, runsOf, scripted, told } from "./fixture.ts";

/** Bob asks in General. The agent is also in Board, with Alice and Carol, where Bob is not. */
const kinds = ["timeline", "consciousness"] as const;

const key = (workspaceId: string) => ({ kind: "key", workspaceId, keyId: "key" }) as const;

const stage = async (continuity: AgentConfig["continuity"], shareOrigin: ShareOrigin = "name") => {
  const house = await openHouse();
  const [alice, bob, carol] = [await house.person("Alice"), await house.person("Bob"), await house.person("Carol")];
  const show = toolOf({ name: "lookUp", executionType: "internal", visible: true });
  const analyst = await house.agent({ name: "Analyst", continuity, tools: [show] });
  const board = await house.space("Board", [alice, carol, analyst]);
  const general = await house.space("General", [bob, analyst]);
  const { workspaceId } = house;
  unwrap(await board.stub().update(key(workspaceId), { shareOrigin }));
  const agent = env.AGENT.getByName(analyst.id);
  const read = { spaceId: board.id, name: "Board", members: 3 };
  /** Something lies in Board that no run of the agent is asked about any more. */
  scripted(() => step(text("Read.")));
  await board.post(alice, "The budget is 9000");
  await ended(workspaceId, analyst, 1);
  const said = async () => (await general.messages()).at(-1);
  return { ...house, alice, bob, analyst, board, general, agent, read, said };
};

const ways: [string, (spaceId: string) => ScriptedPart[]][] = [
  ["read_messages", (spaceId) => [call("read_messages", { spaceId })]],
  ["search", () => [call("search", { query: "budget" })]],
];

test.for(kinds.flatMap((kind) => ways.map(([tool, look]) => [kind, tool, look] as const)))(
  "[C8] a %s that read another space by %s tells those who asked which",
  async ([continuity, , look]) => {
    const { bob, analyst, board, general, agent, read, said, workspaceId } = await stage(continuity);
    const frames = await general.watch(bob);
    const steps = [
      step(call("enter_space", { spaceId: general.id })),
      step(...look(board.id)),
      step(call("send_message", { text: "It is 9000." })),
    ];
    scripted(() => steps.shift() ?? step(text("Told.")));
    await general.post(bob, "What is the budget?");
    const [, run] = await ended(workspaceId, analyst, 2);
    const answer = await said();
    expect(answer).toMatchObject({ text: "It is 9000.", reads: [read] });
    const events = frames.filter(({ type }) => type === "run.started" || type === "run.completed");
    expect(events.map((event) => ("reads" in event ? event.reads : undefined))).toEqual([undefined, [read]]);
    const [question] = await general.messages();
    const receipts = unwrap(await general.stub().reads(general.as(bob), question?.id ?? ""));
    expect(receipts).toMatchObject([{ name: "Analyst", outcome: "answered", reads: [read] }]);
    expect(frames).toContainEqual(expect.objectContaining({ type: "member.read", reads: [read] }));
    // General itself was entered: to whom holds the workspace's key, that is told too.
    expect(unwrap(await agent.run(workspaceId, run?.id ?? "")).reads).toContainEqual(read);
  },
);

const tellings = (spaceId: string) =>
  [
    ["text", { spaceId, name: "Board", members: 3 }],
    ["reference", { spaceId }],
    ["none", {}],
  ] as const;

test.for(kinds.flatMap((kind) => tellings("").map(([setting], index) => [kind, setting, index] as const)))(
  "[C7] [C8] a %s tells of a space it read no more than its shareOrigin %s",
  async ([continuity, shareOrigin, index]) => {
    const { bob, analyst, board, general, agent, read, said, workspaceId } = await stage(continuity, shareOrigin);
    const frames = await general.watch(bob);
    const steps = [
      step(call("enter_space", { spaceId: general.id })),
      step(call("read_messages", { spaceId: board.id })),
      step(call("lookUp", {}), call("send_message", { text: "It is 9000." })),
    ];
    scripted(() => steps.shift() ?? step(text("Told.")));
    await general.post(bob, "What is the budget?");
    const [, run] = await ended(workspaceId, analyst, 2);
    const reads = [tellings(board.id)[index]?.[1]];
    const card = (await general.messages()).find(({ kind }) => kind === "tool_call");
    expect([card?.reads, (await said())?.reads]).toEqual([reads, reads]);
    const [question] = await general.messages();
    const receipts = unwrap(await general.stub().reads(general.as(bob), question?.id ?? ""));
    expect(receipts.map((each) => each.reads)).toEqual([reads]);
    if (shareOrigin !== "text") expect(JSON.stringify(frames)).not.toContain("Board");
    if (shareOrigin === "none") expect(JSON.stringify(frames)).not.toContain(board.id);
    // The workspace's key sees all of it.
    expect(unwrap(await agent.run(workspaceId, run?.id ?? "")).reads).toContainEqual(read);
  },
);

test("[C8] several spaces that tell nothing of themselves are told as one", async () => {
  const { bob, analyst, board, general, space, said, workspaceId } = await stage("timeline", "none");
  const lab = await space("Lab", [analyst]);
  unwrap(await lab.stub().update(key(workspaceId), { shareOrigin: "none" }));
  await told(lab.id);
  const steps = [
    step(...[board, lab].map(({ id: spaceId }) => call("read_messages", { spaceId }))),
    step(call("enter_space", { spaceId: general.id }), call("send_message", { text: "Both read." })),
  ];
  scripted(() => steps.shift() ?? step(text("Told.")));
  await general.post(bob, "Read both");
  await ended(workspaceId, analyst, 2);
  expect((await said())?.reads).toEqual([{}]);
});

test.for(kinds)("[C17] a %s that read a space which is confidential now does not name it", async (continuity) => {
  const { bob, analyst, board, general, agent, said, workspaceId } = await stage(continuity);
  unwrap(await board.stub().update(key(workspaceId), { confidential: true }));
  await told(board.id);
  const steps = [
    step(call("enter_space", { spaceId: general.id })),
    step(call("read_messages", { spaceId: board.id })),
    step(call("send_message", { text: "It is 9000." })),
  ];
  scripted(() => steps.shift() ?? step(text("Told.")));
  await general.post(bob, "What is the budget?");
  const [, run] = await ended(workspaceId, analyst, 2);
  // It knows what was said before.
  const output = run?.steps.flatMap(({ toolCalls }) => toolCalls).find(({ name }) => name === "read_messages")?.output;
  expect(JSON.stringify(output)).toContain("The budget is 9000");
  expect((await said())?.text).toBe("It is 9000.");
  const receipts = unwrap(await general.stub().reads(general.as(bob), (await general.messages())[0]?.id ?? ""));
  expect(JSON.stringify([receipts, await said()])).not.toContain(board.id);
  expect(JSON.stringify(unwrap(await agent.run(workspaceId, run?.id ?? "")).reads ?? [])).not.toContain(board.id);
});

test.for(kinds)("[C17] the run of a %s does not tell that it read what is confidential now", async (continuity) => {
  const { bob, analyst, board, general, agent, read, workspaceId } = await stage(continuity);
  const steps = [
    step(call("enter_space", { spaceId: general.id })),
    step(call("read_messages", { spaceId: board.id })),
    step(call("send_message", { text: "It is 9000." })),
  ];
  scripted(() => steps.shift() ?? step(text("Told.")));
  await general.post(bob, "What is the budget?");
  const [, run] = await ended(workspaceId, analyst, 2);
  const reads = async () => unwrap(await agent.run(workspaceId, run?.id ?? "")).reads ?? [];
  expect(await reads()).toContainEqual(read);
  unwrap(await board.stub().update(key(workspaceId), { confidential: true }));
  await told(board.id);
  // Not even as a space without a name.
  expect((await reads()).filter(({ spaceId }) => spaceId !== general.id)).toEqual([]);
});

test.for(kinds)("[C8] in private a %s tells that it read a space which it has left", async (continuity) => {
  const { bob, analyst, board, general, said, workspaceId } = await stage(continuity);
  unwrap(await general.stub().update(key(workspaceId), { confidential: true }));
  await told(general.id);
  unwrap(await board.stub().removeMember(key(workspaceId), analyst.id));
  await told(board.id);
  await passTime(analyst, searchNewsMs);
  const steps = [
    step(call("enter_space", { spaceId: general.id }), call("search", { query: "budget" })),
    step(call("send_message", { text: "It was 9000." })),
  ];
  scripted(() => steps.shift() ?? step(text("Told.")));
  await general.post(bob, "What was the budget?");
  await ended(workspaceId, { ...analyst, id: compartmentId(ids, analyst.id, general.id) }, 1);
  expect(await said()).toMatchObject({ text: "It was 9000.", reads: [{}] });
});

test.for(kinds)("[C8] in private a %s says of no confidential space that it read it", async (continuity) => {
  const { bob, analyst, space, workspaceId } = await stage(continuity);
  const [inside, vault] = [await space("Inside", [bob, analyst], true), await space("Vault", [bob, analyst], true)];
  const mind = { ...analyst, id: compartmentId(ids, analyst.id, inside.id) };
  const steps = [step(call("enter_space", { spaceId: vault.id })), step(text("It says nothing to me."))];
  scripted(() => steps.shift() ?? step(text("Well.")));
  await inside.post(bob, "What is in there?");
  const [run] = await ended(workspaceId, mind, 1);
  const reads = async () => unwrap(await env.AGENT.getByName(mind.id).run(workspaceId, run?.id ?? "")).reads;
  expect(await reads()).toBeUndefined();
  unwrap(await vault.stub().removeMember(key(workspaceId), analyst.id));
  await told(vault.id);
  await inside.post(bob, "And now?");
  await ended(workspaceId, mind, 2);
  expect(await reads()).toBeUndefined();
});

test.for(kinds)("[C8] a %s that entered another space says so where it comes back to", async (continuity) => {
  const { bob, analyst, board, general, read, said, workspaceId } = await stage(continuity);
  const steps = [
    step(call("enter_space", { spaceId: board.id })),
    step(call("send_message", { text: "Somebody asks about the budget." })),
    step(call("enter_space", { spaceId: general.id })),
    step(call("lookUp", {}), call("send_message", { text: "It is 9000." })),
  ];
  scripted(() => steps.shift() ?? step(text("Told.")));
  await general.post(bob, "What is the budget?");
  await ended(workspaceId, analyst, 2);
  const card = (await general.messages()).find(({ kind }) => kind === "tool_call");
  expect([card?.reads, (await said())?.reads]).toEqual([[read], [read]]);
  // It had read nothing but Board when it spoke there.
  expect((await board.messages()).at(-1)).not.toHaveProperty("reads");
});

test.for(kinds)("[C8] a %s that read only where it was asked says nothing of it", async (continuity) => {
  const { bob, analyst, general, said, workspaceId } = await stage(continuity);
  const steps = [
    step(call("enter_space", { spaceId: general.id })),
    step(call("read_messages", { spaceId: general.id }), call("read_messages", { spaceId: "spc_none" })),
    step(call("send_message", { text: "Hello." })),
  ];
  scripted(() => steps.shift() ?? step(text("Told.")));
  await general.post(bob, "Say hello");
  await ended(workspaceId, analyst, 2);
  expect(await said()).not.toHaveProperty("reads");
});

test("[C8] a silent run's receipt says what it read, and its next one does not", async () => {
  const { bob, analyst, board, general, read, workspaceId } = await stage("timeline");
  const steps = [step(call("read_messages", { spaceId: board.id })), step(text("Nothing to say."))];
  scripted(() => steps.shift() ?? step(text("Read.")));
  const first = await general.post(bob, "What is the budget?");
  await ended(workspaceId, analyst, 2);
  const second = await general.post(bob, "Never mind");
  await ended(workspaceId, analyst, 3);
  const receipts = async (id: string) => unwrap(await general.stub().reads(general.as(bob), id));
  expect(await receipts(first.id)).toMatchObject([{ outcome: "silent", reads: [read] }]);
  expect((await receipts(second.id)).map(({ reads }) => reads)).toEqual([undefined]);
});

test("[C8] words of another space that come with a run's own past count as read", async () => {
  const { bob, analyst, general, read, said, workspaceId } = await stage("timeline");
  const steps = [
    step(call("get_my_runs", { limit: 5 })),
    step(call("enter_space", { spaceId: general.id }), call("send_message", { text: "It is 9000." })),
  ];
  scripted(() => steps.shift() ?? step(text("Told.")));
  await general.post(bob, "What is the budget?");
  await ended(workspaceId, analyst, 2);
  expect((await said())?.reads).toEqual([read]);
});

test.for(kinds)("[C8] a %s that is told why it spoke has read the space of that message", async (continuity) => {
  const { alice, bob, analyst, board, general, read, said, workspaceId } = await stage(continuity);
  const steps = [
    step(call("enter_space", { spaceId: general.id }), call("send_message", { text: "It is under review." })),
    step(text("Told.")),
    step(call("read_messages", { spaceId: general.id })),
    step(call("enter_space", { spaceId: general.id }), call("send_message", { text: "It is 9000." })),
  ];
  scripted(() => steps.shift() ?? step(text("Told.")));
  await board.post(alice, "Tell General that 9000 is under review");
  await ended(workspaceId, analyst, 2);
  await general.post(bob, "Why do you say so?");
  const [, , run] = await ended(workspaceId, analyst, 3);
  const output = run?.steps.flatMap(({ toolCalls }) => toolCalls).find(({ name }) => name === "read_messages")?.output;
  expect(JSON.stringify(output)).toContain("9000 is under review");
  expect(await said()).toMatchObject({ text: "It is 9000.", reads: [read] });
});

test("[C8] a run that absorbed one of another space has read that space", async () => {
  const { alice, bob, analyst, board, general, read, said, workspaceId } = await stage("timeline");
  const gate = createGate();
  const steps = [step(waitAt(gate), text("Never."))];
  scripted(() => steps.shift() ?? step(text("Told.")));
  await board.post(alice, "Count the money again");
  await gate.reached;
  const [under] = await runsOf(workspaceId, analyst);
  steps.push(
    step(call("absorb_run", { runId: under?.id })),
    step(call("enter_space", { spaceId: general.id }), call("send_message", { text: "It is 9000." })),
  );
  await general.post(bob, "What is the budget?");
  await ended(workspaceId, analyst, 3);
  gate.open();
  expect((await said())?.reads).toEqual([read]);
});

test("[C8] a message tells of 50 spaces that were read at most, and of no deleted one", async () => {
  const { bob, analyst, board, general, space, said, workspaceId } = await stage("timeline");
  const rooms = await Promise.all(Array.from({ length: maxToldReads + 1 }, (_, n) => space(`Room ${n}`, [analyst])));
  await Promise.all(rooms.map(({ id }) => told(id)));
  const [gate, half] = [createGate(), maxToldReads / 2];
  const steps = [
    ...[[board], rooms.slice(0, half), rooms.slice(half)].map((some) =>
      step(...some.map(({ id: spaceId }) => call("read_messages", { spaceId, limit: 1 }))),
    ),
    step(waitAt(gate), call("get_memories", {})),
    step(call("enter_space", { spaceId: general.id }), call("send_message", { text: "All read." })),
  ];
  scripted(() => steps.shift() ?? step(text("Told.")));
  await general.post(bob, "Read everything");
  await gate.reached;
  unwrap(await board.stub().remove(key(workspaceId)));
  gate.open();
  await ended(workspaceId, analyst, 2);
  const reads = (await said())?.reads ?? [];
  expect(reads).toEqual(rooms.slice(0, maxToldReads).map(({ id: spaceId }) => ({ spaceId })));
});
