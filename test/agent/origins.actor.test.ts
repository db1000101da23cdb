import { env } from "cloudflare:workers";
import { expect, test, vi } from "vitest";
import type { AgentConfig } from "../../src/protocol/agent.ts";
import { unwrap } from "../../src/shared/errors.ts";
import { createGate } from "../support/gate.ts";
import { call, step, text, waitAt } from "../support/scripted-model.ts";
import { ended, inboxOf, openHouse, passTime, runsOf, scripted, told, userTexts } from "./fixture.ts";

/** Why an agent's message was said: what its readers are told, and what the agent itself knows. */
const stage = async (continuity: AgentConfig["continuity"]) => {
  const house = await openHouse();
  const [husam, sarah] = [await house.person("Husam"), await house.person("Sarah")];
  const analyst = await house.agent({ name: "Analyst", continuity });
  const reader = await house.agent({ name: "Reader", continuity: "timeline" });
  const alpha = await house.space("Alpha", [husam, analyst]);
  const dev = await house.space("Dev", [sarah, analyst, reader]);
  const agent = env.AGENT.getByName(analyst.id);
  return { house, husam, sarah, analyst, reader, alpha, dev, agent, workspaceId: house.workspaceId };
};

const posts = (spaceId: string, words: string) => [
  step(call("enter_space", { spaceId }), call("send_message", { text: words })),
  step(text("Posted.")),
];

/** A model that plays Analyst by these steps, and reads in silence as Reader. Answers what each was given. */
const played = (steps: ReturnType<typeof step>[]) => {
  const asReader: string[] = [];
  const asAnalyst: string[] = [];
  scripted((options) => {
    const isReader = JSON.stringify(options.prompt[0]).includes('\\"Reader\\"');
    const results = options.prompt.filter(({ role }) => role === "tool");
    (isReader ? asReader : asAnalyst).push([...userTexts(options), JSON.stringify(results)].join("\n"));
    return isReader ? step(text("Read.")) : (steps.shift() ?? step(text("Done.")));
  });
  return { asReader: () => asReader.join("\n"), asAnalyst: () => asAnalyst.at(-1) ?? "" };
};

const continuities = ["timeline", "consciousness"] as const;

test.for(continuities)(
  "[K6] a message of a %s that a service caused says so, and why to itself",
  async (continuity) => {
    const { sarah, analyst, reader, dev, agent, workspaceId } = await stage(continuity);
    const seen = played([
      ...posts(dev.id, "PROJ-1 is done"),
      step(call("read_messages", { spaceId: dev.id })),
      step(text("It was jira.")),
    ]);
    unwrap(await agent.trigger(workspaceId, { serviceName: "jira", payload: { issue: "PROJ-1", secret: "s3cret" } }));
    const [run] = await ended(workspaceId, analyst, 1);
    await ended(workspaceId, reader, 1);
    const said = (await dev.messages()).at(-1);
    expect(said?.origin).toEqual({ sourceType: "service", sourceRunId: run?.id });
    expect(seen.asReader()).toContain("[sent because a service sent an event]");
    expect(seen.asReader()).not.toContain("s3cret");

    await dev.post(sarah, "@Analyst why?");
    await ended(workspaceId, analyst, 2);
    const payload = '"{\\"issue\\":\\"PROJ-1\\",\\"secret\\":\\"s3cret\\"}"';
    const inHistory = `[sent because the service "jira" sent {"issue":"PROJ-1","secret":"s3cret"}]`;
    expect(seen.asAnalyst().includes(inHistory)).toBe(continuity === "timeline");
    // As a tool tells it.
    expect(seen.asAnalyst()).toContain(`"sourceRunId":"${run?.id}","sourceName":"jira","sourceEvent":${payload}`);
  },
);

test.for(continuities)("[K6] a message of a %s that a plan caused says so, and why to itself", async (continuity) => {
  const { sarah, analyst, reader, dev, agent, workspaceId } = await stage(continuity);
  const plan = { name: "Daily Report", instruction: "Post the metrics, without the salaries", runAfter: "1 hour" };
  const seen = played([
    ...posts(dev.id, "Revenue $2.1M"),
    step(call("read_messages", { spaceId: dev.id })),
    step(text("The plan.")),
  ]);
  unwrap(await agent.putPlan(workspaceId, "daily", plan));
  await passTime(analyst, 60 * 60_000 + 1000);
  const [run] = await ended(workspaceId, analyst, 1);
  await ended(workspaceId, reader, 1);
  expect((await dev.messages()).at(-1)?.origin).toEqual({ sourceType: "plan", sourceRunId: run?.id });
  expect(seen.asReader()).toContain("[sent because a plan was due]");
  expect(seen.asReader()).not.toContain("salaries");
  await dev.post(sarah, "@Analyst why?");
  await ended(workspaceId, analyst, 2);
  expect(seen.asAnalyst()).toContain('"sourceEvent":"Post the metrics, without the salaries"');
});

