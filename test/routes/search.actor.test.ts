import { describe, expect, onTestFinished, test, vi } from "vitest";
import * as z from "zod";
import { Agent } from "../../src/agent/agent.ts";
import { ArchivalEntry } from "../../src/protocol/archival.ts";
import { SearchAnswer, type SearchHit, WorkspaceSearchAnswer } from "../../src/protocol/search.ts";
import { agentTimeoutMs } from "../../src/routes/search.ts";
import { call, expectOk, type House, ids, openHouse } from "../support/house.ts";
import { shorten } from "../support/shorten.ts";
import { problemIn } from "./operations.ts";

type Query = Record<string, string | number>;

const address = (query: Query): string =>
  new URLSearchParams(Object.entries(query).map(([name, value]) => [name, String(value)])).toString();

const find = async (house: House, agentId: string, query: Query) =>
  expectOk(SearchAnswer, call(`/v1/agents/${agentId}/search?${address(query)}`, { bearer: house.secretKey }));

const found = async (house: House, agentId: string, query: Query): Promise<SearchHit[]> =>
  (await find(house, agentId, query)).items;

const keep = (house: House, agentId: string, body: unknown) =>
  expectOk(ArchivalEntry, call(`/v1/agents/${agentId}/archival`, { bearer: house.secretKey, body }));

const newAgent = async (config: Record<string, unknown> = {}) => {
  const house = await openHouse();
  return { house, agentId: (await house.agent({ name: "Analyst", ...config })).id };
};

describe("archival entries", () => {
  test("an archival entry is kept with its source, listed, found, and deleted", async () => {
    const { house, agentId } = await newAgent();
    const mona = await house.person("Mona");
    const space = await house.space("Alpha", [mona, { id: agentId }]);
    const source = { spaceId: space.id, authorId: mona.id };
    const first = await keep(house, agentId, { content: "First archival entry", source });
    const second = await keep(house, agentId, {
      content: "Second archival entry with metadata",
      metadata: { source: "test", importance: "high" },
    });
    expect(first).toMatchObject({ content: "First archival entry", metadata: {}, source });
    expect(first.id).toMatch(/^arch_/);
    const listed = z.object({ items: z.array(ArchivalEntry), nextCursor: z.string().nullable() });
    const path = `/v1/agents/${agentId}/archival`;
    const page = await expectOk(listed, call(`${path}?limit=1`, { bearer: house.secretKey }));
    expect(page.items).toEqual([second]);
    const rest = await expectOk(listed, call(`${path}?cursor=${page.nextCursor}`, { bearer: house.secretKey }));
    expect(rest).toEqual({ items: [first], nextCursor: null });

    const count = async (q: string) => (await found(house, agentId, { q, types: "archival" })).length;
    expect([await count("archival"), await count("metadata"), await count("importance")]).toEqual([2, 1, 1]);
    const [hit] = await found(house, agentId, { q: "first" });
    expect(hit).toMatchObject({
      type: "archival",
      id: first.id,
      excerpt: "First archival entry",
      createdAt: first.createdAt,
      source: { ...source, spaceName: "Alpha", authorName: "Mona" },
    });

    const removal = { method: "DELETE", bearer: house.secretKey };
    expect((await call(`${path}/${first.id}`, removal)).status).toBe(204);
    expect((await call(`${path}/${first.id}`, removal)).status).toBe(404);
    expect([await count("First"), await count("Second")]).toEqual([0, 1]);
    const third = await keep(house, agentId, { content: "Third archival entry" });
    await call(`${path}/${third.id}`, removal);
    const fourth = await keep(house, agentId, { content: "Fourth archival entry" });
    expect((await found(house, agentId, { q: "fourth" })).map(({ id }) => id)).toEqual([fourth.id]);
  });

  test("[R2] the same key again keeps no second archival entry", async () => {
    const { house, agentId } = await newAgent();
    const once = () =>
      expectOk(
        ArchivalEntry,
        call(`/v1/agents/${agentId}/archival`, {
          bearer: house.secretKey,
          body: { content: "Only once" },
          headers: { "idempotency-key": "once" },
        }),
      );
    expect(await once()).toEqual(await once());
    expect(await found(house, agentId, { q: "once" })).toHaveLength(1);
  });

  test.each([
    ["blank content", { content: " \n" }, "invalid_request"],
    ["no content", { metadata: {} }, "invalid_request"],
    ["content of another type", { content: 7 }, "invalid_request"],
    ["an unknown field", { content: "x", author: "me" }, "invalid_request"],
    ["a source that is no id", { content: "x", source: { spaceId: "alpha" } }, "invalid_request"],
    ["too much content", { content: "x".repeat(64 * 1024 + 1) }, "text_too_long"],
    ["two megabytes", { content: "x".repeat(2_000_000) }, "payload_too_large"],
    ["too much metadata", { content: "x", metadata: { a: "y".repeat(9000) } }, "invalid_request"],
    ["half a surrogate pair", { content: "x\ud800" }, "invalid_request"],
  ])("[S4] %s is refused and nothing is kept", async (_, body, code) => {
    const { house, agentId } = await newAgent();
    const path = `/v1/agents/${agentId}/archival`;
    expect(await problemIn(await call(path, { bearer: house.secretKey, body }))).toMatchObject({ code });
    const list = await expectOk(z.object({ items: z.array(z.unknown()) }), call(path, { bearer: house.secretKey }));
    expect(list.items).toEqual([]);
  });
});

