import { abortAllDurableObjects, runInDurableObject } from "cloudflare:test";
import { env } from "cloudflare:workers";
import fc from "fast-check";
import { afterEach, describe, expect, inject, test, vi } from "vitest";
import { searchKeepUpMs, searchKeptMs, searchLeaseMs } from "../../src/agent/bounds.ts";
import { Search } from "../../src/agent/memory/search/search.ts";
import { featureHashing } from "../../src/models/embedders/feature-hashing.ts";
import { CreateBlock } from "../../src/protocol/block.ts";
import type { EntityRef } from "../../src/protocol/rpc.ts";
import { type SearchHit, SearchQuery } from "../../src/protocol/search.ts";
import { ColloquyError, unwrap } from "../../src/shared/errors.ts";
import { tokensPerText } from "../support/fake-embeddings.ts";
import { createGate } from "../support/gate.ts";
import { call, step, text } from "../support/scripted-model.ts";
import { requestsTo } from "./calls/scene.ts";
import {
  type AgentSettings,
  agentStub,
  ended,
  ids,
  openHouse,
  passTime,
  rowsIn,
  scripted,
  statementsOf,
} from "./fixture.ts";

afterEach(() => {
  vi.useRealTimers();
  vi.restoreAllMocks();
});

const stage = async (settings: Partial<AgentSettings> = {}) => {
  const house = await openHouse();
  const mona = await house.person("Mona");
  const analyst = await house.agent({ name: "Analyst", ...settings });
  const agent = env.AGENT.getByName(analyst.id);
  const find = async (query: Partial<SearchQuery> & { query: string }) =>
    unwrap(await env.AGENT.getByName(analyst.id).search(house.workspaceId, SearchQuery.parse(query)));
  const keep = async (content: string) =>
    unwrap(
      await agent.archive(house.workspaceId, ids.mintOwned("arch", analyst.id), { content, metadata: {}, source: {} }),
    );
  const tokensToday = async () => unwrap(await agent.describe(house.workspaceId)).activity?.tokensToday;
  return { house, mona, analyst, agent, find, keep, tokensToday };
};

const texts = (hits: SearchHit[]): string[] => hits.map(({ excerpt }) => excerpt);

const rowsOf = async (agent: EntityRef, table: string): Promise<number> =>
  (await rowsIn(agent, `select * from ${table}`)).length;

test("[C13] long texts are indexed a few at a time, so that others have their turn", async () => {
  const { analyst, find, keep } = await stage();
  for (let index = 0; index < 40; index += 1) await keep(`tea ${"leaves ".repeat(8000)}${index}`);
  const statements = await statementsOf(agentStub(analyst));
  const { items, notes } = await find({ query: "tea", limit: 1 });
  expect([items.length, notes]).toEqual([1, []]);
  const moves = statements.filter(({ query }) => /insert into "search_sources"/i.test(query));
  expect(moves.length).toBeGreaterThanOrEqual(15);
});

