import { env } from "cloudflare:workers";
import { beforeAll, describe, expect, inject, test, vi } from "vitest";
import * as z from "zod";
import { ExportedLine, ImportedAgent } from "../../../src/protocol/exported-agent.ts";
import { unwrap } from "../../../src/shared/errors.ts";
import { call, expectOk, openHouse } from "../../support/house.ts";
import { SeenRequests } from "../../support/remote.ts";
import { installModel, scriptedModel, step, text, call as toolCall } from "../../support/scripted-model.ts";
import { comparable, type Document, exported, imported, lived, runsEnded, send } from "./lived.ts";

type Lived = Awaited<ReturnType<typeof lived>>;
let before: Lived;
let document: Document;
let after: { house: Lived["house"]; id: string; path: string; answer: z.infer<typeof ImportedAgent> };

const Value = z.object({ value: z.unknown(), rendered: z.string(), version: z.int() });
const Context = z.looseObject({ messages: z.array(z.unknown()), instructions: z.string() });
const History = z.object({
  items: z.array(z.object({ version: z.int(), author: z.string(), authorName: z.string().optional() })),
});
const Hits = z.object({ items: z.array(z.looseObject({ type: z.string(), excerpt: z.string() })) });

beforeAll(async () => {
  before = await lived();
  document = await exported(before.house, before.id);
  const house = await openHouse("Elsewhere");
  const answer = await expectOk(ImportedAgent, imported(house, document));
  after = { house, id: answer.agent.id, path: `/v1/agents/${answer.agent.id}`, answer };
}, 60_000);

/** The same question to both agents. */
const both = async <Schema extends z.ZodType>(schema: Schema, path: string): Promise<z.infer<Schema>[]> => [
  await expectOk(schema, call(before.path + path, { bearer: before.house.secretKey })),
  await expectOk(schema, call(after.path + path, { bearer: after.house.secretKey })),
];

describe("an agent that is exported", () => {
  test("holds its state, its history and its authors, and no secret", async () => {
    const { agent } = document;
    expect(document).toMatchObject({ format: "colloquy.agent", version: 2 });
    expect(agent).toMatchObject({ id: before.id, config: { name: "Analyst" }, left: { events: 0, runs: 0, hooks: 1 } });
    expect(agent.names).toContainEqual({ id: before.mona.id, name: "Mona" });
    expect(agent.names).toContainEqual({ id: before.space.id, name: "Kitchen" });
    expect(agent.memories.map(({ key }) => key)).toEqual(["asked", "tea"]);
    expect(agent.blocks.map(({ label, versions }) => [label, versions.length])).toEqual([
      ["notes", 5],
      ["todo", 3],
    ]);
    expect(agent.blocks[1]?.versions.map(({ author }) => author)).toEqual([
      "system",
      `human:${before.mona.id}`,
      `agent:${before.id}`,
    ]);
    expect(agent.shares).toMatchObject([
      { direction: "given", label: "notes", with: before.reader.id, permission: "ReadOnly" },
      { direction: "given", label: "todo", with: before.space.id, permission: "Append" },
    ]);
    expect(agent.archival).toMatchObject([{ source: { authorId: before.mona.id } }, { source: {} }]);
    expect(agent.runs).toMatchObject([
      { ordinal: 1, status: "completed", kept: true, outcome: "answered" },
      { ordinal: 2, status: "completed", kept: true, outcome: "silent" },
      { ordinal: 3, status: "skipped", kept: false, reason: "nothing to do" },
    ]);
    expect(JSON.stringify(agent.journal)).toContain("the warehouse opens at seven");
    expect(JSON.stringify(document)).not.toContain("sealed");
  });

  test("is sent as an attachment", async () => {
    const answer = await call(`${before.path}/export`, { bearer: before.house.secretKey });
    expect(answer.headers.get("content-disposition")).toBe(`attachment; filename="${before.id}.ndjson"`);
    await answer.body?.cancel();
  });
});

