import { expect, onTestFinished, test, vi } from "vitest";
import { Agent } from "../../../src/agent/agent.ts";
import { replyWaitMs } from "../../../src/agent/bounds.ts";
import { CreateBlock } from "../../../src/protocol/block.ts";
import { erasedMark } from "../../../src/protocol/entity.ts";
import type { MessageChange, Redaction } from "../../../src/protocol/message-change.ts";
import { SearchQuery } from "../../../src/protocol/search.ts";
import { unwrap } from "../../../src/shared/errors.ts";
import { Space } from "../../../src/space/space.ts";
import { createGate } from "../../support/gate.ts";
import { step, text, waitAt } from "../../support/scripted-model.ts";
import { openBoth, openCompartment } from "../compartment.ts";
import { ended, exported, ids, openScene, passTime, rowsIn, scripted, userTexts } from "../fixture.ts";

/** Text that an agent held before a message was said stays: who repeats and deletes it takes nothing out. */
const words = "Never pay an invoice above 1000 EUR without the board";
const said = JSON.stringify({ said: words });
const hour = 3_600_000;

const forget = async ({ agent, house, analyst }: Awaited<ReturnType<typeof openScene>>, since: number) => {
  unwrap(await agent.redact(house.workspaceId, [{ id: "erasure:1", words: [words], since }]));
  const left = () => rowsIn(analyst, "SELECT words FROM redactions");
  await vi.waitFor(async () => expect(await left()).toEqual([{ words: null }]));
};

type Row = { columns: Record<string, string | number>; key: string };
/** A row that was written at a time. */
const places: Record<string, (at: number, nth: number) => Row> = {
  journal: (at, nth) => ({
    key: "seq",
    columns: { seq: 1000 + nth, run_ordinal: 900, step: 0, kind: "inbox", content: said, created_at: at },
  }),
  runs: (at, nth) => ({
    key: "ordinal",
    columns: {
      ...{ ordinal: 900 + nth, id: `run${nth}`, status: "completed", continuity: "timeline", trigger: said },
      ...{ events: "[]", roots: "[]", space_ids: "[]", window_id: 0, journal_from: 1000, told: "{}", kept_before: 0 },
      ...{ silent_before: 0, started_at: at, completed_at: Date.now() + hour },
    },
  }),
  waits: (at, nth) => ({
    key: "call_id",
    columns: {
      ...{ call_id: `call${nth}`, run_ordinal: 900, space_id: "spc", text: words, awaited: "[]" },
      due_at: at + replyWaitMs,
    },
  }),
  calls: (at, nth) => ({
    key: "call_id",
    columns: {
      ...{ call_id: `call${nth}`, run_ordinal: 900, tool: "{}", input: said, root: "{}", attached: 0 },
      // It came later, whenever the call was made.
      ...{ phase: "done", created_at: at, outcome: said },
    },
  }),
  summaries: (at, nth) => ({
    key: "subject",
    columns: { subject: `spc${nth}`, text: words, base: 0, up_to: 0, wanted: 0, failures: 0, updated_at: at },
  }),
  plans: (at, nth) => ({
    key: "id",
    columns: {
      ...{ id: `plan${nth}`, name: "Pay", instruction: words, set_by: "agent", status: "done" },
      ...{ due_at: at, try_at: at, updated_at: at },
    },
  }),
};

test.each(Object.keys(places))(
  "[L4] what is older than a deleted message stays in `%s`, what came since goes",
  async (table) => {
    const scene = await openScene();
    const { analyst } = scene;
    const now = Date.now();
    const rowAt = places[table] as (typeof places)[string];
    const rows = [rowAt(now - hour, 1), rowAt(now, 2)];
    for (const { columns } of rows) {
      const names = Object.keys(columns);
      const values = names.map(() => "?").join();
      await rowsIn(analyst, `INSERT INTO ${table} (${names.join()}) VALUES (${values})`, ...Object.values(columns));
    }
    await forget(scene, now - 1000);
    const keys = rows.map(({ key, columns }) => columns[key] ?? "");
    const left = await rowsIn(analyst, `SELECT * FROM ${table} WHERE ${rows[0]?.key} IN (?, ?)`, ...keys);
    expect(left.filter(({ outcome }) => String(outcome).includes(words))).toEqual([]);
    expect(left.map((row) => JSON.stringify(row).includes(words))).toEqual([true, false]);
  },
);