describe("an agent's own tools", () => {
  test("[R2] an archived message carries its sender, place and id; it is found again and deleted", async () => {
    const { house, mona, analyst, find } = await stage();
    const space = await house.space("Alpha", [mona, analyst]);
    const model = scripted([
      step(call("enter_space", { spaceId: space.id })),
      step(call("recall", { op: "insert", content: "Mona drinks green tea", metadata: { sure: true } })),
      step(call("recall", { op: "search", query: "tea" })),
      step(call("search", { query: "what does Mona drink", types: ["archival"], limit: 1 })),
      step(call("recall", { op: "insert" })),
      step(text("Kept.")),
    ]);
    const asked = await space.post(mona, "I drink green tea, remember that");
    await ended(house.workspaceId, analyst, 1);
    const results = (model.calls.at(-1)?.prompt ?? []).flatMap((message) =>
      message.role === "tool" ? message.content.map((part) => JSON.stringify(part)) : [],
    );
    expect(results[2]).toContain("Mona drinks green tea");
    expect(results[3]).toContain(asked.id);
    expect(results[4]).toContain("is needed for op insert");
    const { items } = await find({ query: "green tea", types: ["archival"] });
    expect(items).toMatchObject([
      { source: { spaceId: space.id, messageId: asked.id, authorId: mona.id, authorName: "Mona" } },
    ]);
    scripted([
      step(call("recall", { op: "delete", id: items[0]?.id ?? "" })),
      step(call("recall", { op: "delete", id: "arch_1" })),
      step(text("Gone.")),
    ]);
    await space.post(mona, "Forget it");
    await ended(house.workspaceId, analyst, 2);
    expect((await find({ query: "green tea", types: ["archival"] })).items).toEqual([]);
  });

  test.each(["consciousness", "timeline"] as const)(
    "%s: thoughts, tool results and words are found; its own tools' answers are not",
    async (continuity) => {
      const tools: AgentSettings["tools"] = [
        {
          name: "weather",
          description: "The weather",
          executionType: "internal",
          inputSchema: { type: "object", properties: { place: { type: "string" } } },
          output: { sky: "thunderstorm" },
        } as never,
      ];
      const { house, mona, analyst, find } = await stage({ continuity, tools });
      const space = await house.space("Alpha", [mona, analyst]);
      scripted([
        step(call("enter_space", { spaceId: space.id })),
        step(call("weather", { place: "Lisbon" })),
        step(call("send_message", { text: "It will rain" })),
        step(text("I pondered umbrellas.")),
      ]);
      await space.post(mona, "How is the weather?");
      const [run] = await ended(house.workspaceId, analyst, 1);
      const lived = async (query: string) => (await find({ query, types: ["consciousness"], mode: "fts" })).items;
      expect(await lived("thunderstorm")).toMatchObject([{ role: "tool", source: { runId: run?.id } }]);
      expect(await lived("lisbon")).toMatchObject([{ role: "assistant", source: { authorId: analyst.id } }]);
      if (continuity === "consciousness") expect(texts(await lived("umbrella"))).toEqual(["I pondered umbrellas."]);
      expect(await lived("rain")).toMatchObject([
        { role: "assistant", source: { spaceName: "Alpha", runId: run?.id } },
      ]);
      expect(await lived("totalMessages")).toEqual([]);
      const own = (await find({ query: "rain", types: ["message"] })).items;
      expect(own).toMatchObject([{ role: "assistant", source: { authorId: analyst.id, spaceName: "Alpha" } }]);
    },
  );
});