describe("search", () => {
  test("messages are found by text, speaker and space, which each hit names", async () => {
    const { house, agentId } = await newAgent();
    const [mona, husam] = [await house.person("Mona"), await house.person("Husam")];
    const space = await house.space("Project Alpha", [mona, husam, { id: agentId }], { wakePolicy: "addressed" });
    const said = await house.say(space.id, mona, "The launch moves to Friday.");
    await house.say(space.id, husam, "The launch needs a budget.");
    const hits = await found(house, agentId, { q: "what did Mona say about the launch", types: "messages" });
    expect(hits[0]).toMatchObject({
      type: "message",
      id: said.id,
      excerpt: "The launch moves to Friday.",
      role: "user",
      createdAt: said.createdAt,
      source: {
        spaceId: space.id,
        spaceName: "Project Alpha",
        messageId: said.id,
        authorId: mona.id,
        authorName: "Mona",
      },
    });
    expect(hits).toHaveLength(2);
    expect(hits[0]?.score).toBeGreaterThan(hits[1]?.score ?? 0);
    await house.say(space.id, husam, "A zebra, just now.");
    expect((await found(house, agentId, { q: "zebra" }))[0]?.excerpt).toBe("A zebra, just now.");
  });

  test("[S1] messages of a space that the agent has left, or of another agent, are not found", async () => {
    const { house, agentId } = await newAgent();
    const mona = await house.person("Mona");
    const other = await house.agent({ name: "Other" });
    const open = { wakePolicy: "addressed" };
    const mine = await house.space("Mine", [mona, { id: agentId }], open);
    const others = await house.space("Others", [mona, { id: other.id }], open);
    await house.say(mine.id, mona, "secret of mine");
    await house.say(others.id, mona, "secret of others");
    await keep(house, agentId, { content: "Agent 1 secret information" });
    await keep(house, other.id, { content: "Agent 2 secret information" });
    const excerpts = async (id: string) => (await found(house, id, { q: "secret" })).map((hit) => hit.excerpt).sort();
    expect(await excerpts(agentId)).toEqual(["Agent 1 secret information", "secret of mine"]);
    expect(await excerpts(other.id)).toEqual(["Agent 2 secret information", "secret of others"]);
    const removal = { method: "DELETE", bearer: house.secretKey };
    await call(`/v1/spaces/${mine.id}/members/${agentId}`, removal);
    for (const mode of ["fts", "vector", "hybrid", "auto"]) {
      const hits = await found(house, agentId, { q: "secret", mode, types: "message,block,archival" });
      expect(hits.map((hit) => hit.excerpt)).toEqual(["Agent 1 secret information"]);
    }
    await expectOk(
      z.unknown(),
      call(`/v1/spaces/${mine.id}/members`, { bearer: house.secretKey, body: { entityId: agentId } }),
    );
    await expect.poll(() => excerpts(agentId)).toEqual(["Agent 1 secret information", "secret of mine"]);
  });

  test("filters narrow by type, role, time and number", async () => {
    const { house, agentId } = await newAgent();
    for (let index = 0; index < 12; index += 1) {
      await keep(house, agentId, { content: `Entry ${index} about testing functionality` });
    }
    expect(await found(house, agentId, { q: "testing", limit: 3 })).toHaveLength(3);
    expect(await found(house, agentId, { q: "testing" })).toHaveLength(10);
    expect(await found(house, agentId, { q: "testing", types: "messages,blocks" })).toEqual([]);
    expect(await found(house, agentId, { q: "testing", role: "user" })).toEqual([]);
    expect(await found(house, agentId, { q: "testing", to: "2020-01-01T00:00:00Z" })).toEqual([]);
    for (const mode of ["fts", "vector", "hybrid"]) {
      expect(await found(house, agentId, { q: "testing", mode, from: "2020-01-01T00:00:00Z" })).toHaveLength(10);
      expect(await found(house, agentId, { q: "testing", mode, types: "message" })).toEqual([]);
    }
  });

  test("a block is found by its current label, description and text, and not after its deletion", async () => {
    const { house, agentId } = await newAgent();
    const bearer = house.secretKey;
    const path = `/v1/agents/${agentId}/blocks`;
    const block = { label: "persona", type: "core", permission: "ReadWrite", description: "Agent personality" };
    await expectOk(z.unknown(), call(path, { bearer, body: { ...block, content: "rust text" } }));
    const labels = async (q: string) => (await found(house, agentId, { q })).map(({ source }) => source.label);
    expect(await Promise.all(["persona", "personality", "rust"].map(labels))).toEqual([
      ["persona"],
      ["persona"],
      ["persona"],
    ]);
    const operations = [{ op: "set_text", text: "zebra crossing" }];
    await expectOk(z.unknown(), call(`${path}/persona/operations`, { bearer, body: { operations } }));
    expect([await labels("rust"), await labels("zebra")]).toEqual([[], ["persona"]]);
    expect((await call(`${path}/persona`, { bearer, method: "DELETE" })).status).toBe(204);
    expect(await labels("zebra")).toEqual([]);
  });

  test("phrases match whole, prefixes match, and all modes answer the best hit first", async () => {
    const { house, agentId } = await newAgent();
    await keep(house, agentId, { content: "the quick brown fox jumps over the lazy dog" });
    await keep(house, agentId, { content: "programming is fun" });
    const count = async (q: string) => (await found(house, agentId, { q, mode: "fts" })).length;
    expect(await Promise.all(['"quick brown fox"', '"brown quick fox"'].map(count))).toEqual([1, 0]);
    expect(await Promise.all(["prog*", "program*", "xyz*"].map(count))).toEqual([1, 1, 0]);
    expect((await find(house, agentId, { q: "fox" })).mode).toBe("fts");
    expect((await find(house, agentId, { q: "fox", mode: "hybrid" })).mode).toBe("hybrid");
    expect((await find(house, agentId, { q: "programing", mode: "vector" })).items[0]?.excerpt).toBe(
      "programming is fun",
    );
    expect(await found(house, agentId, { q: "xyz*" })).toEqual([]);
  });

  test.each([
    "what's up?",
    "foo-bar",
    '"',
    '""',
    "NEAR(",
    "a AND",
    "OR",
    "NOT",
    "(",
    "*",
    "col:x",
    "^x",
    "'; drop",
    "\0",
    "🙂",
    "{",
    "-",
    "a*b*",
  ])("[S4] %j is a query like any other", async (q) => {
    const { house, agentId } = await newAgent();
    await keep(house, agentId, { content: `what's up? foo-bar near ( and or not col:x 🙂` });
    for (const mode of ["fts", "vector", "hybrid", "auto"]) await find(house, agentId, { q, mode });
  });

  test.each([
    ["no query", {}],
    ["an empty query", { q: "" }],
    ["a blank query", { q: "   " }],
    ["a query that is too long", { q: "x".repeat(2001) }],
    ["an unknown mode", { q: "x", mode: "magic" }],
    ["an unknown type", { q: "x", types: "message,dreams" }],
    ["an unknown role", { q: "x", role: "system" }],
    ["a time that is none", { q: "x", from: "yesterday" }],
    ["no hits at all", { q: "x", limit: 0 }],
    ["too many hits", { q: "x", limit: 101 }],
  ])("[S4] %s is refused", async (_, query) => {
    const { house, agentId } = await newAgent();
    const answer = await call(`/v1/agents/${agentId}/search?${address(query)}`, { bearer: house.secretKey });
    expect(await problemIn(answer)).toMatchObject({ code: "invalid_request", status: 400 });
  });

  test("the workspace's search asks all agents, and one that fails does not fail the others", async () => {
    const house = await openHouse();
    const [one, two] = [await house.agent({ name: "One" }), await house.agent({ name: "Two" })];
    const mona = await house.person("Mona");
    const space = await house.space("Alpha", [mona, one, two], { wakePolicy: "addressed" });
    await house.say(space.id, mona, "A shared secret");
    await keep(house, one.id, { content: "A secret of one" });
    await keep(house, two.id, { content: "A secret of two" });
    const [bearer, path] = [house.secretKey, `/v1/agents/${one.id}/blocks`];
    await expectOk(z.unknown(), call(path, { bearer, body: { label: "plan", content: "A secret block" } }));
    const share = { bearer, method: "PUT", body: { permission: "ReadOnly" } };
    await expectOk(z.unknown(), call(`${path}/plan/shares/${two.id}`, share));
    const all = () => expectOk(WorkspaceSearchAnswer, call("/v1/search?q=secret", { bearer: house.secretKey }));
    const { items, unreachable } = await all();
    expect(items.map(({ excerpt }) => excerpt).sort()).toEqual([
      "A secret block",
      "A secret of one",
      "A secret of two",
      "A shared secret",
    ]);
    expect(unreachable).toEqual([]);
    await removeBehind(house, two.id);
    const after = await all();
    expect(after.items.map(({ excerpt }) => excerpt).sort()).toEqual([
      "A secret block",
      "A secret of one",
      "A shared secret",
    ]);
    expect(after.unreachable).toEqual([{ agentId: two.id, code: "not_found" }]);
    expect(after.partial).toBe(true);
  });
});