test("[K6] of a plan that an agent named itself others read no name, and it reads all", async () => {
  const { husam, sarah, analyst, reader, alpha, dev, workspaceId } = await stage("timeline");
  const plan = { name: "Tell Dev that Bob leaves", instruction: "Say goodbye", runAfter: "1 hour" };
  const seen = played([
    step(call("set_plans", { plans: [plan] })),
    step(text("Planned.")),
    ...posts(dev.id, "Goodbye, Bob"),
  ]);
  await alpha.post(husam, "Say goodbye to Bob in an hour");
  await ended(workspaceId, analyst, 1);
  await passTime(analyst, 60 * 60_000 + 1000);
  const runs = await ended(workspaceId, analyst, 2);
  expect((await dev.messages()).at(-1)?.origin).toEqual({ sourceType: "plan", sourceRunId: runs[1]?.id });
  await dev.post(sarah, "Why?");
  await ended(workspaceId, analyst, 3);
  expect(seen.asAnalyst()).toContain('[sent because the plan "Tell Dev that Bob leaves" was due: "Say goodbye"]');
  await ended(workspaceId, reader, 1);
  expect(seen.asReader()).toContain("[sent because a plan was due]");
});

test.for(continuities)(
  "[K6] a %s knows the event that had it speak, though its run began with another",
  async (continuity) => {
    const { house, husam, sarah, analyst, reader, alpha, dev, agent, workspaceId } = await stage(continuity);
    const bots = await house.space("Bots", [analyst, reader]);
    const gate = createGate();
    const steps = [step(waitAt(gate), text("Done."))];
    const seen = played(steps);
    const serve = async () => unwrap(await agent.trigger(workspaceId, { serviceName: "jira", payload: { issue: 1 } }));
    const isLiving = continuity === "consciousness";
    // A cycle takes two events at once. A run absorbs that of another.
    await (isLiving ? alpha.post(husam, "Wait") : serve());
    await gate.reached;
    const [first] = await runsOf(workspaceId, analyst);
    if (isLiving) await serve();
    else steps.push(step(call("absorb_run", { runId: first?.id })));
    steps.push(...posts(dev.id, "PROJ-1 is done"), step(call("read_messages", { spaceId: dev.id })));
    await bots.post(reader, "Ping");
    if (isLiving) gate.open();
    const [, spoke] = await ended(workspaceId, analyst, 2);
    gate.open();
    expect(spoke?.trigger).toMatchObject({ type: "space_message", text: "Ping" });
    const origin = { sourceType: "service", sourceRunId: spoke?.id };
    expect((await dev.messages()).at(-1)?.origin).toEqual(origin);
    await dev.post(sarah, "@Analyst why?");
    await ended(workspaceId, analyst, 3);
    expect(seen.asAnalyst()).toContain(
      `"sourceRunId":"${spoke?.id}","sourceName":"jira","sourceEvent":"{\\"issue\\":1}"`,
    );
  },
);

test("[K6] words that an agent overheard are no reason why it speaks", async () => {
  const { house, husam, sarah, analyst, dev, agent, workspaceId } = await stage("consciousness");
  const room = await house.space("Room", [husam, sarah, analyst]);
  unwrap(await room.stub().update({ kind: "key", workspaceId, keyId: "key" }, { wakePolicy: "addressed" }));
  played([...posts(room.id, "Closing PROJ-1").slice(0, 1), ...posts(dev.id, "PROJ-1 is closed")]);
  await room.post(husam, "Sarah, my salary is 9000");
  await vi.waitFor(async () => expect(await inboxOf(workspaceId, analyst)).toHaveLength(1));
  unwrap(await agent.trigger(workspaceId, { serviceName: "jira", payload: { issue: 1 } }));
  const [run] = await ended(workspaceId, analyst, 1);
  const origin = { sourceType: "service", sourceRunId: run?.id };
  expect((await dev.messages()).at(-1)?.origin).toEqual(origin);
  // In the room itself neither.
  expect((await room.messages()).at(-1)?.origin).toEqual(origin);
});

