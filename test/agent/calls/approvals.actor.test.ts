import { abortAllDurableObjects } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { describe, expect, inject, test, vi } from "vitest";
import { openRoot, rootHeaderMs } from "../../../src/auth/root-header.ts";
import { AgentConfig } from "../../../src/protocol/agent.ts";
import type { EntityRef } from "../../../src/protocol/rpc.ts";
import { unwrap } from "../../../src/shared/errors.ts";
import { armFault } from "../../../src/shared/fault.ts";
import { call, step, text } from "../../support/scripted-model.ts";
import { passTime, rowsIn } from "../fixture.ts";
import { approved, deploy, eachTest, freshPath, requestsTo, scene, type Tool, yes } from "./scene.ts";

/** People see what they approve, and exactly that is executed. */
eachTest();

/** The place of a secret in a template. */
const key = `\${secret.KEY}`;

const continuities = ["timeline", "consciousness"] as const;
type Continuity = (typeof continuities)[number];

/** An agent that asks whether it may send the e-mail. Its server counts what reaches it. */
const asking = async (continuity: Continuity, input: object, more: object = {}, settings: object = {}) => {
  const path = freshPath();
  const opened = await scene({
    ...{ continuity, ...settings },
    tools: [deploy(path, { inputSchema: { type: "object" }, ...approved(), ...more })],
    steps: [],
  });
  const { model, space, asked } = opened;
  const entering = continuity === "consciousness" ? [step(call("enter_space", { spaceId: space.id }))] : [];
  model.push(...entering, step(call("deploy", input)), step(text("Asked.")), step(text("Read.")), step(text("Over.")));
  return { ...opened, path, card: await asked("deploy") };
};

const attack = {
  to: "bank@mail.example",
  message: "Wire 1,000,000 to account 7",
  options: ["ok"],
  question: "Send the weekly digest?",
  schema: { type: "object" },
  multiple: false,
};

