import { env } from "cloudflare:workers";
import { beforeAll, beforeEach, expect, onTestFinished, test, vi } from "vitest";
import { Agent } from "../../../src/agent/agent.ts";
import { searchNewsMs } from "../../../src/agent/bounds.ts";
import { loadLoro } from "../../../src/agent/memory/documents/document.ts";
import type { SearchHit } from "../../../src/protocol/search.ts";
import { ColloquyError, type Outcome, refusalOf, unwrap } from "../../../src/shared/errors.ts";
import { compartmentId } from "../../../src/shared/ids.ts";
import { Space } from "../../../src/space/space.ts";
import { call } from "../../support/scripted-model.ts";
import { ids, openScene, passTime, rowsIn, told, undoLater } from "../fixture.ts";
import { dumpOf, openTwoMinds } from "./scene.ts";

undoLater();

// It takes its time under vite, which makes it anew for each file.
beforeAll(() => loadLoro(), 60_000);
beforeEach(() => void vi.useFakeTimers({ toFake: ["Date"], now: new Date("2031-03-03T12:00:00Z") }));

const texts = (hits: SearchHit[]): string[] => hits.map(({ excerpt, open }) => `${open ? "open" : "own"}: ${excerpt}`);

const problemOf = (outcome: Outcome<unknown>): string =>
  outcome.ok ? "none" : `${outcome.problem.code}: ${outcome.problem.detail}`;

/** Both minds with a run behind them, and what is new in the open mind taken into its index. */
const open = async (...[settings]: Parameters<typeof openTwoMinds>) => {
  const scene = await openTwoMinds(settings);
  const indexed = async (): Promise<void> => {
    await passTime(scene.analyst, searchNewsMs);
    await vi.waitFor(async () => expect((await scene.inside.find({ query: "anything" })).notes).toEqual([]));
  };
  return { ...scene, indexed };
};

test("[C17] [C18] a compartment keeps its own archival entries, and deletes no open ones", async () => {
  const { open: outside, inside, run, analyst, secret, workspaceId } = await openTwoMinds();
  for (const text of ["Tea is green", "Tea is hot"]) await outside.keep(text);
  const { results } = await run(secret, call("recall", { op: "insert", content: "Falcon costs 4 million" }));
  expect(results[0]).toContain('"success":true');
  await inside.keep("Heron costs less");
  const listed = async (limit: number): Promise<string[]> => {
    const pages: string[] = [];
    for (let cursor: string | undefined = ""; cursor !== undefined; ) {
      const { items, nextCursor } = await inside.archival(limit, cursor || undefined);
      pages.push(...items.map((entry) => `${entry.open ? "open" : "own"}: ${entry.content}`));
      cursor = nextCursor ?? undefined;
    }
    return pages;
  };
  const all = ["own: Heron costs less", "own: Falcon costs 4 million", "open: Tea is hot", "open: Tea is green"];
  for (const limit of [1, 2, 3, 4, 100]) expect(await listed(limit)).toEqual(all);
  expect((await outside.archival()).items.map(({ content }) => content)).toEqual(["Tea is hot", "Tea is green"]);
  expect((await outside.archival()).items[0]).not.toHaveProperty("open");

  const [hot] = (await outside.archival()).items;
  const deleting = await run(secret, call("recall", { op: "delete", id: hot?.id ?? "" }));
  const refusal = "that is an open archival entry; a run of a confidential space may not change it";
  expect(deleting.results[0]).toContain(refusal);
  expect(problemOf(await inside.stub().deleteArchival(workspaceId, hot?.id ?? ""))).toBe(`forbidden: ${refusal}`);
  const [heron] = (await inside.archival()).items;
  unwrap(await inside.stub().deleteArchival(workspaceId, heron?.id ?? ""));
  expect(await listed(100)).toEqual(all.slice(1));
  expect(JSON.stringify(await dumpOf(analyst))).not.toMatch(/Falcon|Heron/);
});

