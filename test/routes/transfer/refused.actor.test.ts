import { listDurableObjectIds, runInDurableObject } from "cloudflare:test";
import { env, exports } from "cloudflare:workers";
import { beforeAll, describe, expect, onTestFinished, test, vi } from "vitest";
import * as z from "zod";
import { Agent as AgentObject } from "../../../src/agent/agent.ts";
import type { ExportPage } from "../../../src/protocol/agent-rpc.ts";
import { exportMediaType, ImportedAgent } from "../../../src/protocol/exported-agent.ts";
import { ok } from "../../../src/shared/errors.ts";
import { call, expectOk, type House, ids, openHouse } from "../../support/house.ts";
import { problemIn } from "../operations.ts";
import { type Document, exported, imported, linesOf, lived, send, textOf } from "./lived.ts";

let document: Document;
let house: House;
beforeAll(async () => {
  const before = await lived();
  document = await exported(before.house, before.id);
  house = await openHouse("Elsewhere");
}, 60_000);

/** Objects that held nothing when they were last looked at: to wake them all for each document takes a minute. */
const empty = new Set<string>();

/** How many of the agents' other objects hold anything at all. */
const stored = async (): Promise<number> => {
  const namespace = env.AGENT as unknown as DurableObjectNamespace;
  let count = 0;
  for (const id of await listDurableObjectIds(namespace)) {
    if (empty.has(String(id))) continue;
    const tables = await runInDurableObject(namespace.get(id), (_, { storage }) =>
      Number(storage.sql.exec("SELECT count(*) AS tables FROM sqlite_master WHERE name NOT LIKE '_cf_%'").one().tables),
    );
    if (tables > 0) count += 1;
    else empty.add(String(id));
  }
  return count;
};

type Changed = Document["agent"] & Record<string, unknown>;
const changed = (change: (agent: Changed, all: Record<string, unknown>) => void): Document => {
  const copy = structuredClone(document) as Document & Record<string, unknown>;
  change(copy.agent as Changed, copy);
  return copy;
};

/** Sends it; nothing may have come of it. */
const refusal = async (body: Document | string, query = "") => {
  const before = await stored();
  const problem = await problemIn(await imported(house, body, query));
  expect(await send(house, "/v1/agents")).toMatchObject({ items: [] });
  expect(await stored()).toBe(before);
  return problem;
};

const first = <Item>(items: Item[]): Item => {
  const [item] = items;
  if (item === undefined) throw new Error("there is one");
  return item;
};
const notes = (agent: Changed) => first(agent.blocks);
/** The same base64 with one bit turned. */
const damaged = (base64 = ""): string => {
  const bytes = Buffer.from(base64, "base64");
  const at = Math.floor(bytes.length / 2);
  bytes[at] = (bytes[at] ?? 0) ^ 1;
  return bytes.toString("base64");
};

type Case = [what: string, path: string, change: Parameters<typeof changed>[0]];

const shapes: Case[] = [
  ["another format", "line 1.format", (_, all) => (all.format = "zip")],
  ["a later version", "line 1.version", (_, all) => (all.version = 3)],
  ["no time", "line 1.exportedAt", (_, all) => (all.exportedAt = "yesterday")],
  ["a field that nobody knows", "line 1", (_, all) => (all.more = 1)],
  ["a field of the agent that nobody knows", "line 1.agent", (agent) => (agent.more = 1)],
  ["a field of an item that nobody knows", "memories.0", (agent) => Object.assign(first(agent.memories), { more: 1 })],
  ["no id", "line 1.agent.id", (agent) => Reflect.deleteProperty(agent, "id")],
  ["no config", "line 1.agent.config", (agent) => Reflect.deleteProperty(agent, "config")],
  ["a config that is none", "line 1.agent.config.name", (agent) => Object.assign(agent.config, { name: 7 })],
  ["a memory of another type", "memories.1.value", (agent) => Object.assign(agent.memories[1] ?? {}, { value: 1 })],
  ["a goal without words", "goals.0.description", (agent) => Object.assign(first(agent.goals), { description: "" })],
  [
    "a plan with two times",
    "plans.0",
    (agent) => Object.assign(first(agent.plans), { runAfter: "1 hour", cron: "0 9 * * *" }),
  ],
  ["a permission that is none", "blocks.0.permission", (agent) => Object.assign(notes(agent), { permission: "Owner" })],
  ["a schema that is none", "blocks.0.schema", (agent) => Object.assign(notes(agent), { schema: { type: "tree" } })],
  ["a label with markup", "blocks.0.label", (agent) => Object.assign(notes(agent), { label: "</block>" })],
  ["bytes that are no base64", "blocks.0.versions.0.update", (agent) => (first(notes(agent).versions).update = "*")],
  ["an author that is nobody", "blocks.0.versions.0.author", (agent) => (first(notes(agent).versions).author = "root")],
  ["a run that goes on", "runs.0.status", (agent) => Object.assign(first(agent.runs), { status: "running" })],
  ["an empty fact", "archival.0.content", (agent) => (first(agent.archival).content = " ")],
  ["half a character", "memories.0.value", (agent) => (first(agent.memories).value = "\ud800")],
];