describe("the index", () => {
  test("[B4] before anybody searches nothing of it is stored, and no timer is set", async () => {
    const { house, mona, analyst } = await stage();
    scripted(() => step(text("Nothing.")));
    await (await house.space("Alpha", [mona, analyst])).post(mona, "Hello");
    await ended(house.workspaceId, analyst, 1);
    for (const table of ["search_entries", "search_state", "search_sources"])
      expect(await rowsOf(analyst, table)).toBe(0);
    expect(await rowsIn(analyst, "select name from timers where name = 'search'")).toEqual([]);
  });

  test.each([
    [searchKeptMs - 1, searchKeepUpMs],
    [searchKeptMs, undefined],
  ])("[B4] is kept up for a day after its last use, and no longer: after %i ms", async (unusedMs, nextMs) => {
    const { analyst, worked } = await working("answers", unusedMs);
    await worked();
    expect(await dueSearch(analyst)).toBe(nextMs && Date.now() + nextMs);
  });

  test.each(["own", "shared"])("[B4] a block that cannot be read is noted and wakes nobody: %s", async (whose) => {
    vi.useFakeTimers({ toFake: ["Date"] });
    const { house, analyst, find } = await stage();
    const keeper = whose === "own" ? analyst : await house.agent({ name: "Scribe" });
    const owner = env.AGENT.getByName(keeper.id);
    for (const label of ["plan", "rules"]) {
      const block = { label, schema: { type: "list" }, content: ["zinc"] };
      unwrap(await owner.createBlock(house.workspaceId, CreateBlock.parse(block), "system"));
      if (whose === "own") continue;
      unwrap(await owner.shareBlock(house.workspaceId, label, { granteeId: analyst.id, permission: "ReadOnly" }));
    }
    await rowsIn(keeper, `update block_versions set "update" = x'0102' where block_id = 1`);
    await abortAllDurableObjects();
    const { items, notes } = await find({ query: "zinc" });
    expect(items).toMatchObject([{ source: { label: "rules" } }]);
    expect(notes).toEqual(['"plan" could not be read: it is not found as it is now']);
    expect(await dueSearch(analyst)).toBe(Date.now() + searchKeepUpMs);
  });

  test("long texts are found at any place, and once", async () => {
    const { keep, find } = await stage();
    await keep(`${"filler words here. ".repeat(900)} the pomegranate ${"and more of it. ".repeat(900)}`);
    const { items } = await find({ query: "pomegranate filler" });
    expect(items).toHaveLength(1);
    expect(items[0]?.excerpt).toContain("pomegranate");
  });

  test("any text can be kept, searched for in any mode, deleted, and is then found no more", async () => {
    const { house, agent, analyst, find } = await stage();
    const words = fc.constantFrom("tea", "launch", '"', "NEAR(", "*", "é", "🙂", "-", "foo-bar", "\n", "AND", "what's");
    const sentence = fc.array(words, { minLength: 1, maxLength: 8 }).map((parts) => parts.join(" "));
    const anything = sentence.filter((query) => query.trim() !== "");
    const mode = fc.constantFrom("fts", "vector", "hybrid", "auto");
    await fc.assert(
      fc.asyncProperty(
        fc.array(sentence, { minLength: 1, maxLength: 4 }),
        anything,
        mode,
        async (contents, query, how) => {
          const kept = contents.map((content) => ({ id: ids.mintOwned("arch", analyst.id), content }));
          for (const { id, content } of kept) {
            unwrap(await agent.archive(house.workspaceId, id, { content, metadata: {}, source: {} }));
          }
          const before = (await find({ query, mode: how as "fts", limit: 100 })).items;
          expect(before.filter(({ id }) => !kept.some((entry) => entry.id === id))).toEqual([]);
          const [gone, ...left] = kept;
          unwrap(await agent.deleteArchival(house.workspaceId, gone?.id ?? ""));
          const after = (await find({ query, mode: how as "fts", limit: 100 })).items;
          expect(after.some(({ id }) => id === gone?.id)).toBe(false);
          for (const { id } of left) unwrap(await agent.deleteArchival(house.workspaceId, id));
        },
      ),
      { numRuns: 40, endOnFailure: true },
    );
    expect(await rowsOf(analyst, "search_entries")).toBe(0);
  });
});

/** When the search's timer is due, if it is set. */
const dueSearch = async (agent: EntityRef): Promise<number | undefined> => {
  const [row] = await rowsIn(agent, "select due_at from timers where name = 'search'");
  return row && Number(row.due_at);
};

/** An agent whose search works in the background, and waits for its embedder, which then does as it is told. */
const working = async (how: "answers" | "fails", afterMs = searchKeepUpMs) => {
  vi.useFakeTimers({ toFake: ["Date"] });
  const staged = await stage();
  const { analyst, find, keep } = staged;
  await keep("tea");
  await find({ query: "zebra", mode: "hybrid" });
  await keep("zebra jazz");
  const work = vi.spyOn(Search.prototype, "work");
  const gate = createGate();
  const { embed } = featureHashing;
  vi.spyOn(featureHashing, "embed").mockImplementationOnce(async (...asked) => {
    gate.reach();
    await gate.opened;
    if (how === "answers") return embed(...asked);
    throw new ColloquyError("model_unavailable", "it is asked too often", { retryAfterMs: 3_600_000 });
  });
  await passTime(analyst, afterMs);
  await gate.reached;
  const worked = (): Promise<void> => {
    gate.open();
    return runInDurableObject(agentStub(analyst), () => work.mock.results.at(-1)?.value);
  };
  return { ...staged, worked };
};

