import { evictDurableObject } from "cloudflare:test";
import { expect, onTestFinished, test, vi } from "vitest";
import { Agent } from "../../../src/agent/agent.ts";
import { redactionRows } from "../../../src/agent/bounds.ts";
import { SearchQuery } from "../../../src/protocol/search.ts";
import { unwrap } from "../../../src/shared/errors.ts";
import { rowsWith } from "../../support/rows.ts";
import { call, type ScriptedStep, step, text } from "../../support/scripted-model.ts";
import { openBoth } from "../compartment.ts";
import { agentStub, ended, exported, ids, rowsIn, scripted } from "../fixture.ts";

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

test("[L16] a compartment finds, and an export has, no name that is still taken out", async () => {
  const scene = await openBoth({});
  const { house, space, agent, analyst, secret } = scene;
  const { workspaceId } = house;
  const lena = await house.person("Lena Brandtner");
  unwrap(await space.stub().addMember(house.key, lena));
  scripted(() => step(text("Well.")));
  await space.post(lena, "I like the quinces of the old orchard");
  await ended(workspaceId, analyst, 1);
  await secret.ask("Hello", 1);
  unwrap(await agent.search(workspaceId, SearchQuery.parse({ query: "orchard", mode: "fts" })));
  const entry = { content: "Quinces", metadata: {}, source: { authorId: lena.id } };
  unwrap(await agent.archive(workspaceId, ids.mintOwned("arch", analyst.id), entry));
  await rowsIn(analyst, "INSERT INTO known_names (id, name) VALUES (?, ?)", lena.id, lena.name);
  unwrap(await space.stub().removeMember(house.key, lena.id));
  await rowsIn(analyst, filler);
  await evictDurableObject(agentStub(analyst));
  const alarms = vi.spyOn(Agent.prototype, "alarm").mockImplementation(async () => undefined);
  onTestFinished(() => alarms.mockRestore());
  const erased = { id: lena.id, words: [lena.name], since: 0, senderName: lena.name };
  unwrap(await agent.forgetSpace(workspaceId, "", erased));
  const words = (mind: { id: string }) => rowsIn(mind, "SELECT words IS NULL AS gone FROM redactions");
  await vi.waitFor(async () => expect(await words(secret.mind)).toEqual([{ gone: 1 }]));
  expect(await words(analyst)).toEqual([{ gone: 0 }]);
  const model = scripted([step(call("search", { query: "orchard" })), step(text("Well."))]);
  await secret.ask("And now?", 2);
  const found = JSON.stringify(model.calls.at(-1)?.prompt);
  expect(found).toContain("quinces");
  const all = [found, await rowsWith(agentStub(secret.mind), lena.name), await exported(workspaceId, analyst)];
  expect(all.map((each) => JSON.stringify(each).includes(lena.name))).toEqual([false, false, false]);
});
