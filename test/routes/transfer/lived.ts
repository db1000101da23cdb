import { expect, vi } from "vitest";
import * as z from "zod";
import { loadLoro } from "../../../src/agent/memory/documents/document.ts";
import { ExportedLine, exportMediaType, type RowKind, type RowOf } from "../../../src/protocol/exported-agent.ts";
import { call, expectOk, type House, openHouse } from "../../support/house.ts";
import { installModel, scriptedModel, step, text, call as toolCall } from "../../support/scripted-model.ts";

/** An agent that has lived: something of every kind that is exported, and of what is not. */

const lists = {
  name: "names",
  memory: "memories",
  goal: "goals",
  plan: "plans",
  window: "windows",
  run: "runs",
  journal: "journal",
  summary: "summaries",
  block: "blocks",
  share: "shares",
  archival: "archival",
} as const satisfies Record<RowKind, string>;
const kinds = Object.keys(lists) as RowKind[];
type Head = Extract<ExportedLine, { kind: "agent" }>;
type Lists = { [Kind in RowKind as (typeof lists)[Kind]]: RowOf<Kind>[] };

/** The lines of an export by their kinds: easier to look at and to change than a text. */
export type Document = Omit<Head, "kind" | "agent"> & { agent: Head["agent"] & Lists };

/** Reads an export. Each of its lines fits its schema, and the last says how many came before it. */
export const documentOf = (text: string): Document => {
  const lines = text
    .trimEnd()
    .split("\n")
    .map((line) => ExportedLine.parse(JSON.parse(line)));
  const [head, end] = [lines.at(0), lines.at(-1)];
  if (head?.kind !== "agent" || end?.kind !== "end" || end.lines !== lines.length - 1) throw new Error("it was cut");
  const rows = Object.fromEntries(
    kinds.map((kind) => [
      lists[kind],
      lines.flatMap((line) => (line.kind === kind && "row" in line ? [line.row] : [])),
    ]),
  ) as Lists;
  const { kind: _, ...envelope } = head;
  return { ...envelope, agent: { ...head.agent, ...rows } };
};

/** The lines of a document, but for the last. */
export const linesOf = ({ agent, ...envelope }: Document): { kind: string; row?: unknown }[] => {
  const own = Object.entries(agent).filter(([name]) => !Object.values<string>(lists).includes(name));
  return [
    { kind: "agent", ...envelope, agent: Object.fromEntries(own) } as { kind: string },
    ...kinds.flatMap((kind) => agent[lists[kind]].map((row) => ({ kind, row }))),
  ];
};

export const textOf = (lines: unknown[]): string =>
  [...lines, { kind: "end", lines: lines.length }].map((line) => `${JSON.stringify(line)}\n`).join("");

const Runs = z.object({ items: z.array(z.object({ id: z.string(), status: z.string() })) });

export const send = (house: House, path: string, body?: unknown, method = body === undefined ? "GET" : "POST") =>
  expectOk(z.unknown(), call(path, { bearer: house.secretKey, method, ...(body === undefined ? {} : { body }) }));

export const runsEnded = (house: House, agentId: string, count: number) =>
  vi.waitFor(
    async () => {
      const { items } = await expectOk(Runs, call(`/v1/agents/${agentId}/runs`, { bearer: house.secretKey }));
      if (items.length < count || items.some(({ status }) => status === "running")) throw new Error("it runs still");
      return items;
    },
    { timeout: 10_000 },
  );

export const exported = async (house: House, agentId: string): Promise<Document> => {
  const answer = await call(`/v1/agents/${agentId}/export`, { bearer: house.secretKey });
  expect(answer.headers.get("content-type")).toBe(exportMediaType);
  return documentOf(new TextDecoder().decode(await answer.arrayBuffer()));
};

/** Sends a document, or a text in its place. */
export const imported = (
  house: House,
  document: Document | string,
  query = "",
  headers: Record<string, string> = {},
): Promise<Response> =>
  call(`/v1/imports${query}`, {
    bearer: house.secretKey,
    body: typeof document === "string" ? document : textOf(linesOf(document)),
    headers: { "content-type": exportMediaType, ...headers },
  });

