import { env } from "cloudflare:workers";
import { describe, expect, inject, test, vi } from "vitest";
import { unwrap } from "../../../src/shared/errors.ts";
import { armFault } from "../../../src/shared/fault.ts";
import { call, step, text } from "../../support/scripted-model.ts";
import { passTime, rowsIn } from "../fixture.ts";
import { approved, deploy, eachTest, freshPath, requestsTo, scene, yes } from "./scene.ts";

/** What people see before they approve, and that it is what is executed. */
eachTest();

const continuities = ["timeline", "consciousness"] as const;
type Continuity = (typeof continuities)[number];

/** An agent that asks whether it may send the e-mail. Its server counts what reaches it. */
const asking = async (continuity: Continuity, input: object, more: object = {}) => {
  const path = freshPath();
  const opened = await scene({
    continuity,
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

  test("[C2] arguments that were changed after people saw them are not executed", async () => {
    const { card, agent, ann, path, shown, give } = await asking(continuity, { to: "staging" });
    await rowsIn(agent, "UPDATE calls SET input = ? WHERE call_id = ?", '{"to":"prod"}', card.id);
    unwrap(await give(ann, "deploy", yes));
    const { error } = await shown("deploy", "error");
    expect(error).toMatchObject({ code: "approval_changed", message: expect.stringContaining("ask again") });
    expect(await requestsTo(path)).toEqual([]);
  });

  test("[C2] a crash after the approval runs what was approved, or nothing", async () => {
    const { card, agent, ann, path, shown, give } = await asking(continuity, { to: "staging" }, { idempotent: true });
    const crashed = armFault("call.after-begin");
    unwrap(await give(ann, "deploy", yes));
    await crashed;
    const change = "UPDATE calls SET input = ? WHERE call_id = ? AND phase = 'running'";
    await rowsIn(agent, change, '{"to":"prod"}', card.id);
    await passTime(agent, 30_000);
    const { error } = await shown("deploy", "error");
    expect(error).toMatchObject({ code: "approval_changed" });
    expect(await requestsTo(path)).toEqual([]);
  });

  test("[C2] a call that a server asks for reaches it only with the arguments that were approved", async () => {
    const external = { executionType: "external", execution: undefined };
    const { card, agent, ann, workspaceId, shown, give } = await asking(continuity, { to: "staging" }, external);
    expect(card.awaits?.shown?.[1]).toMatchObject({ path: "target", text: expect.stringContaining("server") });
    await rowsIn(agent, "UPDATE calls SET input = ? WHERE call_id = ?", '{"to":"prod"}', card.id);
    unwrap(await give(ann, "deploy", yes));
    expect((await shown("deploy", "error")).error).toMatchObject({ code: "approval_changed" });
    const { items } = unwrap(await env.WORKSPACE.getByName(workspaceId).toolCalls({ limit: 9 }));
    expect(items).toEqual([]);
  });
});

test("[C2] the arguments that people approved run once, and the approval holds their hash", async () => {
  const { card, ann, path, shown, give } = await asking("timeline", { to: "staging", note: "b" });
  unwrap(await give(ann, "deploy", yes));
  const { awaits } = await shown("deploy", "complete");
  expect(awaits?.answers).toMatchObject([{ approved: true, inputHash: card.awaits?.inputHash }]);
  await vi.waitFor(async () => expect(await requestsTo(path)).toHaveLength(1));
});