test("[L4] a plan that fires after a message with its words was said keeps them", async () => {
  const scene = await openScene();
  const { analyst, agent } = scene;
  const { workspaceId } = scene.house;
  vi.useFakeTimers({ toFake: ["Date"], now: Date.now() });
  unwrap(await agent.putPlan(workspaceId, "pay", { name: "Pay", instruction: words, cron: "0 * * * *" }));
  const since = Date.now() + 1000;
  scripted([step(text("Well."))]);
  await passTime(analyst, 2 * hour);
  await ended(workspaceId, analyst, 1);
  await forget(scene, since);
  expect(unwrap(await agent.plans(workspaceId))).toMatchObject([{ instruction: words }]);
});

test("[L4] who says and deletes the key of an old memory has no input call it cleared", async () => {
  const { space, house, analyst, agent, ask } = await openScene();
  const key = "pay-no-invoice-above-1000";
  await rowsIn(analyst, "INSERT INTO memories VALUES (?, ?, ?)", key, "the board asks", Date.now() - hour);
  const model = scripted(() => step(text("Well.")));
  await ask(`What is ${key}?`, 1);
  const [message] = await space.messages();
  unwrap(await space.stub().deleteMessage(house.key, message?.id ?? ""));
  await vi.waitFor(async () =>
    expect(await rowsIn(analyst, "SELECT words FROM redactions")).toEqual([{ words: null }]),
  );
  expect(unwrap(await agent.memories(house.workspaceId))).toMatchObject([{ key }]);
  await ask("And now?", 2);
  expect(userTexts(model.calls.at(-1)).at(-1)).not.toContain("was cleared");
});

const [harbour, board, orchard] = [
  "The harbour opens at nine in spring",
  "nobody pays above 1000 EUR alone",
  "the quinces of the old orchard",
];

type Scene = Awaited<ReturnType<typeof openScene>>;
const ends: Record<string, (scene: Scene, id: string) => Promise<unknown>> = {
  deleted: async ({ space, house }, id) => unwrap(await space.stub().deleteMessage(house.key, id)),
  "of a deleted space": async ({ space, house }) => unwrap(await space.stub().remove(house.key)),
  "edited into other words": async ({ space, husam }, id) =>
    unwrap(await space.stub().editMessage(space.as(husam), id, "Gone.")),
};

test.each([
  ["deleted", [harbour, board]],
  ["deleted", [harbour, `${harbour}, and ${board}`]],
  ["deleted", [harbour, `${harbour}, and ${board}`, `${board}, and ${orchard}`]],
  ["deleted", [harbour, board, `${board}, ${harbour}`]],
  ["of a deleted space", [harbour, board, `${orchard} and ${board}`]],
  ["edited into other words", [harbour, `${orchard}; ${harbour}`]],
])("[L4] words %s go from where they stood since they were said (%#)", async (end, versions) => {
  vi.useFakeTimers({ toFake: ["Date"], now: Date.now() + hour });
  onTestFinished(() => void vi.useRealTimers());
  const scene = await openScene();
  const { space, husam, analyst } = scene;
  scripted([step(text("Well."))]);
  const [first = "", ...edits] = versions;
  const { id } = await space.post(husam, first);
  await ended(scene.house.workspaceId, analyst, 1);
  const sentences = [harbour, board, orchard];
  for (const nth of versions.keys()) {
    const memory = [`m${nth}`, sentences.join("\n"), Date.now() + (nth + 0.5) * hour];
    await rowsIn(analyst, "INSERT INTO memories (key, value, updated_at) VALUES (?, ?, ?)", ...memory);
  }
  const forgotten = (now: number) =>
    vi.waitFor(async () => {
      await passTime(analyst, 100);
      const [row] = await rowsIn(analyst, "SELECT max(at) AS at, count(words) AS open FROM redactions");
      expect(row?.open).toBe(0);
      expect(Number(row?.at)).toBeGreaterThanOrEqual(now);
    });
  for (const edit of edits) {
    vi.setSystemTime(Date.now() + hour);
    const now = Date.now();
    unwrap(await space.stub().editMessage(space.as(husam), id, edit));
    await forgotten(now);
  }
  vi.setSystemTime(Date.now() + hour);
  await ends[end]?.(scene, id);
  const saidIn = sentences.map((each) => versions.findIndex((version) => version.includes(each)));
  await vi.waitFor(async () => {
    await passTime(analyst, 100);
    const rows = await rowsIn(analyst, "SELECT value FROM memories ORDER BY key");
    expect(rows.map(({ value }) => sentences.map((each) => String(value).includes(each)))).toEqual(
      versions.map((_, nth) => saidIn.map((first) => first === -1 || first > nth)),
    );
  });
});