describe.each(continuities)("%s", (continuity) => {
  test("[C1] an approval names every field that will be sent, whatever it is called", async () => {
    const { card, ann, space, give } = await asking(continuity, attack);
    const shown = [
      { path: "tool", text: "deploy", hidden: 0 },
      { path: "target", text: `POST ${inject("remote")}`, hidden: 0 },
      { path: "request.url", text: `${inject("remote")}/echo/[36 characters, not shown]`, hidden: 0 },
      { path: "request.body.to", text: "{{input.to}}", hidden: 0 },
      { path: "input.to", text: "bank@mail.example", hidden: 0 },
      { path: "input.message", text: "Wire 1,000,000 to account 7", hidden: 0 },
      { path: "input.options[0]", text: "ok", hidden: 0 },
      { path: "input.question", text: "Send the weekly digest?", hidden: 0 },
      { path: "input.schema.type", text: "object", hidden: 0 },
      { path: "input.multiple", text: "false", hidden: 0 },
    ];
    expect(card.awaits).toMatchObject({ kind: "approval", shown });
    const frames = await space.watch(ann);
    expect(unwrap(await space.stub().list(space.as(ann), { limit: 9 })).items.at(-1)?.toolCall).toEqual(card);
    unwrap(await give(ann, "deploy", { result: { approved: false } }));
    const updated = await vi.waitUntil(() => frames.find((frame) => frame.type === "space.message.updated"));
    expect(updated).toMatchObject({ message: { toolCall: { awaits: { shown } } } });
  });

  test("[C1] an approval names what the config sends beside the input, secrets by name alone", async () => {
    const execution = {
      url: `${inject("remote")}/echo/v2/{{input.to}}/B0T4KEN5B0T4KEN5?cc=boss%40mail.example&key=hush&by=${key}`,
      method: "PUT",
      headers: { "X-Amount": "1000000", Authorization: `Bearer ${key}`, "X-Api-Key": "plain-hush" },
      body: { account: 7, note: "for {{input.to}}", auth: { user: "hush", pin: 1 }, author: "Ann", list: ["a\u200Bb"] },
    };
    const secrets = { KEY: "hush hush" };
    const { card } = await asking(continuity, { to: "bank" }, { execution }, { secrets });
    expect(card.awaits?.shown?.map(({ path, text }) => `${path} = ${text}`)).toEqual([
      "tool = deploy",
      `target = PUT ${inject("remote")}`,
      `request.url = ${inject("remote")}/echo/v2/{{input.to}}/[16 characters, not shown]?cc=boss%40mail.example&key=[4 characters, not shown]&by=${key}`,
      "request.headers.X-Amount = 1000000",
      `request.headers.Authorization = Bearer ${key}`,
      "request.headers.X-Api-Key = [10 characters, not shown]",
      "request.body.account = 7",
      "request.body.note = for {{input.to}}",
      "request.body.auth.user = [4 characters, not shown]",
      "request.body.auth.pin = 1",
      "request.body.author = Ann",
      "request.body.list[0] = a\\u{200B}b",
      "input.to = bank",
    ]);
    expect(JSON.stringify(card)).not.toContain("hush");
  });

  test("[C2] an approved request goes to the origin that people were shown, and to no other", async () => {
    const elsewhere = encodeURIComponent("https://elsewhere.example/a");
    const execution = { url: `${inject("remote")}/answer?status=307&location=${elsewhere}`, body: { to: "x" } };
    const { ann, shown, give } = await asking(continuity, { to: "bank" }, { execution });
    unwrap(await give(ann, "deploy", yes));
    const { error } = await shown("deploy", "error");
    expect(error).toMatchObject({ code: "tool_failed", message: expect.stringContaining("than the one that people") });
  });

  test("[C2] arguments that were changed after people saw them are not executed", async () => {
    const { card, agent, ann, path, shown, give } = await asking(continuity, { to: "staging" });
    await rowsIn(agent, "UPDATE calls SET input = ? WHERE call_id = ?", '{"to":"prod"}', card.id);
    unwrap(await give(ann, "deploy", yes));
    const { error } = await shown("deploy", "error");
    expect(error).toMatchObject({ code: "approval_changed", message: expect.stringContaining("ask again") });
    expect(await requestsTo(path)).toEqual([]);
  });

  test.for<[string, (tool: Tool, bob: EntityRef) => Tool[]]>([
    ["is gone", () => []],
    ["is approved by others", (tool, bob) => [{ ...tool, ...approved({ approvers: [bob.id] }) }]],
    ["asks for answers", (tool) => [{ name: tool.name, description: "Asks", executionType: "space" }]],
    ["goes elsewhere", (tool) => [{ ...tool, ...deploy(freshPath()), ...approved() }]],
  ])("[C2] what people approved is not done where its tool %s by then", async ([, changed]) => {
    const { agent, ann, bob, path, workspaceId, shown, give } = await asking(continuity, { to: "staging" });
    const tool = { description: "Does deploy", ...deploy(path, approved()) };
    const { tools } = AgentConfig.parse({ name: "Worker", tools: changed(tool, bob) });
    unwrap(await env.AGENT.getByName(agent.id).update(workspaceId, { tools }));
    unwrap(await give(ann, "deploy", yes));
    const { error } = await shown("deploy", "error");
    expect(error).toMatchObject({
      code: "approval_changed",
      message: expect.stringContaining("since people were asked"),
    });
    expect(await requestsTo(path)).toEqual([]);
  });

  test("[C2] what people approved is done though its tool is described otherwise by then", async () => {
    const { agent, ann, path, workspaceId, shown, give } = await asking(continuity, { to: "staging" });
    const more = { ...approved(), inputSchema: { type: "object" }, description: "Deploys", timeoutMs: 20_000 };
    const { tools } = AgentConfig.parse({ name: "Worker", tools: [deploy(path, more)] });
    unwrap(await env.AGENT.getByName(agent.id).update(workspaceId, { tools }));
    unwrap(await give(ann, "deploy", yes));
    await shown("deploy", "complete");
    expect(await requestsTo(path)).toHaveLength(1);
  });

  test.each([
    ["call.after-begin", 0],
    ["call.after-perform", 1],
  ] as const)("[C2] [R3] cut at %s, what lost words since is not done again, and may be done", async (point, done) => {
    const { card, agent, ann, path, shown, give } = await asking(continuity, { to: "staging" }, { idempotent: true });
    const crashed = armFault(point);
    unwrap(await give(ann, "deploy", yes));
    await crashed;
    const change = "UPDATE calls SET input = ? WHERE call_id = ? AND phase = 'running'";
    await rowsIn(agent, change, '{"to":"prod"}', card.id);
    await passTime(agent, 30_000);
    const { error } = await shown("deploy", "error");
    expect(error).toMatchObject({ code: "outcome_unknown" });
    expect(await requestsTo(path)).toHaveLength(done);
  });

  test.each([
    ["nobody", "approval_changed"],
    ["a server", "outcome_unknown"],
  ])("[C2] [R3] a call that %s claimed goes no more where it lost words: %s", async (who, code) => {
    const external = { executionType: "external", execution: undefined };
    const { card, agent, ann, workspaceId, shown, give } = await asking(continuity, { to: "staging" }, external);
    expect(card.awaits?.shown?.[1]).toMatchObject({ path: "target", text: expect.stringContaining("server") });
    const listed = async () => unwrap(await env.WORKSPACE.getByName(workspaceId).toolCalls({ limit: 9 })).items;
    unwrap(await give(ann, "deploy", yes));
    await vi.waitFor(async () => expect(await listed()).toHaveLength(1));
    const claim = () =>
      env.AGENT.getByName(agent.id).claimToolCall(workspaceId, card.id, { holder: "a", leaseSeconds: 60 });
    if (who !== "nobody") unwrap(await claim());
    await rowsIn(agent, "UPDATE calls SET input = ? WHERE call_id = ?", '{"to":"prod"}', card.id);
    expect(await claim()).toMatchObject({ problem: { code: "gone" } });
    expect((await shown("deploy", "error")).error).toMatchObject({ code });
    await vi.waitFor(async () => expect(await listed()).toEqual([]));
  });
});