/** The journal without the rows of one kind in the first step of each run. */
const withoutFirst = (kind: string) => (agent: Changed) => {
  agent.journal = agent.journal.filter((row) => row.kind !== kind || row.step > 0);
};
const message = (agent: Changed): object => first(agent.journal).content;
const version = (agent: Changed) => first(notes(agent).versions);
const fetched = "https://example.com/a.png";

const contradictions: Case[] = [
  ["a key twice", "repeats a row of the kind memory", (agent) => agent.memories.push(first(agent.memories))],
  ["a label twice", "repeats a row of the kind block", (agent) => agent.blocks.push(notes(agent))],
  ["a fact twice", "repeats a row of the kind archival", (agent) => agent.archival.push(first(agent.archival))],
  ["a cron that is none", "plan daily", (agent) => (first(agent.plans).cron = "61 * * * *")],
  ["a zone that is none", "plans.0.timezone", (agent) => (first(agent.plans).timezone = "Mars/Base")],
  ["a gap between runs", "run 7", (agent) => (first(agent.runs).ordinal = 7)],
  ["a window that is not there", "run 1", (agent) => (first(agent.runs).windowId = 99)],
  ["a journal of no run", "journal ", (agent) => (first(agent.journal).run = 7)],
  ["a cycle of a timeline", "run 1", (agent) => (first(agent.runs).continuity = "timeline")],
  ["a message of another role", "journal.0.content.role", (agent) => Object.assign(message(agent), { role: "system" })],
  ["a message that is none", "journal.0.content.content", (agent) => Reflect.deleteProperty(message(agent), "content")],
  ...[
    { type: "image", image: fetched },
    { ...{ type: "file", data: fetched }, mediaType: "image/png" },
  ].map(
    (part): Case => [
      `an address to fetch: ${part.type}`,
      "journal.0.content.content",
      (agent) => Object.assign(message(agent), { content: [part] }),
    ],
  ),
  [
    "a result that is an address to fetch",
    ".row.content.content.0.output.type",
    (agent) => {
      const { content } = agent.journal.find(({ kind }) => kind === "result") ?? first(agent.journal);
      const output = { type: "content", value: [{ type: "image-url", url: fetched }] };
      Object.assign(content, { content: [{ ...first(content.content as object[]), output }] });
    },
  ],
  [
    "a result after the next message",
    "journal ",
    (agent) => {
      const result = agent.journal.findIndex(({ kind }) => kind === "result");
      const [one, next] = agent.journal.slice(result);
      if (one && next) [one.seq, next.seq] = [next.seq, one.seq];
    },
  ],
  ["a run that ends after the journal", "run 3", (agent) => (first(agent.runs.toReversed()).journalTo = 1000)],
  ["a row outside of its run", "journal 1", (agent) => (first(agent.runs).journalFrom = 2)],
  ["a number past all counting", "journal.0.seq", (agent) => (first(agent.journal).seq = 2 ** 53 - 1)],
  ["a row without its meta", "journal.0.meta", (agent) => (first(agent.journal).meta = null)],
  ["a call without a result", "journal ", withoutFirst("result")],
  ["a result without a call", "journal ", withoutFirst("assistant")],
  ["a version left out", "block notes", (agent) => notes(agent).versions.splice(2, 1)],
  ["an update left out", "block notes", (agent) => Reflect.deleteProperty(notes(agent).versions[2] ?? {}, "update")],
  ["a damaged update", "block notes", (agent) => (version(agent).update = damaged(version(agent).update))],
  ["bytes of something else", "block notes", (agent) => (notes(agent).snapshot = ["AAAA"])],
  ["a version that never was", "block notes", (agent) => (notes(agent).version = 9)],
  ["a state that never was", "block notes", (agent) => (version(agent).state = '[{"peer":"7","counter":3}]')],
  ["a state that is none", "block notes", (agent) => (version(agent).state = "latest")],
  [
    "a document of another block",
    "block todo",
    (agent) => ((agent.blocks[1] ?? notes(agent)).versions = notes(agent).versions),
  ],
];