test("[C17] [C18] a compartment's search finds what both minds have; the open mind's its own", async () => {
  const { open: outside, inside, run, indexed, ann, analyst, secret, alpha } = await open();
  await alpha.post(ann, "The launch is in Paris");
  await outside.keep("The launch is on Monday");
  await outside.create({ label: "launch", content: "Launch plan of all" });
  await run(analyst);
  await run(
    secret,
    call("recall", { op: "insert", content: "The launch is called Falcon" }),
    call("block_create", { label: "launch", content: "Launch plan of Board" }),
  );
  await indexed();
  const before = await dumpOf(analyst);
  const { items, notes } = await inside.find({ query: "launch", limit: 50 });
  expect(notes).toEqual([]);
  expect(
    texts(items)
      .filter((each) => !each.includes("{"))
      .sort(),
  ).toEqual([
    "open: Launch plan of all",
    "open: The launch is in Paris",
    "open: The launch is on Monday",
    "own: Launch plan of Board",
    "own: The launch is called Falcon",
  ]);
  expect(
    items
      .filter(({ type }) => type === "block")
      .map(({ id }) => id)
      .sort(),
  ).toEqual(["launch", `launch@${analyst.id}`]);
  expect(new Set(items.map(({ type, id }) => `${type} ${id}`)).size).toBe(items.length);
  const found = await run(
    secret,
    call("search", { query: "launch" }),
    call("recall", { op: "search", query: "Monday" }),
  );
  expect(found.results[0]).toMatch(/Paris/);
  expect(found.results[1]).toContain('"open":true');
  expect(await dumpOf(analyst)).toEqual(before);
  expect(texts((await outside.find({ query: "launch Falcon Board", limit: 50 })).items).join()).not.toMatch(
    /Falcon|Board/,
  );
});

test("[C17] an open mind that a compartment asks keeps no trace, even while its index lags", async () => {
  const { open: outside, inside, run, analyst, secret } = await openTwoMinds();
  await outside.keep("Tea is green");
  await run(analyst);
  await run(secret);
  const before = await dumpOf(analyst);
  for (const mode of ["auto", "fts"] as const) {
    const { items, notes } = await inside.find({ query: "tea Falcon", mode, types: ["archival", "message"] });
    expect(items).toEqual([]);
    expect(notes).toEqual(["not all of the open mind is indexed yet"]);
  }
  expect(await dumpOf(analyst)).toEqual(before);
});

test("[C17] what one mind holds does not change the other's ranks and scores", async () => {
  const { open: outside, inside, run, indexed, analyst, secret } = await open();
  for (const text of ["green tea", "tea, tea and tea", "black coffee", "a walk"]) await outside.keep(text);
  await run(analyst);
  await run(secret);
  await inside.keep("tea with milk");
  await indexed();
  const query = { query: "green tea", types: ["archival" as const] };
  const before = await outside.find(query);
  const [own, ...rest] = (await inside.find(query)).items;
  expect(own).toMatchObject({ excerpt: "tea with milk", score: 1 / 61 });
  expect(rest.map(({ excerpt }) => excerpt)).toEqual(before.items.map(({ excerpt }) => excerpt));
  for (let count = 0; count < 30; count += 1) await inside.keep(`green tea, number ${count}`);
  await inside.find(query);
  expect(await outside.find(query)).toEqual(before);
  const openOnes = (await inside.find({ ...query, limit: 100 })).items.filter((hit) => hit.open);
  expect(openOnes.map(({ excerpt, score }) => [excerpt, score])).toEqual(
    before.items.map(({ excerpt }, index) => [excerpt, 1 / (61 + index)]),
  );
});

test("[C17] [C18] a compartment searches both minds by vectors, and leaves no trace of it", async () => {
  const { open: outside, inside, run, indexed, analyst, secret } = await open();
  for (const text of ["zebra jazz", "a cup of tea"]) await outside.keep(text);
  await run(analyst);
  await run(secret);
  await inside.keep("zebras of Falcon play jazz");
  await indexed();
  const query = { query: "zebbra jazzz", mode: "vector" as const, types: ["archival" as const] };
  // The open mind makes vectors of its own when it is asked itself, and for nobody else.
  const early = await inside.find(query);
  expect([texts(early.items), early.notes]).toEqual([
    ["own: zebras of Falcon play jazz"],
    ["the open mind has no vectors yet"],
  ]);
  const known = await outside.find(query);
  expect(texts(known.items)[0]).toBe("own: zebra jazz");
  const before = await dumpOf(analyst);
  const { items, notes, mode } = await inside.find(query);
  expect([mode, notes]).toEqual(["vector", []]);
  expect(texts(items).slice(0, 2).sort()).toEqual(["open: zebra jazz", "own: zebras of Falcon play jazz"]);
  const excerpts = (hits: SearchHit[]) => hits.map(({ excerpt }) => excerpt);
  expect(excerpts(items.filter((hit) => hit.open))).toEqual(excerpts(known.items));
  expect(await dumpOf(analyst)).toEqual(before);
  expect(await outside.find(query)).toEqual(known);
  expect(JSON.stringify(await dumpOf(analyst))).not.toContain("Falcon");
});