test("[K16] [B4] a question finds the decision that does not name its matter, at a bounded cost", async () => {
  const { house, mona, analyst, find } = await stage();
  const sara = await house.person("Sara");
  scripted(() => step(text("Read.")));
  const space = await house.space("Alpha", [mona, sara, analyst]);
  const said = async (who: EntityRef, words: string) => void (await space.post(who, words));
  for (let index = 0; index < 40; index += 1) await said(mona, `Day ${index}: the printer in Oslo hums.`);
  await said(mona, "For Oslo I would order the new printer.");
  await said(sara, "Too early.");
  await said(mona, "Fine, we wait until May.");
  await find({ query: "anything" });
  const statements = await statementsOf(agentStub(analyst));
  const types: SearchQuery["types"] = ["message"];
  const { items } = await find({ query: "What was decided about the new printer for Oslo?", types });
  const decided = ["For Oslo I would order the new printer.", "Too early.", "Fine, we wait until May."];
  expect(texts(items).slice(0, 3)).toEqual(decided);
  const followers = statements.filter(({ query }) => query.includes("json_each(?) leader"));
  expect(followers).toHaveLength(1);
  expect(followers[0]?.cursor.rowsRead).toBeLessThanOrEqual(100);
  for (const query of ["printer", "new printer", '"new printer" decided Oslo']) {
    expect(texts((await find({ query, types })).items)).not.toContain("Too early.");
  }
});