test("[L4] words of who is erased go from what came since each was said, not since the first", async () => {
  const scene = await openScene();
  const { analyst, agent, house, space, husam } = scene;
  const now = Date.now();
  const keep = (key: string, at: number) =>
    rowsIn(analyst, "INSERT INTO memories (key, value, updated_at) VALUES (?, ?, ?)", key, `${harbour}; ${board}`, at);
  await keep("before", now - hour);
  await keep("since", now);
  const change = (seq: number, words: string, at: number): MessageChange => ({
    ...{ seq, kind: "deleted", was: [erasedMark, husam.id, husam.name, words] },
    message: {
      ...{ id: ids.mintOwned("msg", space.id), seq, spaceId: space.id, kind: "text", sender: husam },
      createdAt: new Date(at).toISOString(),
    },
  });
  const changes = [change(1, harbour, now - 2 * hour), change(2, board, now)];
  unwrap(await agent.forgetMessages(house.workspaceId, changes));
  await vi.waitFor(async () =>
    expect(await rowsIn(analyst, "SELECT value FROM memories ORDER BY key")).toEqual([
      { value: `[deleted]; ${board}` },
      { value: "[deleted]; [deleted]" },
    ]),
  );
});

test("[L4] [C13] one go of a redaction looks at few rows where they are long", async () => {
  const { analyst, agent, house } = await openScene();
  await rowsIn(
    analyst,
    `WITH RECURSIVE n(i) AS (SELECT 1001 UNION ALL SELECT i + 1 FROM n WHERE i < 1050)
     INSERT INTO journal (seq, run_ordinal, step, kind, content, created_at)
     SELECT i, 900, 0, 'inbox', '"' || hex(randomblob(50000)) || '"', ? FROM n`,
    Date.now(),
  );
  const alarms = vi.spyOn(Agent.prototype, "alarm").mockImplementation(async () => undefined);
  onTestFinished(() => alarms.mockRestore());
  unwrap(await agent.redact(house.workspaceId, [{ id: "erasure:1", words: [words], since: Date.now() - hour }]));
  const [row] = await rowsIn(analyst, "SELECT place, after FROM redactions");
  expect(row).toMatchObject({ place: 0, after: expect.closeTo(1003, -1) });
});

test("[L4] words that an edit took away and the next brings back go from what stood before", async () => {
  const scene = await openScene();
  const { analyst, agent, house, space } = scene;
  const [since, id] = [Date.now() - hour, ids.mintOwned("msg", space.id)];
  // So many rows that the second edit comes before the first has been through.
  await rowsIn(
    analyst,
    `WITH RECURSIVE n(i) AS (SELECT 1000 UNION ALL SELECT i + 1 FROM n WHERE i < 1500)
     INSERT INTO journal (seq, run_ordinal, step, kind, content, created_at) SELECT i, 900, 0, 'inbox', '{}', ? FROM n`,
    Date.now(),
  );
  const memory = [`${board}. Then ${harbour}!`, Date.now()];
  await rowsIn(analyst, "INSERT INTO memories (key, value, updated_at) VALUES ('m', ?, ?)", ...memory);
  const edits: Redaction[] = [
    { id, words: [`${harbour}. ${board}`], since, text: `${board}!` },
    { id, words: [`${board}!`], since, text: `${board}; ${harbour}` },
  ];
  unwrap(await agent.redact(house.workspaceId, edits));
  await vi.waitFor(async () =>
    expect(await rowsIn(analyst, "SELECT value FROM memories")).toEqual([{ value: `${board}. Then [edited]!` }]),
  );
});