export const lived = async (settings: Record<string, unknown> = {}) => {
  await loadLoro();
  const house = await openHouse();
  const mona = await house.person("Mona");
  const { id } = await house.agent({ name: "Analyst", instructions: "Count.", ...settings });
  const reader = await house.agent({ name: "Reader" });
  const space = await house.space("Kitchen", [mona, { id }]);
  const path = `/v1/agents/${id}`;
  await send(house, `${path}/memories/tea`, { value: "green" }, "PUT");
  await send(house, `${path}/goals/q4`, { description: "Finish the report", priority: 2 }, "PUT");
  await send(house, `${path}/plans/daily`, { name: "Daily", instruction: "Report", cron: "0 9 * * *" }, "PUT");
  await send(house, `${path}/plans/once`, { name: "Once", instruction: "Look", runAfter: "2 hours" }, "PUT");
  await send(house, `${path}/blocks`, { label: "notes", type: "core", description: "What matters", content: "Calm." });
  for (const word of [" One.", " Two.", " Three."]) {
    await send(house, `${path}/blocks/notes/operations`, { operations: [{ op: "append_text", text: word }] });
  }
  await send(house, `${path}/blocks/notes/operations`, { operations: [{ op: "undo" }] });
  const list = {
    type: "list",
    itemSchema: { type: "map", fields: [{ name: "task" }, { name: "done", type: "boolean" }] },
  };
  const content = [{ task: "Call Sara", done: false }];
  await send(house, `${path}/blocks`, { label: "todo", type: "working", pinned: true, schema: list, content });
  await call(`${path}/blocks/todo/operations`, {
    bearer: house.secretKey,
    as: mona.id,
    body: { operations: [{ op: "push_item", item: { task: "Buy tea", done: true } }] },
  });
  await send(house, `${path}/blocks/notes/shares/${reader.id}`, { permission: "ReadOnly" }, "PUT");
  await send(house, `${path}/blocks/todo/spaces/${space.id}`, { permission: "Append" }, "PUT");
  const source = { spaceId: space.id, authorId: mona.id };
  await send(house, `${path}/archival`, { content: "The launch is on Friday.", metadata: { sure: true }, source });
  await send(house, `${path}/archival`, { content: "The kettle is broken." });
  await send(house, `${path}/hooks`, { scheme: "github", name: "github" });
  const undo = installModel(
    scriptedModel([
      step(toolCall("enter_space", { spaceId: space.id })),
      step(toolCall("set_memories", { memories: [{ key: "asked", value: "by Mona" }] })),
      step(
        toolCall("block_edit", {
          label: "todo",
          operations: [{ op: "push_item", item: { task: "Ask Omar", done: false } }],
        }),
      ),
      step(toolCall("send_message", { text: "It's “noted”;\nreally: ünïcode ✓." })),
      step(text("Noted what Mona asked.")),
      step(toolCall("set_goals", { goals: [{ id: "tea", description: "Make tea" }] })),
      step(text("Took up making tea.")),
      step(toolCall("skip", { reason: "nothing to do" })),
    ]),
  );
  try {
    await house.say(space.id, mona, "@Analyst note that the warehouse opens at seven");
    await runsEnded(house, id, 1);
    await house.say(space.id, mona, "@Analyst and somebody should make tea");
    await runsEnded(house, id, 2);
    await house.say(space.id, mona, "just thinking aloud");
    await runsEnded(house, id, 3);
  } finally {
    undo();
  }
  return { house, mona, id, reader, space, path };
};

/** A document without what an import makes anew: the agent's own ids and times, and what is told and not made again. */
export const comparable = ({ agent }: Document, selves: string[]): unknown => {
  const own = new RegExp(selves.join("|"), "g");
  const { id: _, createdAt, updatedAt, left, shares, ...rest } = agent;
  const without = {
    ...rest,
    // A document from before a setting means its default.
    config: {
      ...{ ...rest.config, name: "" },
      limits: { ...{ maxRunsPerHour: 600, maxShareOfPerson: 0.25 }, ...rest.config.limits },
      context: { ...{ blockSchemas: true }, ...rest.config.context },
    },
    runs: rest.runs.map(({ id: run, ...held }) => held),
    archival: rest.archival.map(({ id: entry, ...held }) => held),
  };
  return JSON.parse(JSON.stringify(without).replaceAll(own, "SELF"));
};