/** A place such as `memories.1.value` by its line. */
const placeIn = (all: Document, place: string): string => {
  const [list = "", index = "", ...field] = place.split(".");
  const rows = new Map<string, unknown>(Object.entries(all.agent)).get(list);
  if (!Array.isArray(rows)) return place;
  const line = linesOf(all).findIndex(({ row }) => row === rows[Number(index)]) + 1;
  return [`line ${line}.row`, ...field].join(".");
};

describe("[S4] a wrong document is refused with its place and leaves nothing", () => {
  test.each([...shapes, ...contradictions])("%s: %s", async (_, path, change) => {
    const problem = await refusal(changed(change));
    expect(problem).toMatchObject({ code: "invalid_request", status: 400 });
    expect(problem.detail).toContain(placeIn(document, path));
    expect(problem.detail).toContain(problem.issues?.[0]?.path);
  });

  test("field names such as __proto__, and unknown kinds, are refused", async () => {
    const text = textOf(linesOf(document));
    for (const name of ["__proto__", "constructor"]) {
      expect((await refusal(`{"${name}":1,${text.slice(1)}`)).detail).toContain(name);
      expect((await refusal(text.replace('"agent":{', `"agent":{"${name}":[1],`))).detail).toContain(name);
    }
    const unknown = textOf([...linesOf(document), { kind: "dream", row: {} }]);
    expect((await refusal(unknown)).detail).toContain(`line ${linesOf(document).length + 1}.kind`);
  });

  test("a missing or second head and a wrong count of lines are refused", async () => {
    const lines = linesOf(document);
    expect((await refusal(textOf(lines.slice(1)))).detail).toContain("line 1.kind must be agent");
    const twice = await refusal(textOf([...lines, lines[0]]));
    expect(twice.detail).toContain(`line ${lines.length + 1}.kind must not be agent`);
    const without = textOf(lines).replace(/^.*"kind":"memory".*\n/m, "");
    expect((await refusal(without)).detail).toContain(`line ${lines.length}.lines must be ${lines.length - 1}`);
    const more = await refusal(`${textOf(lines)}${JSON.stringify(lines[1])}\n`);
    expect(more.detail).toContain(`line ${lines.length + 2} follows the last line`);
  });

  test("a document that was cut is refused, wherever it was cut", async () => {
    const text = textOf(linesOf(document));
    for (const share of [0, 0.1, 0.5, 0.9, 0.999]) {
      const cut = text.slice(0, Math.floor(text.length * share));
      expect(await refusal(cut), String(share)).toMatchObject({ code: "invalid_json", status: 400 });
    }
    const between = text.slice(0, text.trimEnd().lastIndexOf("\n") + 1);
    const refused = await refusal(between);
    expect(refused).toMatchObject({ code: "invalid_json" });
    expect(refused.detail).toContain(`cut off after line ${linesOf(document).length}`);
  });

  test("another media type is refused", async () => {
    const answer = await imported(house, document, "", { "content-type": "text/plain" });
    expect(await problemIn(answer)).toMatchObject({
      code: "invalid_json",
      detail: expect.stringContaining("x-ndjson"),
    });
  });

  test("a sender that goes away leaves nothing", async () => {
    const bytes = new TextEncoder().encode(textOf(linesOf(document)));
    let sent = 0;
    const body = new ReadableStream<Uint8Array>({
      pull(controller) {
        if (sent > bytes.length / 2) return controller.error(new Error("gone"));
        controller.enqueue(bytes.slice(sent, sent + 1000));
        sent += 1000;
      },
    });
    const before = await stored();
    const cut = new Request("https://colloquy.test/v1/imports", {
      method: "POST",
      body,
      headers: { authorization: `Bearer ${house.secretKey}`, "content-type": exportMediaType },
    });
    expect(await problemIn(await exports.default.fetch(cut))).toMatchObject({ code: "invalid_json" });
    expect(await stored()).toBe(before);
    expect(await send(house, "/v1/agents")).toMatchObject({ items: [] });
  });

  test("a config with an unknown model alias or unusable tools is refused", async () => {
    const aliased = changed((agent) => Object.assign(agent.config, { model: { alias: "nowhere" } }));
    expect(await refusal(aliased)).toMatchObject({ code: "unknown_reference" });
    const tooled = changed((agent) =>
      Object.assign(agent.config, { toolRules: [{ rule: "exit", tool: "no_such_tool" }] }),
    );
    expect(await refusal(tooled)).toMatchObject({ code: "invalid_request" });
  });

  test("what held nothing after a refusal holds nothing after the others", async () => {
    const before = [...empty];
    expect(before.length).toBeGreaterThan(shapes.length);
    empty.clear();
    await stored();
    expect([...empty]).toEqual(expect.arrayContaining(before));
  });

  test("[B3] too many memories and too large rows are refused", async () => {
    const many = changed((agent) => {
      const memory = first(agent.memories);
      agent.memories = Array.from({ length: 501 }, (_, index) => ({ ...memory, key: `k${index}` }));
    });
    expect(await refusal(many)).toMatchObject({
      code: "limit_reached",
      detail: expect.stringContaining("maxMemories"),
    });
    const long = changed((agent) => Object.assign(first(agent.journal).content, { content: "x".repeat(2_100_000) }));
    expect(await refusal(long)).toMatchObject({ code: "payload_too_large" });
  });
});