describe("an agent that is imported", () => {
  test("is a new agent; the answer reports what came and what did not", async () => {
    expect(after.id).not.toBe(before.id);
    expect(after.answer.imported).toEqual({
      from: { agentId: before.id, exportedAt: document.exportedAt },
      counts: { memories: 2, goals: 2, plans: 2, runs: 3, blocks: 2, archival: 2 },
      left: { events: 0, runs: 0, calls: 0, hooks: 1, waits: 0, compartments: 0 },
      shares: 2,
      secrets: [],
      people: [],
    });
    const list = await send(after.house, "/v1/agents");
    expect(list).toMatchObject({ items: [{ id: after.id, name: "Analyst" }] });
    expect(await send(after.house, after.path)).toMatchObject({ agent: { config: { instructions: "Count." } } });
    expect(await send(after.house, `${after.path}/blocks/notes/shares`)).toMatchObject({ items: [] });
    expect(await send(after.house, `${after.path}/blocks/todo/spaces`)).toMatchObject({ items: [] });
    expect(await send(after.house, `${after.path}/hooks`)).toMatchObject({ items: [] });
  });

  test("[R2] exports the same document again, but for its own ids", async () => {
    const again = await exported(after.house, after.id);
    const selves = [before.id, after.id];
    expect(comparable(again, selves)).toEqual(comparable(document, selves));
    expect(again.agent.left.hooks).toBe(0);
  });

  test.each(["/memories", "/goals", "/plans"])("answers %s as before", async (path) => {
    const [then, now] = await both(z.unknown(), path);
    expect(now).toEqual(then);
  });

  test("answers its blocks as before: value and author of every version", async () => {
    for (const label of ["notes", "todo"]) {
      const [then, now] = await both(Value, `/blocks/${label}`);
      expect(now).toEqual(then);
      for (let version = 1; version <= (then?.version ?? 0); version += 1) {
        const [one, other] = await both(Value, `/blocks/${label}?version=${version}`);
        expect(other).toEqual(one);
      }
      const [was, is] = await both(History, `/blocks/${label}/history`);
      const renamed = JSON.stringify(was).replaceAll(before.id, after.id);
      const named = is?.items.map(({ authorName: _, ...change }) => change);
      expect({ items: named }).toEqual(JSON.parse(renamed));
      for (const { author, authorName } of is?.items ?? []) {
        expect(authorName).toBe(author.startsWith("human:") ? "Mona" : undefined);
      }
    }
  });

  test("undoes edits as before, its own and the system's", async () => {
    const undo = { operations: [{ op: "undo" }] };
    const notes = await send(after.house, `${after.path}/blocks/notes/operations`, undo);
    expect(notes).toMatchObject({ value: "Calm. One.", version: 6 });
    const redo = { operations: [{ op: "redo" }] };
    expect(await send(after.house, `${after.path}/blocks/notes/operations`, redo)).toMatchObject({
      value: "Calm. One. Two.",
    });
    const own = await send(after.house, `${after.path}/blocks/todo/operations`, { ...undo, as: "agent" });
    expect(own).toMatchObject({ rendered: expect.not.stringContaining("Ask Omar") });
    const [untouched] = await both(Value, "/blocks/todo");
    expect(untouched?.rendered).toContain("Ask Omar");
  });

  test("finds archival entries, blocks and cycles, with the names of those who spoke", async () => {
    const find = async (query: string) =>
      (
        await expectOk(
          Hits,
          call(`${after.path}/search?q=${encodeURIComponent(query)}`, { bearer: after.house.secretKey }),
        )
      ).items;
    expect((await find("launch Friday"))[0]).toMatchObject({ type: "archival", source: { authorName: "Mona" } });
    expect((await find("Mona Kitchen launch"))[0]).toMatchObject({ type: "archival" });
    expect((await find("warehouse opens"))[0]).toMatchObject({ type: "consciousness" });
    expect((await find("ünïcode"))[0]?.excerpt).toContain("really: ünïcode ✓.");
    expect((await find("Buy tea"))[0]).toMatchObject({ type: "block" });
    for (const done of ["set_memories", "set_goals", "block_edit todo"]) {
      expect((await find(done))[0]).toMatchObject({ type: "consciousness", role: "assistant" });
    }
  });

  test("shows its runs with the exact input of each step", async () => {
    const Runs = z.object({ items: z.array(z.looseObject({ id: z.string() })) });
    const Run = z.looseObject({ steps: z.array(z.looseObject({ input: z.unknown() })) });
    const [then, now] = await both(Runs, "/runs");
    expect(now?.items).toHaveLength(3);
    for (const [index, { id }] of (then?.items ?? []).entries()) {
      const other = now?.items[index]?.id ?? "";
      expect(other).not.toBe(id);
      const one = await send(before.house, `${before.path}/runs/${id}`);
      const same = await send(after.house, `${after.path}/runs/${other}`);
      expect(z.object({ run: Run }).parse(same).run.steps).toEqual(z.object({ run: Run }).parse(one).run.steps);
    }
  });

  test("has the same consciousness, and its next input holds what it did", async () => {
    const [then, now] = await both(Context, "/context");
    expect(now?.messages.slice(0, -1)).toEqual(then?.messages.slice(0, -1));
    expect(now?.messages.length).toBeGreaterThan(8);
    expect(JSON.stringify(now?.messages.at(-1))).toContain("just thinking aloud");
    expect(now?.instructions).toContain("Count.");
    expect(now?.instructions).toContain("Calm. One. Two.");
    const model = scriptedModel(() => step(text("Still here.")));
    const undo = installModel(model);
    try {
      await send(after.house, `${after.path}/trigger`, { serviceName: "test", payload: "Do you remember?" });
      await runsEnded(after.house, after.id, 4);
    } finally {
      undo();
    }
    const given = JSON.stringify(model.calls[0]?.prompt);
    for (const held of [
      "the warehouse opens at seven",
      "Noted what Mona asked.",
      "Took up making tea.",
      "just thinking aloud",
      "really: ünïcode ✓",
      "Buy tea",
      "Do you remember?",
    ]) {
      expect(given).toContain(held);
    }
    expect(await send(after.house, `${after.path}/context`)).toMatchObject({ dropped: [] });
  });

  test("keeps the summary of compacted cycles, and still finds them", async () => {
    const copy = structuredClone(document);
    copy.agent.config.name = "Compacted";
    for (const window of copy.agent.windows) Object.assign(window, { summary: "- Noted it all.", firstRun: 2 });
    const { agent } = await expectOk(ImportedAgent, imported(after.house, copy));
    const path = `/v1/agents/${agent.id}`;
    const { messages } = Context.parse(await send(after.house, `${path}/context`));
    expect(JSON.stringify(messages[0])).toContain(
      "EARLIER CYCLES (your own summaries, oldest first):\\n  | - Noted it all.",
    );
    expect(JSON.stringify(messages)).not.toContain("the warehouse opens at seven");
    expect(JSON.stringify(messages)).toContain("Took up making tea.");
    const found = await expectOk(Hits, call(`${path}/search?q=warehouse`, { bearer: after.house.secretKey }));
    expect(found.items[0]?.excerpt).toContain("the warehouse opens at seven");
  });
});