test("[C18] while the open mind does not answer, a compartment finds its own and says so", async () => {
  const { inside, run, secret, open: outside } = await openTwoMinds();
  await outside.keep("Tea is green");
  await run(secret, call("recall", { op: "insert", content: "Tea with Falcon" }));
  const silent = vi.spyOn(Agent.prototype as unknown as { searchOpen(): Promise<unknown> }, "searchOpen");
  silent.mockResolvedValue(refusalOf(new ColloquyError("unavailable", "it restarts")));
  onTestFinished(() => silent.mockRestore());
  const { items, notes, partial } = await inside.find({ query: "tea", types: ["archival"] });
  expect(texts(items)).toEqual(["own: Tea with Falcon"]);
  expect([partial, notes]).toEqual([
    true,
    ["your open mind did not answer: what you know outside of this space is not found now"],
  ]);
});

test("[C17] of a space that becomes confidential the open mind finds nothing said after", async () => {
  const { open: outside, run, of, ann, analyst, alpha, workspaceId, indexed, secret } = await open();
  await alpha.post(ann, "The launch is in Paris");
  await run(analyst);
  await run(secret);
  await indexed();
  unwrap(await alpha.stub().update({ kind: "key", workspaceId, keyId: "key" }, { confidential: true }));
  await alpha.post(ann, "The launch is in Rome");
  const inAlpha = of({ ...analyst, id: compartmentId(ids, analyst.id, alpha.id) });
  await vi.waitFor(async () => {
    const { items } = await inAlpha.find({ query: "launch Rome", types: ["message"] });
    expect(texts(items).join()).toContain("Rome");
  });
  const { items } = await inAlpha.find({ query: "launch", types: ["message"], limit: 50 });
  expect(items.map(({ excerpt }) => excerpt).sort()).toEqual(["The launch is in Paris", "The launch is in Rome"]);
  const known = await outside.find({ query: "launch", limit: 50 });
  expect(texts(known.items).join()).toContain("Paris");
  expect(texts(known.items).join()).not.toContain("Rome");
  // The open mind hears of what else changes there, and has nothing left to read.
  unwrap(await alpha.stub().update({ kind: "key", workspaceId, keyId: "key" }, { name: "Vault" }));
  await told(alpha.id);
  await indexed();
});

test("[C17] [S1] a search asks a space no more where it can never read anything, and all others", async () => {
  const { open: outside, ann, analyst, alpha, boardId, workspaceId } = await openTwoMinds();
  const key = { kind: "key", workspaceId, keyId: "key" } as const;
  await alpha.post(ann, "The launch is in Paris");
  const asked = vi.spyOn(Space.prototype, "history");
  onTestFinished(() => asked.mockRestore());
  const found = async (): Promise<string> => {
    asked.mockClear();
    return texts((await outside.find({ query: "launch", types: ["message"] })).items).join();
  };
  expect(await found()).toContain("Paris");
  expect(asked).toHaveBeenCalledTimes(2);
  unwrap(await env.SPACE.getByName(boardId).post(alpha.as(ann), { text: "The launch is in Rome" }));
  expect(await found()).toContain("Paris");
  expect(asked).toHaveBeenCalledTimes(1);
  // Messages from before the switch stay its own until it is out.
  unwrap(await alpha.stub().update(key, { confidential: true }));
  expect(await found()).toContain("Paris");
  unwrap(await alpha.stub().removeMember(key, analyst.id));
  expect(await found()).toBe("");
  unwrap(await alpha.stub().addMember(key, analyst));
  await vi.waitFor(async () => expect(await found()).toContain("Paris"));
});

test("[C17] the open mind's index is kept up from the switch on, though nothing is said there", async () => {
  const { house, analyst, space } = await openScene({ continuity: "timeline" });
  const { workspaceId } = house;
  const tea = { content: "Tea is green", metadata: {}, source: {} };
  const id = ids.mintOwned("arch", analyst.id);
  unwrap(await env.AGENT.getByName(analyst.id).archive(workspaceId, id, tea));
  unwrap(await space.stub().update({ kind: "key", workspaceId, keyId: "key" }, { confidential: true }));
  await told(space.id);
  await passTime(analyst, searchNewsMs);
  await vi.waitFor(async () => expect(await rowsIn(analyst, "SELECT id FROM search_entries")).toHaveLength(1));
});