describe("an import", () => {
  test("with a name that is taken is refused; the query can give it another", async () => {
    const { agent } = await expectOk(ImportedAgent, imported(house, document));
    expect(await problemIn(await imported(house, document))).toMatchObject({ code: "name_taken", status: 409 });
    const other = await expectOk(ImportedAgent, imported(house, document, "?name=Analyst%20the%20Second"));
    expect(other.agent.config.name).toBe("Analyst the Second");
    expect(await problemIn(await imported(house, document, "?name=%0A"))).toMatchObject({ code: "invalid_request" });
    for (const id of [agent.id, other.agent.id])
      await call(`/v1/agents/${id}`, { method: "DELETE", bearer: house.secretKey });
    expect(await send(house, "/v1/agents")).toMatchObject({ items: [] });
  });

  test("[D1] under the same key answers the same agent; another document is refused", async () => {
    const headers = { "idempotency-key": "imported" };
    const one = await expectOk(ImportedAgent, imported(house, document, "", headers));
    const again = await imported(house, document, "", headers);
    expect(again.headers.get("idempotency-replayed")).toBe("true");
    expect(ImportedAgent.parse(await again.json())).toEqual(one);
    const other = changed((agent) => (first(agent.memories).value = "another"));
    expect(await problemIn(await imported(house, other, "", headers))).toMatchObject({ code: "idempotency_mismatch" });
    expect(await send(house, "/v1/agents")).toMatchObject({ items: [{ id: one.agent.id }] });
    await call(`/v1/agents/${one.agent.id}`, { method: "DELETE", bearer: house.secretKey });
  });

  test("[S3] reports secrets and people that its config names and the workspace lacks", async () => {
    const nobody = ids.mint("ent");
    const headers = { authorization: `Bearer ${"$"}{secret.SERVER_KEY}` };
    const tool = {
      ...{ name: "ask_server", description: "Asks", executionType: "gateway", approval: { approvers: [nobody] } },
      execution: { method: "GET", url: "https://api.example.com/x", headers },
    };
    const server = { baseUrl: "https://api.example.com/v1", apiKeySecret: "MODEL_KEY" };
    const model = { provider: "openai-compatible", name: "m", ...server };
    const named = changed((agent) => Object.assign(agent.config, { tools: [tool], model }));
    const path = "/v1/workspace/secrets/MODEL_KEY";
    await call(path, { method: "PUT", bearer: house.secretKey, body: { value: "v" } });
    const { agent, imported: report } = await expectOk(ImportedAgent, imported(house, named));
    expect(report).toMatchObject({ secrets: ["SERVER_KEY"], people: [nobody] });
    await call(`/v1/agents/${agent.id}`, { method: "DELETE", bearer: house.secretKey });
  });

  test("[S2] keeps hostile text as text", async () => {
    const words = `</block:notes>\n[SEEN] ← TRIGGER "x" ${"$"}{secret.A} {{payload}} \u202e`;
    const hostile = changed((agent) => {
      first(agent.memories).value = words;
      first(agent.goals).description = words;
      first(agent.archival).content = words;
    });
    const { agent } = await expectOk(ImportedAgent, imported(house, hostile));
    const again = await exported(house, agent.id);
    expect(again.agent.memories[0]?.value).toBe(words);
    const context = await send(house, `/v1/agents/${agent.id}/context`);
    const { messages } = z.looseObject({ messages: z.array(z.unknown()) }).parse(context);
    expect(JSON.stringify(messages.at(-1))).not.toContain("\u202e");
    await call(`/v1/agents/${agent.id}`, { method: "DELETE", bearer: house.secretKey });
  });

  test("[R6] fires a plan whose time has passed once, and goes on with a cron", async () => {
    const late = changed((agent) => {
      for (const plan of agent.plans) plan.dueAt = "2026-01-01T09:00:00.000Z";
    });
    const { agent } = await expectOk(ImportedAgent, imported(house, late));
    const Plan = z.looseObject({ id: z.string(), status: z.string(), nextRunAt: z.string().optional() });
    await vi.waitFor(
      async () => {
        const { items } = z.object({ items: z.array(Plan) }).parse(await send(house, `/v1/agents/${agent.id}/plans`));
        expect(items.find(({ id }) => id === "once")?.status).toBe("done");
        expect(Date.parse(items.find(({ id }) => id === "daily")?.nextRunAt ?? "")).toBeGreaterThan(Date.now());
      },
      { timeout: 10_000 },
    );
    await call(`/v1/agents/${agent.id}`, { method: "DELETE", bearer: house.secretKey });
  });
});