describe("[R2] an export is imported and exported again unchanged", () => {
  /** Out of the house where it lived, into the other, and out of that. */
  const transferred = async (id: string): Promise<Document> => {
    const out = await exported(before.house, id);
    const { agent } = await expectOk(ImportedAgent, imported(after.house, out));
    const again = await exported(after.house, agent.id);
    expect(comparable(again, [id, agent.id])).toEqual(comparable(out, [id, agent.id]));
    return out;
  };

  test("with notes about other agents' blocks", async () => {
    const { id } = before.reader;
    const undo = installModel(scriptedModel(() => step(text("Read."))));
    try {
      await send(before.house, `/v1/agents/${id}/trigger`, { serviceName: "test", payload: "What do you see?" });
      await runsEnded(before.house, id, 1);
    } finally {
      undo();
    }
    const { agent } = await transferred(id);
    expect(agent.journal).toContainEqual(expect.objectContaining({ meta: { kind: "told", section: "shared_blocks" } }));
  });

  test("[K10] with how a block was kept before it was put away", async () => {
    const { id } = await before.house.agent({ name: "Keeper" });
    const path = `/v1/agents/${id}/blocks`;
    await send(before.house, path, { label: "todo", type: "working", pinned: true });
    await send(before.house, `${path}/todo`, { type: "archival" }, "PATCH");
    const { agent } = await transferred(id);
    expect(agent.blocks).toMatchObject([{ type: "archival", archived: { type: "working", pinned: true } }]);
  });

  test("with a space's history as user and assistant messages", async () => {
    const { house, mona } = before;
    const context = { history: "messages" };
    const { id } = await house.agent({ name: "Talker", continuity: "timeline", context });
    const space = await house.space("Talk", [mona, { id }]);
    const answer = [step(toolCall("send_message", { text: "It is on." })), step(text("Said so."))];
    const undo = installModel(scriptedModel([...answer, step(text("Nothing more."))]));
    try {
      await house.say(space.id, mona, "@Talker is the kettle on?");
      await runsEnded(house, id, 1);
      await house.say(space.id, mona, "@Talker good");
      await runsEnded(house, id, 2);
    } finally {
      undo();
    }
    const { agent } = await transferred(id);
    expect(agent.journal).toContainEqual(
      expect.objectContaining({ kind: "inbox", content: expect.objectContaining({ role: "assistant" }) }),
    );
  });

  test("with a state that was shown anew in the middle of a run", async () => {
    const { id } = before;
    const whole = await exported(before.house, id);
    const [told] = whole.agent.journal;
    const end = whole.agent.journal.at(-1);
    const run = whole.agent.runs.at(-1);
    if (!told || !end || !run) throw new Error("it has lived");
    const seq = end.seq + 1;
    const content = { role: "user" as const, content: "State." };
    whole.agent.journal.push({ ...told, seq, kind: "preview", content, meta: null, run: run.ordinal });
    run.journalTo = seq;
    expect((await imported(after.house, whole, "?name=Folded")).status).toBe(201);
  });

  test("with what it said in a run that was under way", async () => {
    const { house, mona } = before;
    const { id } = await house.agent({ name: "Busy" });
    const space = await house.space("Busy", [mona, { id }]);
    const asked = Promise.withResolvers<void>();
    let heard = false;
    const undo = installModel(
      scriptedModel(async (_, index) => {
        if (index === 0) return step(toolCall("enter_space", { spaceId: space.id }));
        if (index === 1) return step(toolCall("send_message", { text: "I am on it, said the kettle." }));
        heard = true;
        await asked.promise;
        return step(text("Done."));
      }),
    );
    try {
      await house.say(space.id, mona, "@Busy begin");
      await vi.waitUntil(() => heard);
      const { agent } = await transferred(id);
      expect(agent.runs).toMatchObject([{ status: "canceled", kept: true }]);
      const list = z.object({ items: z.array(z.object({ id: z.string(), name: z.string() })) });
      const { items } = await expectOk(list, call("/v1/agents", { bearer: after.house.secretKey }));
      const there = items.find(({ name }) => name === "Busy");
      const { messages } = Context.parse(await send(after.house, `/v1/agents/${there?.id}/context`));
      expect(JSON.stringify(messages)).toContain("said the kettle");

      // A call that had begun when the export did is answered in it, after all else.
      const agentObject = env.AGENT.getByName(id);
      const { next } = unwrap(await agentObject.exportPage(house.workspaceId, null));
      if (!next) throw new Error("it has more than one page");
      const { bounds } = next;
      const open = [{ step: 1, callId: "tc_begun", toolName: "look_up" }];
      const cut = { ...next, bounds: { ...bounds, cut: { run: 1, open } } };
      const { text } = unwrap(await agentObject.exportPage(house.workspaceId, cut));
      const lines = text
        .trimEnd()
        .split("\n")
        .map((line) => ExportedLine.parse(JSON.parse(line)));
      const last = (kind: string) => lines.findLast((line) => line.kind === kind && "row" in line);
      expect(last("journal")).toMatchObject({
        row: {
          seq: bounds.journal + 1,
          run: 1,
          meta: { callId: "tc_begun", error: true },
          content: { content: [{ output: { value: { error: { code: "outcome_unknown" } } } }] },
        },
      });
      expect(last("run")).toMatchObject({ row: { kept: true, journalTo: bounds.journal + 1 } });
    } finally {
      asked.resolve();
      await runsEnded(house, id, 1);
      undo();
    }
  });
});

