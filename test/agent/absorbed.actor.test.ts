import { env } from "cloudflare:workers";
import { expect, test, vi } from "vitest";
import type { ServerFrame } from "../../src/protocol/events.ts";
import { unwrap } from "../../src/shared/errors.ts";
import { createGate } from "../support/gate.ts";
import { call, type ScriptedPart, type ScriptedStep, step, text, waitAt } from "../support/scripted-model.ts";
import { toolOf } from "../support/tool-of.ts";
import { type AgentSettings, ended, openHouse, runsOf, scripted, userTexts, waits } from "./fixture.ts";

/** What a run takes over from another that it absorbs, and what others are told of the two. */
const stage = async (settings: Partial<AgentSettings> = {}) => {
  const house = await openHouse();
  const [husam, designer] = [await house.person("Husam"), await house.person("Designer")];
  const refund = toolOf({ name: "refund", executionType: "internal", output: "paid back" });
  const analyst = await house.agent({ name: "Analyst", continuity: "timeline", tools: [refund], ...settings });
  const space = await house.space("Alpha", [husam, designer, analyst]);
  const { workspaceId } = house;
  const agent = env.AGENT.getByName(analyst.id);
  const recordOf = async (runId: string) => unwrap(await agent.run(workspaceId, runId));
  return { house, husam, designer, analyst, space, agent, workspaceId, recordOf };
};

const marks = (frames: ServerFrame[]): string[] =>
  frames.flatMap((frame) =>
    "runId" in frame && frame.type.startsWith("run.") ? [`${frame.type} ${frame.runId}`] : [],
  );

/** The results that a model was given last. */
const resultsIn = (prompt: unknown): string => JSON.stringify(prompt).replaceAll('\\"', '"');

/** A model whose first run makes these steps and then stalls; the second absorbs it, and goes on by the others. */
const absorbing = (
  { analyst, workspaceId }: Pick<Awaited<ReturnType<typeof stage>>, "analyst" | "workspaceId">,
  first: ScriptedPart[][],
  then: ScriptedStep[],
) => {
  const gate = createGate();
  const steps = [...first.map((parts) => step(...parts)), step(waitAt(gate))];
  const later: (ScriptedStep | undefined)[] = [undefined, ...then];
  const model = scripted(async () => {
    const next = steps.shift();
    if (next) return next;
    const [run] = (await runsOf(workspaceId, analyst)).toReversed();
    return later.shift() ?? step(call("absorb_run", { runId: run?.id }));
  });
  return { model, gate };
};

const payload = { issue: "PROJ-1", text: `${"because of this ".repeat(200)}THE END` };

test("[K4] a run that absorbs a service's is given its whole payload and all that it did", async () => {
  const scene = await stage();
  const { husam, analyst, space, agent, workspaceId } = scene;
  const { model, gate } = absorbing(
    scene,
    [[call("set_memories", { memories: [{ key: "k", value: "v" }] }), call("refund", { order: "A1" })]],
    [step(text("I know all of it."))],
  );
  unwrap(await agent.trigger(workspaceId, { serviceName: "jira", payload }));
  await gate.reached;
  await space.post(husam, "Take it over");
  const [first, second] = await ended(workspaceId, analyst, 2);
  gate.open();
  expect([first?.status, second?.status]).toEqual(["absorbed", "completed"]);
  const given = resultsIn(model.calls.at(-1)?.prompt);
  expect(given).toContain(
    `"runId":"${first?.id}","status":"absorbed","trigger":{"type":"service","serviceName":"jira","payload":${JSON.stringify(payload)}}`,
  );
  expect(given).toContain('"toolName":"refund","input":{"order":"A1"},"output":"paid back"');
  expect(given).toContain('"toolName":"set_memories"');
});

