import { env } from "cloudflare:workers";
import { expect, inject, test, vi } from "vitest";
import { unwrap } from "../../../src/shared/errors.ts";
import { rowsWith } from "../../support/rows.ts";
import { call, step, text as written } from "../../support/scripted-model.ts";
import { deploy, eachTest, requestsTo, scene } from "../calls/scene.ts";
import { agentStub, passTime, rowsIn } from "../fixture.ts";

eachTest();

const text = "The quinces of the old orchard are ripe";

/** An agent writes two calls in one step. Its workspace is suspended during the first, so the other comes much later. */
const late = async (other: string) => {
  const path = `/silent/${crypto.randomUUID()}`;
  const tool = deploy("", { execution: { url: `${inject("remote")}${path}`, method: "POST" }, timeoutMs: 600_000 });
  const [deploying, saying] = [call("deploy", { to: "staging" }), call(other, { text })];
  const tools = [tool, { name: "note", executionType: "internal", visible: true }];
  const { agent, ann, space, run, workspaceId } = await scene({
    tools,
    steps: [step(deploying, saying), step(written("Well."))],
  });
  const stub = env.AGENT.getByName(agent.id);
  await space.post(ann, "Go");
  await vi.waitFor(async () => expect(await requestsTo(path)).toHaveLength(1));
  unwrap(await stub.setSuspended(workspaceId, true));
  await passTime(agent, 1_200_000);
  const paused = "SELECT count(*) AS runs FROM runs WHERE resume_at > 0";
  await vi.waitFor(async () => expect(await rowsIn(agent, paused)).toEqual([{ runs: 1 }]));
  unwrap(await stub.setSuspended(workspaceId, false));
  await passTime(agent, 60_000);
  await run("completed");
  return { agent, space, key: { kind: "key", workspaceId, keyId: "key" } as const };
};

test.each([
  ["said", "it is", "send_message"],
  ["said", "its space is", "send_message"],
  ["shown", "it is", "note"],
  ["shown", "its space is", "note"],
])("[L4] [L13] what is %s long after it was written goes, as %s deleted", async (_, what, name) => {
  const { agent, space, key } = await late(name);
  const message = (await space.messages()).at(-1);
  expect(JSON.stringify(message)).toContain(text);
  expect(await rowsWith(agentStub(agent), "quinces")).not.toEqual([]);
  const removed = what === "it is" ? space.stub().deleteMessage(key, message?.id ?? "") : space.stub().remove(key);
  expect(await removed).toMatchObject({ ok: true });
  await vi.waitFor(async () => expect(await rowsWith(agentStub(agent), "quinces")).toEqual([]));
});