describe("vectors", () => {
  const over = (name: string): AgentSettings["embedder"] => ({
    provider: "openai-compatible",
    name,
    baseUrl: `${inject("remote")}/openai/v1`,
  });

  test("[B2] of a provider are made in the background, and booked", async () => {
    vi.useFakeTimers({ toFake: ["Date"] });
    const { analyst, keep, find, tokensToday } = await stage({ embedder: over("letters") });
    await keep("zebra jazz");
    await keep("tea");
    const first = await find({ query: "zz" });
    expect(first).toMatchObject({ mode: "fts", items: [] });
    await passTime(analyst, 2000);
    await vi.waitFor(async () => expect(await rowsOf(analyst, "search_vectors")).toBe(1));
    const spent = await tokensToday();
    expect(spent).toBe(2 * tokensPerText);
    const { items, mode } = await find({ query: "zz" });
    expect(mode).toBe("hybrid");
    expect(texts(items)[0]).toBe("zebra jazz");
    expect(await tokensToday()).toBe(3 * tokensPerText);
  });

  test("[K16] by letters alone change nothing that words find, and are made where asked for", async () => {
    vi.useFakeTimers({ toFake: ["Date"] });
    const { analyst, keep, find } = await stage();
    for (const content of ["zebra jazz", "zebras and jazz", "a jazzy zebra", "tea"]) await keep(content);
    const byWords = await find({ query: "zebra jazz", mode: "fts" });
    expect(await find({ query: "zebra jazz" })).toEqual(byWords);
    expect(await rowsOf(analyst, "search_vectors")).toBe(0);
    expect((await find({ query: "zebrra", mode: "hybrid" })).mode).toBe("hybrid");
    expect((await find({ query: "zebrra jazzz", mode: "vector" })).items.length).toBeGreaterThan(0);
    expect(await rowsOf(analyst, "search_vectors")).toBe(1);
    expect(await find({ query: "zebra jazz" })).toEqual(byWords);
  });

  test("another embedder makes all of them anew", async () => {
    vi.useFakeTimers({ toFake: ["Date"] });
    const { house, agent, analyst, keep, find } = await stage();
    await keep("zebra jazz");
    expect((await find({ query: "zebras", mode: "hybrid" })).mode).toBe("hybrid");
    unwrap(await agent.update(house.workspaceId, { embedder: over("letters") }));
    expect((await find({ query: "zebras" })).mode).toBe("fts");
    await passTime(analyst, 2000);
    await vi.waitFor(async () => expect((await find({ query: "zz", mode: "vector" })).items).toHaveLength(1));
    unwrap(await agent.update(house.workspaceId, { embedder: { provider: "none" } }));
    expect((await find({ query: "zebras" })).mode).toBe("fts");
    expect(await rowsOf(analyst, "search_vectors")).toBe(0);
    const refused = await agent.search(house.workspaceId, SearchQuery.parse({ query: "x", mode: "vector" }));
    expect(refused).toMatchObject({ ok: false, problem: { code: "invalid_request" } });
    unwrap(await agent.update(house.workspaceId, { embedder: null }));
    expect((await find({ query: "zebras", mode: "hybrid" })).mode).toBe("hybrid");
  });

  test("[R4] an embedder that fails stops no search: words alone answer, and the answer says so", async () => {
    vi.useFakeTimers({ toFake: ["Date"] });
    const { house, agent, analyst, keep, find } = await stage({ embedder: over("broken") });
    await keep("zebra jazz");
    const hybrid = await find({ query: "zebra", mode: "hybrid" });
    expect(hybrid).toMatchObject({ mode: "fts", partial: true, items: [{ excerpt: "zebra jazz" }] });
    expect(hybrid.notes.join()).toContain("model_unavailable");
    const vector = await agent.search(house.workspaceId, SearchQuery.parse({ query: "x", mode: "vector" }));
    expect(vector).toMatchObject({ ok: false, problem: { code: "unavailable" } });
    await passTime(analyst, 2000);
    expect((await find({ query: "zebra" })).items).toHaveLength(1);
  });

  test.each(["answers", "fails"] as const)(
    "[R4] an embedder set while another is asked is asked at once, though that %s later",
    async (how) => {
      const { house, agent, analyst, worked } = await working(how);
      unwrap(await agent.update(house.workspaceId, { embedder: over("letters") }));
      const setAt = Date.now();
      await worked();
      expect(await dueSearch(analyst)).toBe(setAt);
    },
  );

  test.each(["answers", "fails"] as const)(
    "[R5] of an agent deleted while its embedder is asked, nothing more is stored: it %s",
    async (how) => {
      const { house, agent, analyst, worked } = await working(how);
      const warned = vi.spyOn(console, "warn").mockImplementation(() => undefined);
      unwrap(await agent.remove(house.workspaceId));
      await worked();
      const left = await runInDurableObject(agentStub(analyst), async (_, { storage }) => [
        storage.sql.exec("SELECT name FROM sqlite_master WHERE name NOT LIKE '_cf_%'").toArray(),
        await storage.getAlarm(),
      ]);
      expect(left).toEqual([[], null]);
      expect(warned.mock.calls).toEqual([]);
    },
  );

  test.each([
    ["a longer one for each failure", "broken", [5000, 10_000, 20_000], 0.5],
    ["the one its provider asks for", "busy", [90_000, 90_000, 90_000], 1 / 9],
  ])("[R4] an embedder that fails is asked again after a pause: %s", async (_, name, pauses, jitter) => {
    vi.useFakeTimers({ toFake: ["Date"] });
    const { analyst, keep, find } = await stage({ embedder: over(name) });
    await keep("zebra jazz");
    await find({ query: "zebra" });
    const work = vi.spyOn(Search.prototype, "work");
    for (const [index, pauseMs] of pauses.entries()) {
      await passTime(analyst, ((await dueSearch(analyst)) ?? Date.now()) - Date.now());
      const askedAt = Date.now();
      // `vi.waitFor` moves the clock on with each look: the pause is counted from before it, and after it.
      await vi.waitFor(() => expect(work).toHaveBeenCalledTimes(index + 1));
      await runInDurableObject(agentStub(analyst), () => work.mock.results.at(-1)?.value);
      const due = await dueSearch(analyst);
      expect(due).toBeGreaterThanOrEqual(askedAt + pauseMs);
      expect(due).toBeLessThanOrEqual(Date.now() + pauseMs * (1 + jitter) + 1);
    }
  });

  test("[R4] are asked for no sooner than their provider wants, however often somebody searches", async () => {
    vi.useFakeTimers({ toFake: ["Date"] });
    const { analyst, keep, find } = await stage({ embedder: over("busy-3600") });
    await keep("zebra jazz");
    await find({ query: "zebra", mode: "fts" });
    await passTime(analyst, 2000);
    const askedAt = Date.now() + 3_600_000;
    await vi.waitFor(async () => expect(await dueSearch(analyst)).toBeGreaterThanOrEqual(askedAt));
    await find({ query: "zebra", mode: "fts" });
    expect(await dueSearch(analyst)).toBeGreaterThanOrEqual(askedAt);
  });

  test("[B2] of a provider that tells no tokens are booked by our estimate", async () => {
    vi.useFakeTimers({ toFake: ["Date"] });
    const { analyst, keep, find, tokensToday } = await stage({ embedder: over("untold") });
    await keep("zebra jazz");
    await find({ query: "zz" });
    await passTime(analyst, 2000);
    await vi.waitFor(async () => expect(await rowsOf(analyst, "search_vectors")).toBe(1));
    expect(await tokensToday()).toBeGreaterThan(0);
  });

  test("[B2] [B3] what a failing embedder may have cost is booked, and nothing is left open", async () => {
    const { analyst, keep, find, tokensToday } = await stage({ embedder: over("short") });
    await keep("zebra jazz");
    const costs: unknown[] = [];
    for (const query of ["one", "two", "three"]) {
      await find({ query, mode: "hybrid" });
      costs.push(await tokensToday());
    }
    expect(costs).toEqual([1, 2, 4]);
    expect(await rowsIn(analyst, "select reserved from ledger")).toEqual([{ reserved: "{}" }]);
  });

  test.each([
    ["refusing", "model_rejected"],
    ["busy", "model_unavailable"],
    ["broken", "model_unavailable"],
  ])("[B2] of texts that their provider refused cost nothing: one that is %s", async (name, code) => {
    const { analyst, keep, find, tokensToday } = await stage({ embedder: over(name) });
    await keep("zebra jazz");
    expect((await find({ query: "zz", mode: "hybrid" })).notes.join()).toContain(code);
    expect(await tokensToday()).toBe(0);
    expect(await rowsIn(analyst, "select spent, reserved from ledger")).toEqual([{ spent: 0, reserved: "{}" }]);
  });

  test("[R1] are made by themselves after the work at them was cut", async () => {
    vi.useFakeTimers({ toFake: ["Date"] });
    const path = `/silent/${crypto.randomUUID()}`;
    const baseUrl = `${inject("remote")}${path}`;
    const { analyst, keep, find } = await stage({
      embedder: { provider: "openai-compatible", name: "letters", baseUrl },
    });
    await keep("zebra jazz");
    await find({ query: "zz", mode: "fts" });
    await passTime(analyst, 2000);
    await vi.waitFor(async () => expect(await requestsTo(path)).toHaveLength(1));
    await abortAllDurableObjects();
    expect(await dueSearch(analyst)).toBeLessThanOrEqual(Date.now() + searchLeaseMs);
  });

  test("[C11] cost no more of the day than a person's share, whoever said so much", async () => {
    vi.useFakeTimers({ toFake: ["Date"] });
    const limits = { maxTokensPerDay: 8000 };
    const { analyst, keep, find, tokensToday } = await stage({ embedder: over("untold"), limits });
    const work = vi.spyOn(Search.prototype, "work");
    for (const count of [3, 20]) {
      for (let index = 0; index < count; index += 1) await keep(`${index} ${"zebra ".repeat(160)}`);
      await find({ query: "zz", mode: "fts" });
      await passTime(analyst, 2000);
      await vi.waitFor(() => expect(work.mock.results.at(-1)?.type).toBe("return"));
      await runInDurableObject(agentStub(analyst), () => work.mock.results.at(-1)?.value);
    }
    expect(await tokensToday()).toBeGreaterThan(0);
    expect(await tokensToday()).toBeLessThanOrEqual(2000);
  });

  test("[B2] a budget that is spent pays for no vectors", async () => {
    const limits = { maxTokensPerDay: 1000, maxShareOfPerson: 1 };
    const { keep, find, tokensToday } = await stage({ embedder: over("letters"), limits });
    await keep("zebra ".repeat(1500));
    const { mode, notes } = await find({ query: `zebra ${"jazz ".repeat(390)}`, mode: "hybrid" });
    expect([mode, notes.length > 0]).toEqual(["hybrid", true]);
    expect(await tokensToday()).toBe(tokensPerText);
  });
});