test("[K4] a run that absorbs a plan's or a message's is given all of its words", async () => {
  const scene = await stage({ limits: { maxConcurrentRuns: 2 } });
  const { husam, analyst, space, workspaceId } = scene;
  const words = `${"word ".repeat(300)}THE END`;
  const { model, gate } = absorbing(scene, [], [step(text("Read."))]);
  const asked = await space.post(husam, words);
  await gate.reached;
  await space.post(husam, "Forget it");
  await ended(workspaceId, analyst, 2);
  gate.open();
  const given = resultsIn(model.calls.at(-1)?.prompt);
  expect(given).toContain(`"id":"${asked.id}"`);
  expect(given).toContain(`"text":"${words}"`);
});

test("[K4] the stream and the records of both runs say which run absorbed which", async () => {
  const scene = await stage();
  const { husam, analyst, space, workspaceId, recordOf } = scene;
  const { gate } = absorbing(scene, [], [step(text("Both."))]);
  const frames = await space.watch(husam);
  await space.post(husam, "one");
  await gate.reached;
  await space.post(husam, "two");
  const [first, second] = await ended(workspaceId, analyst, 2);
  gate.open();
  await vi.waitFor(() => expect(marks(frames)).toContain(`run.completed ${second?.id}`));
  expect(marks(frames)).toContain(`run.absorbed ${first?.id}`);
  expect(marks(frames)).not.toContain(`run.canceled ${first?.id}`);
  expect(await recordOf(first?.id ?? "")).toMatchObject({ status: "absorbed", endedBy: second?.id });
  expect(await recordOf(second?.id ?? "")).toMatchObject({ status: "completed", absorbed: [first?.id] });
  expect(await runsOf(workspaceId, analyst)).toMatchObject([{ absorbed: [first?.id] }, { endedBy: second?.id }]);
});

test.for([
  ["absorb_run", "absorbed"],
  ["stop_run", "canceled"],
] as const)("[K4] [R5] the end of a run that waited is told in its space: %s", async ([tool, status]) => {
  const { husam, analyst, space, workspaceId } = await stage({ messaging: "threaded" });
  let waiting = "";
  scripted((_, index) => {
    if (index === 0) return step(call("send_message", { text: "@Designer is it good?", wait: true }));
    return index === 1 ? step(call(tool, { runId: waiting })) : step(text("Done."));
  });
  const frames = await space.watch(husam);
  await space.post(husam, "Ask Designer");
  await waits(workspaceId, analyst);
  waiting = (await runsOf(workspaceId, analyst))[0]?.id ?? "";
  await space.post(husam, "Never mind");
  await ended(workspaceId, analyst, 2);
  await vi.waitFor(() => expect(marks(frames)).toContain(`run.${status} ${waiting}`));
});

test("[K4] [K8] a run that absorbs a waiting one is told the answers, and who gave none", async () => {
  const { husam, designer, analyst, space, agent, workspaceId } = await stage({ messaging: "threaded" });
  let waiting = "";
  const model = scripted((_, index) => {
    if (index === 0) return step(call("send_message", { text: "@Designer @Husam which colour?", wait: true }));
    if (index === 1) return step(call("get_my_runs", { runId: waiting }));
    if (index === 2) return step(call("absorb_run", { runId: waiting }), call("enter_space", { spaceId: space.id }));
    return step(index === 3 ? call("send_message", { text: "@Husam may I?", wait: true }) : text("Done."));
  });
  await space.post(husam, "Ask for the colour");
  await waits(workspaceId, analyst);
  const question = (await space.messages()).at(-1)?.id ?? "";
  waiting = (await runsOf(workspaceId, analyst))[0]?.id ?? "";
  await space.post(designer, "Ultramarine");
  unwrap(await agent.trigger(workspaceId, { serviceName: "jira", payload }));
  await model.called(4);
  const answers = /"answers":\[\{"from":"Designer","messageId":"\w+","text":"Ultramarine"\}\]/;
  const told = resultsIn(model.calls[3]?.prompt).replaceAll("\\", "");
  expect(told).toMatch(answers);
  expect(told).toContain(
    `[no answer from "Husam": nobody waits for it any more] ["Alpha", ${space.id}] to ${question}`,
  );
  // It reads the answers that a waiting run has got.
  expect(resultsIn(model.calls[2]?.prompt)).toMatch(answers);
  await waits(workspaceId, analyst);
  await space.post(husam, "You may");
  await model.called(5);
  const [resumed = ""] = userTexts(model.calls[4]);
  expect(resumed).toMatch(
    new RegExp(
      `  - run: ${waiting}\n    type: space_message\n(.*\n)*    answers: ${question} "@Designer.*\n(.*\n)*    message: "Ultramarine"`,
    ),
  );
});

