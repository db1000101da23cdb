import { expect, test } from "vitest";
import { loadLoro } from "../../../src/agent/memory/documents/document.ts";
import { ImportedAgent } from "../../../src/protocol/exported-agent.ts";
import { expectOk, openHouse } from "../../support/house.ts";
import { problemIn } from "../operations.ts";
import { comparable, type Document, documentOf, exported, imported, send } from "./lived.ts";

/** Documents as the code of their time wrote them. They are never written anew. */
const fixtures = import.meta.glob<string>("./fixtures/*", { query: "?raw", import: "default", eager: true });
/** Their plans are due later, whenever this runs: one that is due would begin a run. */
const dueAt = new Date(Date.now() + 60 * 60_000).toISOString();
const written = (name: string): string =>
  (fixtures[`./fixtures/${name}`] ?? "").replaceAll(/"dueAt":"[^"]+"/g, `"dueAt":"${dueAt}"`);
const fixture = written("agent-v1.golden.json");
const json = { "content-type": "application/json" };

test.each([
  ["1", fixture, json, (text: string) => JSON.parse(text) as Document],
  ["2", written("agent-v2.golden.ndjson"), {}, documentOf],
])("[R2] a document of version %s is imported with all that it holds", async (_, text, headers, read) => {
  await loadLoro();
  const house = await openHouse();
  const document = read(text);
  const { agent, imported: report } = await expectOk(ImportedAgent, imported(house, text, "", headers));
  expect(report).toMatchObject({
    from: { agentId: document.agent.id, exportedAt: document.exportedAt },
    counts: { memories: 2, goals: 2, plans: 2, runs: 3, blocks: 2, archival: 2 },
    shares: 2,
  });
  const selves = [document.agent.id, agent.id];
  expect(comparable(await exported(house, agent.id), selves)).toEqual(comparable(document, selves));
  expect(await send(house, `/v1/agents/${agent.id}/blocks/notes?version=2`)).toMatchObject({ value: "Calm. One." });
  expect(JSON.stringify(await send(house, `/v1/agents/${agent.id}/context`))).toContain("warehouse opens at seven");
});

test("[S4] a document of version 1 that is wrong is refused with its place, and leaves nothing", async () => {
  const house = await openHouse();
  for (const [wrong, path] of [
    [fixture.replace('"key":"tea"', '"key":"asked"'), "agent.memories.1"],
    [fixture.replace('"key":"tea"', '"key":7'), "agent.memories.1.key"],
    [fixture.replace('"ordinal":3', '"ordinal":4'), "run 4"],
  ] as const) {
    const problem = await problemIn(await imported(house, wrong, "", json));
    expect(problem).toMatchObject({ code: "invalid_request", issues: [{ path }] });
  }
  const cut = fixture.slice(0, fixture.length / 2);
  expect(await problemIn(await imported(house, cut, "", json))).toMatchObject({ code: "invalid_json" });
  expect(await send(house, "/v1/agents")).toMatchObject({ items: [] });
});