test.each(["broke off", "a crash cut off"])("[C2] [R3] what %s may be done once it has lost words", async (how) => {
  const path = `/${how === "broke off" ? "twice" : "held"}/${crypto.randomUUID()}`;
  const execution = { url: `${inject("remote")}${path}`, secret: "KEY" };
  const external = { executionType: "external", execution, idempotent: true, timeoutMs: 600_000 };
  const secrets = { KEY: `whsec_${btoa("a secret of twenty-four b")}` };
  const { card, agent, ann, shown, give } = await asking("timeline", { to: "staging" }, external, { secrets });
  unwrap(await give(ann, "deploy", yes));
  await vi.waitFor(async () => expect(await requestsTo(path)).toHaveLength(1));
  const failures = () => rowsIn(agent, "SELECT failures FROM calls");
  if (how !== "broke off") await abortAllDurableObjects();
  else await vi.waitFor(async () => expect(await failures()).toEqual([{ failures: 1 }]));
  await rowsIn(agent, "UPDATE calls SET input = ? WHERE call_id = ?", '{"to":"prod"}', card.id);
  await passTime(agent, 26_000);
  expect((await shown("deploy", "error")).error).toMatchObject({ code: "outcome_unknown" });
  expect(await requestsTo(path)).toHaveLength(1);
});

test("[C2] the arguments that people approved run once, and the approval holds their hash", async () => {
  const { card, ann, path, shown, give } = await asking("timeline", { to: "staging", note: "b" });
  unwrap(await give(ann, "deploy", yes));
  const { awaits } = await shown("deploy", "complete");
  expect(awaits?.answers).toMatchObject([{ approved: true, inputHash: card.awaits?.inputHash }]);
  await vi.waitFor(async () => expect(await requestsTo(path)).toHaveLength(1));
});

test("[C9] [R3] what is approved days later brings a header that is good for a day from then", async () => {
  const more = { idempotent: true, ...approved({ expiresInMinutes: 7 * 24 * 60 }) };
  const { agent, ann, path, workspaceId, give } = await asking("timeline", { to: "staging" }, more);
  vi.setSystemTime(Date.now() + 3 * rootHeaderMs);
  const crashed = armFault("call.after-perform");
  unwrap(await give(ann, "deploy", yes));
  await crashed;
  await passTime(agent, 30_000);
  await vi.waitFor(async () => expect(await requestsTo(path)).toHaveLength(2));
  const [header, ...again] = (await requestsTo(path)).map(({ headers }) => headers["colloquy-root"]);
  expect(again).toEqual([header]);
  const opened = (inMs: number) => openRoot(env, workspaceId, `${header}`, Date.now() + inMs);
  expect(await opened(rootHeaderMs - 60_000)).toMatchObject({ kind: "person", by: expect.any(String) });
  await expect(opened(rootHeaderMs)).rejects.toMatchObject({ code: "invalid_request" });
});