test("[K4] what a run took over stands in its input when it goes on after a wait", async () => {
  const scene = await stage({ messaging: "threaded" });
  const { husam, designer, analyst, space, agent, workspaceId } = scene;
  const { model, gate } = absorbing(
    scene,
    [[call("refund", { order: "A1" })]],
    [
      step(call("send_message", { text: "@Designer may I?", wait: true })),
      step(call("send_message", { text: "Done." })),
      step(text("Done.")),
      step(text("Read.")),
    ],
  );
  unwrap(await agent.trigger(workspaceId, { serviceName: "jira", payload }));
  await gate.reached;
  await space.post(husam, "Take it over, and ask Designer");
  await waits(workspaceId, analyst);
  gate.open();
  const before = model.calls.length;
  await space.post(designer, "You may");
  const [first, second] = await ended(workspaceId, analyst, 2);
  const [resumed = ""] = userTexts(model.calls[before]);
  expect(resumed).toContain(
    [
      "TAKEN OVER (of runs that you absorbed; theirs to answer is yours now):",
      `  - run: ${first?.id}`,
      "    type: service",
      '    service: "jira"',
      `    payload: ${JSON.stringify(payload)}`,
    ].join("\n"),
  );
  // Later runs read why as well.
  await space.post(husam, "Why did you do that?");
  await ended(workspaceId, analyst, 3);
  const [later = ""] = userTexts(model.calls.at(-1));
  expect(later).toMatch(
    new RegExp(`${first?.id} \\(absorbed by ${second?.id}\\) — service "jira": .*\\n {6}You: called refund\\(`),
  );
});

test("[K4] [S4] a run is ended once: the refusal says how it ended and what reads it", async () => {
  const scene = await stage();
  const { husam, analyst, space, agent, workspaceId } = scene;
  const { gate } = absorbing(scene, [], [step(text("Both."))]);
  await space.post(husam, "one");
  await gate.reached;
  await space.post(husam, "two");
  const [first, second] = (await ended(workspaceId, analyst, 2)).map(({ id }) => id);
  gate.open();
  const acts = ["absorb_run", "stop_run"] as const;
  const again = acts.flatMap((tool) => [first, second].map((runId) => step(call(tool, { runId }))));
  const later = scripted([...again, step(text("Read."))]);
  await space.post(husam, "three");
  const third = (await ended(workspaceId, analyst, 3)).at(-1);
  expect(third).toMatchObject({ status: "completed", outcome: "silent" });
  const refused = (why: string) => resultsIn(later.calls.at(-1)?.prompt).split(`"code":"conflict","message":"${why}`);
  const reads = (runId?: string) => `get_my_runs with runId ${runId} reads what it did`;
  const absorbed = `${second} absorbed it and answers its event too; ${reads(first)}`;
  expect(refused(`run already canceled: ${absorbed}`)).toHaveLength(1 + acts.length);
  expect(refused(`the run has ended: it is completed; ${reads(second)}`)).toHaveLength(1 + acts.length);

  const path = `GET /v1/agents/${analyst.id}/runs`;
  const refusals = [
    [
      first,
      `run already canceled: ${second} absorbed it and answers its event too; ${path}/${first} reads what it did`,
    ],
    [second, `the run has ended: it is completed; ${path}/${second} reads what it did`],
  ];
  for (const [runId = "", detail] of refusals) {
    expect(await agent.cancelRun(workspaceId, runId)).toMatchObject({ problem: { code: "conflict", detail } });
  }
});