test("[R4] an agent that never answers fails none of the others in a search of the workspace", async () => {
  shorten(agentTimeoutMs);
  const house = await openHouse();
  const agents = [await house.agent({ name: "One" }), await house.agent({ name: "Two" })];
  for (const { id } of agents) await keep(house, id, { content: "A secret" });
  const silent = vi.spyOn(Agent.prototype, "search").mockImplementationOnce(() => new Promise(() => undefined));
  onTestFinished(() => silent.mockRestore());
  const { items, unreachable } = await expectOk(
    WorkspaceSearchAnswer,
    call("/v1/search?q=secret", { bearer: house.secretKey }),
  );
  expect(unreachable.map(({ code }) => code)).toEqual(["unavailable"]);
  const heard = [...items, ...unreachable].map(({ agentId }) => agentId);
  expect(heard.toSorted()).toEqual(agents.map(({ id }) => id).toSorted());
});

/** The agent's object is gone, and the directory does not know it yet. */
const removeBehind = async (house: House, agentId: string): Promise<void> => {
  const { env } = await import("cloudflare:workers");
  await env.AGENT.getByName(agentId).remove(house.workspaceId);
};

test("[S6] an invented archival id answers 404", async () => {
  const { house, agentId } = await newAgent();
  const path = `/v1/agents/${agentId}/archival/${ids.mintOwned("arch", ids.mint("ent"))}`;
  expect((await call(path, { method: "DELETE", bearer: house.secretKey })).status).toBe(404);
});
