import { evictDurableObject } from "cloudflare:test";
import { expect, onTestFinished, test, vi } from "vitest";
import { Agent } from "../../../src/agent/agent.ts";
import { redactionRows } from "../../../src/agent/bounds.ts";
import { SearchQuery } from "../../../src/protocol/search.ts";
import { unwrap } from "../../../src/shared/errors.ts";
import { rowsWith } from "../../support/rows.ts";
import { call, type ScriptedStep, step, text } from "../../support/scripted-model.ts";
import { openBoth } from "../compartment.ts";
import { agentStub, exported, rowsIn, scripted } from "../fixture.ts";

/** As many rows as one go looks at. */
const filler = `INSERT INTO journal (run_ordinal, step, kind, content, created_at)
  WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ${redactionRows}) SELECT 1, 0, 'call', '{}', unixepoch() * 1000 FROM n`;

type Scene = Awaited<ReturnType<typeof openBoth>>;
test.each<[string, ScriptedStep[], (scene: Scene) => Promise<unknown>]>([
  ["a compartment is fed", [], ({ secret }) => secret.ask("And now?", 2)],
  ["a compartment finds", [step(call("search", { query: "orchard" }))], ({ secret }) => secret.ask("And now?", 2)],
  ["an export has", [], ({ house, analyst }) => exported(house.workspaceId, analyst)],
])("[L4] %s no words that the open mind is still taking out", async (_, steps, told) => {
  const scene = await openBoth({});
  const { house, space, agent, analyst, ask, secret } = scene;
  scripted(() => step(text("Well.")));
  await ask("Hello");
  await secret.ask("Hello", 1);
  await rowsIn(analyst, filler);
  await evictDurableObject(agentStub(analyst));
  await ask("I like the quinces of the old orchard", 2);
  unwrap(await agent.search(house.workspaceId, SearchQuery.parse({ query: "orchard", mode: "fts" })));
  const alarms = vi.spyOn(Agent.prototype, "alarm").mockImplementation(async () => undefined);
  onTestFinished(() => alarms.mockRestore());
  unwrap(await space.stub().deleteMessage(house.key, (await space.messages()).at(-1)?.id ?? ""));
  const words = (mind: { id: string }) => rowsIn(mind, "SELECT words IS NULL AS gone FROM redactions");
  await vi.waitFor(async () => expect(await words(secret.mind)).toEqual([{ gone: 1 }]));
  expect(await words(analyst)).toEqual([{ gone: 0 }]);
  const model = scripted([...steps, step(text("Well."))]);
  const all = [await told(scene), model.calls.at(-1)?.prompt, await rowsWith(agentStub(secret.mind), "quinces")];
  expect(JSON.stringify(all)).not.toContain("quinces");
});