test.each([
  ["is hidden", false],
  ["is visible", true],
])("[R3] a call that %s: begun before the export its outcome is unknown, else not run", async (_, visible) => {
  const { house, mona } = before;
  const name = visible ? "Cashier in the open" : "Cashier";
  const url = `${inject("remote")}/silent/${crypto.randomUUID()}`;
  const refund = {
    ...{ name: "refund", description: "Pays back", executionType: "gateway", visible, timeoutMs: 600_000 },
    execution: { url, method: "POST", body: {} },
  };
  const { id } = await house.agent({ name, tools: [refund] });
  const space = await house.space(name, [mona, { id }]);
  const pay = [toolCall("enter_space", { spaceId: space.id }), toolCall("refund", {})];
  const note = toolCall("set_memories", { memories: [{ key: "paid", value: "yes" }] });
  const model = scriptedModel([step(...pay, note), step(text("I look it up first.")), step(text("Stopped."))]);
  const undo = installModel(model);
  try {
    await house.say(space.id, mona, `@${name} refund me`);
    const seen = `${inject("remote")}/requests?path=${encodeURIComponent(new URL(url).pathname)}`;
    await vi.waitFor(async () => expect(SeenRequests.parse(await (await fetch(seen)).json())).toHaveLength(1), 10_000);
    const out = await exported(house, id);
    expect(out.agent.runs).toMatchObject([{ status: "canceled", kept: true }]);
    const { agent } = await expectOk(ImportedAgent, imported(after.house, out));
    await send(after.house, `/v1/agents/${agent.id}/trigger`, { serviceName: "test", payload: "Is it paid?" });
    await runsEnded(after.house, agent.id, 2);
    const results = (model.calls[1]?.prompt ?? []).flatMap(({ role, content }) => (role === "tool" ? content : []));
    const told = (toolName: string) =>
      JSON.stringify(results.find((part) => part.type === "tool-result" && part.toolName === toolName));
    expect(told("refund")).toContain("outcome_unknown");
    expect(told("refund")).toContain("find out before you do it again");
    expect(told("set_memories")).toContain("run_canceled");
    expect(told("set_memories")).toContain("exported before this call was executed");
  } finally {
    const [run] = await expectOk(
      z.object({ items: z.array(z.object({ id: z.string() })) }),
      call(`/v1/agents/${id}/runs`, { bearer: house.secretKey }),
    ).then(({ items }) => items);
    await send(house, `/v1/agents/${id}/runs/${run?.id}/cancel`, {});
    undo();
  }
});

test("old authors have names in a block's history, which people see from the share on", async () => {
  const { house, id, path } = after;
  const ann = await house.person("Ann");
  const space = await house.space("Pantry", [ann, { id }]);
  await send(house, `${path}/blocks/todo/spaces/${space.id}`, { permission: "Append" }, "PUT");
  const read = async (history: string, more: { as?: string } = {}) =>
    (await expectOk(History, call(`${history}/history`, { bearer: house.secretKey, ...more }))).items;
  const own = await read(`${path}/blocks/todo`);
  const made = own.find(({ author }) => author.startsWith(`human:${before.mona.id}`));
  expect(made).toMatchObject({ authorName: "Mona" });
  const shown = await read(`/v1/spaces/${space.id}/agents/${id}/blocks/todo`, { as: ann.id });
  expect(shown).toEqual(own.slice(0, 1));
});