test.for([
  ["greeting", "jira"],
  ["jira", "stripe"],
])("[K6] of two events of one cycle others are told neither, and it both (%s, %s)", async (kinds) => {
  const { husam, sarah, analyst, alpha, dev, agent, workspaceId } = await stage("consciousness");
  const gate = createGate();
  const seen = played([
    step(waitAt(gate), text("Ticked.")),
    ...posts(dev.id, "PROJ-1 is closed"),
    step(call("read_messages", { spaceId: dev.id })),
  ]);
  const serve = async (serviceName: string) =>
    unwrap(await agent.trigger(workspaceId, { serviceName, payload: { of: serviceName } }));
  await serve("tick");
  await gate.reached;
  for (const kind of kinds) await (kind === "greeting" ? alpha.post(husam, "Hi, I earn 9000") : serve(kind));
  gate.open();
  const [, run] = await ended(workspaceId, analyst, 2);
  const origin = { sourceType: "several", sourceRunId: run?.id };
  expect((await dev.messages()).at(-1)?.origin).toEqual(origin);
  expect(seen.asReader()).toContain(`[sent by ${run?.id}, which answered several events]`);
  await dev.post(sarah, "@Analyst why?");
  await ended(workspaceId, analyst, 3);
  const told = seen.asAnalyst().slice(seen.asAnalyst().lastIndexOf('"sourceType":"several"'));
  for (const words of kinds[0] === "greeting" ? ["I earn 9000", "jira"] : kinds) expect(told).toContain(words);
});

test("[K6] what a run said before it absorbed another keeps its own cause", async () => {
  const { sarah, analyst, dev, agent, workspaceId } = await stage("timeline");
  const [said, other] = [createGate(), createGate()];
  const steps = [...posts(dev.id, "PROJ-1 is closed").slice(0, 1), step(waitAt(said), call("get_my_runs", {}))];
  const seen = played(steps);
  unwrap(await agent.trigger(workspaceId, { serviceName: "jira", payload: { issue: 1 } }));
  await said.reached;
  steps.push(step(waitAt(other), text("Never.")));
  unwrap(await agent.trigger(workspaceId, { serviceName: "stripe", payload: { charge: 2 } }));
  await other.reached;
  const absorbed = (await runsOf(workspaceId, analyst)).find(({ trigger }) => trigger.senderName === "stripe");
  steps.push(step(call("absorb_run", { runId: absorbed?.id })));
  said.open();
  await ended(workspaceId, analyst, 2);
  other.open();
  await dev.post(sarah, "Why?");
  await ended(workspaceId, analyst, 3);
  expect(seen.asAnalyst()).toContain('[sent because the service "jira" sent {"issue":1}]');
});

test("[K6] what a space does not share of an origin, its agent still knows", async () => {
  const { husam, sarah, analyst, alpha, dev, workspaceId } = await stage("timeline");
  const key = { kind: "key", workspaceId, keyId: "key" } as const;
  unwrap(await alpha.stub().update(key, { shareOrigin: "none" }));
  const seen = played(posts(dev.id, "Goodbye, Bob"));
  await alpha.post(husam, "Say goodbye to Bob in Dev");
  await ended(workspaceId, analyst, 1);
  expect((await dev.messages()).at(-1)?.origin).toBeUndefined();
  await dev.post(sarah, "Why?");
  await ended(workspaceId, analyst, 2);
  expect(seen.asAnalyst()).toContain('[sent because "Husam" asked "Say goodbye to Bob in Dev" in "Alpha"]');
  expect(seen.asReader()).not.toContain("sent because");
});

test.for(continuities)("[C17] an origin of a %s names no space that became confidential", async (continuity) => {
  const { husam, analyst, alpha, dev, workspaceId } = await stage(continuity);
  const key = { kind: "key", workspaceId, keyId: "key" } as const;
  unwrap(await alpha.stub().update(key, { shareOrigin: "text" }));
  const gate = createGate();
  played([step(waitAt(gate), call("get_goals", {})), ...posts(dev.id, "Goodbye, Bob")]);
  await alpha.post(husam, "Say goodbye to Bob in Dev");
  await gate.reached;
  unwrap(await alpha.stub().update(key, { confidential: true }));
  await told(alpha.id);
  gate.open();
  await ended(workspaceId, analyst, 1);
  const said = (await dev.messages()).at(-1);
  expect(said).toMatchObject({ text: "Goodbye, Bob" });
  expect(said?.origin).toBeUndefined();
});