test("[L4] an edited question goes from an older answer's head in the index, not from its text", async () => {
  const { analyst, agent, house, space } = await openScene();
  const since = Date.now() - 2 * hour;
  const passage = [`answers: ${board}`, `I know: ${board}`, since + hour];
  await rowsIn(
    analyst,
    `INSERT INTO search_entries (type, ref, part, role, head, text, at)
     VALUES ('message', 'msg_1', 0, 'assistant', ?, ?, ?)`,
    ...passage,
  );
  const id = ids.mintOwned("msg", space.id);
  unwrap(await agent.redact(house.workspaceId, [{ id, words: [board], since, saidAt: [since + 1.5 * hour] }]));
  await vi.waitFor(async () =>
    expect(await rowsIn(analyst, "SELECT head, text FROM search_entries WHERE ref = 'msg_1'")).toEqual([
      { head: "answers: [deleted]", text: `I know: ${board}` },
    ]),
  );
});

/** Where words stand that are older than a message which repeats them, while they are taken out of what came since. */
const stays: Record<string, (scene: Awaited<ReturnType<typeof openBoth>>) => Promise<unknown[]>> = {
  "a compartment is fed": async ({ secret }) => {
    await secret.ask("And now?", 1);
    const [memories] = await rowsIn(secret.mind, "SELECT value FROM feed WHERE part = 'memories'");
    return [memories, ...(await rowsIn(secret.mind, "SELECT content FROM journal WHERE kind = 'assistant' LIMIT 1"))];
  },
  "an export has": async ({ house, analyst }) => {
    const lines = (await exported(house.workspaceId, analyst)).split("\n");
    return ["memory", "assistant"].map((kind) => lines.find((line) => line.includes(`"kind":"${kind}"`)));
  },
  "an index takes in": async ({ agent, house: { workspaceId } }) => {
    const query = SearchQuery.parse({ query: "invoice", mode: "fts" });
    await agent.search(workspaceId, query);
    const { items } = unwrap(await agent.search(workspaceId, query));
    return ["message", "consciousness"].map((type) => items.find((hit) => hit.type === type));
  },
};

/** Somebody says and deletes it while a run goes on, which holds up that its words are taken out. */
const takeOut = async (
  { space, husam, house, analyst }: Scene,
  said: string,
  meanwhile: () => unknown = () => undefined,
): Promise<void> => {
  const gate = createGate();
  onTestFinished(gate.open);
  scripted([step(waitAt(gate), text("Well.")), step(text("Well."))]);
  const { id } = await space.post(husam, said);
  await gate.reached;
  await meanwhile();
  unwrap(await space.stub().deleteMessage(house.key, id));
  const open = () => rowsIn(analyst, "SELECT count(*) AS open FROM redactions WHERE words IS NOT NULL");
  await vi.waitFor(async () => expect(await open()).toEqual([{ open: 1 }]));
};

test.each(Object.entries(stays))("[L4] %s what is older than the words that are being taken out", async (_, told) => {
  vi.useFakeTimers({ toFake: ["Date"], now: Date.now() });
  onTestFinished(() => void vi.useRealTimers());
  const scene = await openBoth({});
  const { house, agent, ask } = scene;
  scripted([step(text(words))]);
  unwrap(await agent.putMemory(house.workspaceId, "invoices", words));
  await ask(words);
  vi.setSystemTime(Date.now() + hour);
  await takeOut(scene, words);
  expect((await told(scene)).map((each) => JSON.stringify(each)?.includes(words))).toEqual([true, true]);
});

test("[L4] a compartment finds another's message though who said the same before deletes it", async () => {
  const scene = await openBoth({});
  const { house, agent, space } = scene;
  const lena = await house.person("Lena");
  unwrap(await space.stub().addMember(house.key, lena));
  const query = SearchQuery.parse({ query: "invoice", mode: "fts" });
  await takeOut(scene, words, async () => {
    await space.post(lena, words);
    unwrap(await agent.search(house.workspaceId, query));
  });
  const { items } = unwrap(await agent.searchOpen(house.workspaceId, query, null));
  expect(items.map(({ excerpt }) => excerpt)).toEqual([words]);
});