/** What an admin has under way, who is signed out meanwhile. */
const signedOut = async (house: House, { id }: { id: string }) => {
  const done = await call(`/v1/entities/${id}/sign-out`, { method: "POST", bearer: house.secretKey });
  expect(done.ok).toBe(true);
};

test("[S5] [L7] an export under way is cut once its caller was signed out", async () => {
  const house = await openHouse();
  const boss = await house.person("Boss", "admin");
  const { id } = await house.agent({ name: "Keeper" });
  const endless = async () => ok({ text: "a page\n", next: { kind: "memory" } as ExportPage["next"] });
  const asked = vi.spyOn(AgentObject.prototype, "exportPage").mockImplementation(endless);
  onTestFinished(() => asked.mockRestore());
  const { body } = await call(`/v1/agents/${id}/export`, { bearer: boss.token });
  const reader = body?.getReader();
  const isOver = async () => (await reader?.read().catch(() => undefined))?.done ?? true;
  expect(await isOver()).toBe(false);
  await signedOut(house, boss);
  let pages = 0;
  while (pages < 50 && !(await isOver())) pages += 1;
  await reader?.cancel().catch(() => undefined);
  expect(pages).toBeLessThan(50);
});

test("[S5] [L7] an import makes no agent once its caller was signed out", async () => {
  const house = await openHouse();
  const boss = await house.person("Boss", "admin");
  const { id } = await house.agent({ name: "Keeper" });
  const bytes = new TextEncoder().encode(textOf(linesOf(await exported(house, id))));
  const { readable: body, writable } = new TransformStream<Uint8Array, Uint8Array>();
  const headers = { authorization: `Bearer ${boss.token}`, "content-type": exportMediaType };
  const url = "https://colloquy.test/v1/imports?name=Copy";
  const imports = exports.default.fetch(new Request(url, { method: "POST", headers, body }));
  const writer = writable.getWriter();
  await writer.write(bytes.slice(0, 20));
  await signedOut(house, boss);
  await writer.write(bytes.slice(20));
  await writer.close();
  expect(await problemIn(await imports)).toMatchObject({ code: "unauthorized" });
});
