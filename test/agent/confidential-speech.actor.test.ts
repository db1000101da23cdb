import { env } from "cloudflare:workers";
import { describe, expect, test } from "vitest";
import type { ToolConfig } from "../../src/protocol/tool.ts";
import { unwrap } from "../../src/shared/errors.ts";
import { compartmentId } from "../../src/shared/ids.ts";
import { call, type ScriptedStep, step, text } from "../support/scripted-model.ts";
import {
  type AgentSettings,
  ended,
  ids,
  openScene,
  passTime,
  rowsIn,
  scripted,
  undoLater,
  userTexts,
} from "./fixture.ts";

/** An agent in an open space, Alpha, and in a confidential one, Board. */
undoLater();

const open = async (settings: Partial<AgentSettings> = {}) => {
  const scene = await openScene(settings);
  const { house, analyst, husam, space: alpha } = scene;
  const board = await house.space("Board", [husam, analyst], true);
  const mind = { ...analyst, id: compartmentId(ids, analyst.id, board.id) };
  await board.post(husam, "Hello");
  await ended(house.workspaceId, mind, 1);
  // A compartment knows its agent's other spaces.
  const [row] = await rowsIn(analyst, "SELECT * FROM spaces WHERE id = ?", alpha.id);
  const columns = Object.keys(row ?? {});
  const into = `INSERT OR REPLACE INTO spaces ("${columns.join('","')}") VALUES (${columns.map(() => "?").join()})`;
  await rowsIn(mind, into, ...Object.values(row ?? {}));
  return { ...scene, alpha, board, mind };
};

/** The first call of the model is for what opens the scene. */
const after = (...steps: ScriptedStep[]): ScriptedStep[] => [step(text("Hello.")), ...steps];

/** The result of the call before the model's last one, as it read it. */
const lastResult = (model: { calls: readonly { prompt: unknown }[] }): string =>
  JSON.stringify((model.calls.at(-1)?.prompt as unknown[] | undefined)?.at(-1));

const shown: ToolConfig = {
  ...{ name: "note", description: "Notes", executionType: "internal", visible: true, confidential: "allowed" },
  ...{ inputSchema: { type: "object", properties: {} }, async: false, timeoutMs: 30_000, idempotent: false },
};

describe.each(["consciousness", "timeline"] as const)("a %s", (continuity) => {
  test("[C18] says nothing outside of a confidential space in a run of it", async () => {
    const model = scripted(after());
    const { house, husam, alpha, board, mind } = await open({ continuity, tools: [shown] });
    const frames = await alpha.watch(husam);
    for (const [name, input] of [
      ["send_message", { text: "We merge" }],
      ["note", {}],
    ] as const) {
      model.push(step(call("enter_space", { spaceId: alpha.id })), step(call(name, input)), step(text("Refused.")));
    }
    const runs = (count: number) => ended(house.workspaceId, mind, count);
    for (const [count, told] of [
      [2, "Tell them"],
      [3, "Note it"],
    ] as const) {
      await board.post(husam, told);
      await runs(count);
      expect(lastResult(model)).toMatch(/forbidden/);
      expect(lastResult(model)).toContain("so its agents speak in no other space");
      expect(lastResult(model)).toContain(board.id);
    }
    // The asker sees what it would have said, and why it did not.
    const [refused, ...others] = (await board.messages()).flatMap(({ toolCall = [] }) => toolCall);
    expect(refused).toMatchObject({ name: "send_message", input: { text: "We merge" }, status: "error" });
    expect(refused?.error).toMatchObject({
      code: "forbidden",
      message: expect.stringContaining('said in "Board" stays'),
    });
    // People read the name of their space, which has an id for the model.
    expect(refused?.error?.message).not.toContain("spc_");
    expect(refused?.awaits).toBeUndefined();
    expect(others).toEqual([]);
    expect(await alpha.texts()).toEqual([]);
    // Nobody there sees as much as that it looked.
    expect(JSON.stringify(frames)).not.toContain(mind.id);
    expect(frames.filter(({ type }) => type.startsWith("agent") || type.startsWith("stream"))).toEqual([]);
  });

  test("[C18] begins in its own space in each run of a confidential one", async () => {
    const model = scripted(after(step(text("Counted."))));
    const { house, board, mind } = await open({ continuity });
    const plan = { name: "Daily", instruction: "Count", runAfter: "2 minutes" };
    unwrap(await env.AGENT.getByName(mind.id).putPlan(house.workspaceId, "daily", plan));
    await passTime(mind, 121_000);
    await ended(house.workspaceId, mind, 2);
    expect(model.calls).toHaveLength(2);
    for (const input of model.calls) {
      expect(userTexts(input).at(-1)).toContain(`ACTIVE SPACE: "Board" (id: ${board.id})`);
    }
  });

  test("[C18] speaks into a confidential space from outside, and reads nothing there", async () => {
    const model = scripted(after());
    const { husam, board, ask } = await open({ continuity });
    model.push(
      step(call("enter_space", { spaceId: board.id })),
      step(call("send_message", { text: "The numbers are in" })),
      step(text("Told.")),
    );
    await ask("Tell the board that the numbers are in");
    const entered = JSON.stringify(model.calls[2]?.prompt.at(-1));
    expect(entered).toContain('"history":[]');
    expect(entered).toContain("known to your runs in it alone");
    expect(entered).not.toContain("Hello");
    expect(await board.texts()).toEqual([`${husam.name}: Hello`, "Analyst: The numbers are in"]);
    const [asked] = userTexts(model.calls[1]).slice(-1);
    expect(asked).toContain("[CONFIDENTIAL: you may speak there, not read]");
  });

  test("[C18] neither waits for nor asks people of a confidential space from outside", async () => {
    const approved: ToolConfig = { ...shown, approval: { required: true, quorum: 1, expiresInMinutes: 60 } };
    const model = scripted(after());
    const { board, ask } = await open({ continuity, messaging: "threaded", tools: [approved] });
    model.push(
      step(call("enter_space", { spaceId: board.id })),
      step(call("send_message", { text: "@Husam, when?", wait: true })),
      step(call("note", {})),
      step(text("Refused.")),
    );
    await ask("Ask the board");
    expect(JSON.stringify(model.calls[3]?.prompt.at(-1))).toContain("wait: the active space is confidential");
    expect(lastResult(model)).toContain("note: the active space is confidential");
    expect(await board.texts()).toEqual(["Husam: Hello"]);
  });

  test("[C18] asks and waits in a confidential space in a run of it", async () => {
    const model = scripted(after());
    const { house, husam, board, mind } = await open({ continuity, messaging: "threaded" });
    model.push(
      step(call("enter_space", { spaceId: board.id }), call("send_message", { text: "@Husam, when?", wait: true })),
    );
    model.push(step(text("Asked.")), step(text("Thanks.")), step(text("Well.")));
    await board.post(husam, "Ask me");
    await expect.poll(() => board.texts()).toContain("Analyst: @Husam, when?");
    await board.post(husam, "Tomorrow");
    await expect
      .poll(() => model.calls.some(({ prompt }) => JSON.stringify(prompt).includes("Tomorrow")), { timeout: 5000 })
      .toBe(true);
    const system = JSON.stringify(model.calls[1]?.prompt[0]);
    expect(system).toContain(`You are in the confidential space ${board.id}`);
    await ended(house.workspaceId, mind, 2);
    expect(await env.AGENT.getByName(mind.id).describe(house.workspaceId)).toMatchObject({ ok: true });
  });
});