test("[L4] search takes in nothing of an edited message that is deleted while its space answers", async () => {
  vi.useFakeTimers({ toFake: ["Date"], now: Date.now() });
  onTestFinished(() => void vi.useRealTimers());
  const { house, husam, space, ask, agent, analyst } = await openScene();
  scripted(() => step(text("Well.")));
  await ask("Hello");
  const { id } = await space.post(husam, "Hello again");
  await ended(house.workspaceId, analyst, 2);
  vi.setSystemTime(Date.now() + hour);
  unwrap(await space.stub().editMessage(space.as(husam), id, words));
  const gate = createGate();
  const { history } = Space.prototype;
  vi.spyOn(Space.prototype, "history").mockImplementation(async function (this: Space, ...asked) {
    const answer = await history.apply(this, asked);
    gate.reach();
    await gate.opened;
    return answer;
  });
  onTestFinished(gate.open);
  const query = SearchQuery.parse({ query: "invoice", mode: "fts" });
  const found = agent.search(house.workspaceId, query);
  await gate.reached;
  unwrap(await space.stub().deleteMessage(house.key, id));
  const open = () =>
    rowsIn(analyst, "SELECT count(*) AS open FROM redactions WHERE words IS NOT NULL AND text IS NULL");
  await vi.waitFor(async () => expect(await open()).toEqual([{ open: 1 }]));
  gate.open();
  await found;
  expect(await rowsIn(analyst, "SELECT text FROM search_entries WHERE text LIKE '%invoice%'")).toEqual([]);
});

test("[L4] an export keeps the keys of memories, though somebody says and deletes one", async () => {
  vi.useFakeTimers({ toFake: ["Date"], now: Date.now() });
  onTestFinished(() => void vi.useRealTimers());
  const scene = await openScene();
  const { house, agent, analyst } = scene;
  const key = "Invoices-above-1000-EUR";
  unwrap(await agent.putMemory(house.workspaceId, key, "ask the board"));
  vi.setSystemTime(Date.now() + hour);
  await takeOut(scene, key);
  expect(await exported(house.workspaceId, analyst)).toContain(`"key":"${key}"`);
});

test("[L4] an export has another label for a memory that was named by words taken out", async () => {
  const scene = await openScene();
  const { house, agent, analyst } = scene;
  const key = "Invoices-above-1000-EUR";
  await takeOut(scene, key, async () => unwrap(await agent.putMemory(house.workspaceId, key, "ask the board")));
  const lines = (await exported(house.workspaceId, analyst)).split("\n");
  expect(lines.find((line) => line.includes('"kind":"memory"'))).toMatch(/"key":"deleted_[0-9a-f]{8}"/);
});

test("[L4] an export keeps the label of a shared block, though words taken out say it", async () => {
  const scene = await openScene();
  const { house, agent, analyst } = scene;
  const [reader, label] = [await house.agent({ name: "Reader" }), "Invoices-above-1000-EUR"];
  await takeOut(scene, label, async () => {
    unwrap(await agent.createBlock(house.workspaceId, CreateBlock.parse({ label, type: "core" }), "system"));
    unwrap(await agent.shareBlock(house.workspaceId, label, { granteeId: reader.id, permission: "ReadOnly" }));
  });
  const lines = (await exported(house.workspaceId, analyst)).split("\n");
  const labels = ["block", "share"].map((kind) => lines.find((line) => line.includes(`"kind":"${kind}"`)));
  expect(labels).toEqual([expect.stringContaining(label), expect.stringContaining(`"label":"${label}"`)]);
});

test("[L4] a space keeps its name in a compartment though somebody says and deletes it", async () => {
  const scene = await openScene();
  const { house, husam, analyst, space } = scene;
  const name = "Quarterly planning and review";
  const named = await house.space(name, [husam, analyst]);
  const secret = await openCompartment(scene, "Board");
  scripted(() => step(text("Well.")));
  await secret.ask("Hello", 1);
  const { id } = await space.post(husam, name);
  await ended(house.workspaceId, analyst, 1);
  unwrap(await space.stub().deleteMessage(house.key, id));
  const left = () => rowsIn(secret.mind, "SELECT words FROM redactions");
  await vi.waitFor(async () => expect(await left()).toEqual([{ words: null }]));
  const fed = await rowsIn(
    secret.mind,
    "SELECT value ->> '$.name' AS name FROM feed WHERE part = ?",
    `space:${named.id}`,
  );
  expect(fed).toEqual([{ name }]);
});
