import { env } from "cloudflare:workers";
import { beforeAll, describe, expect, test } from "vitest";
import * as z from "zod";
import { loadLoro } from "../../../src/agent/memory/documents/document.ts";
import { CreateBlock } from "../../../src/protocol/block.ts";
import { unwrap } from "../../../src/shared/errors.ts";
import { call, type ScriptedPart, step, text } from "../../support/scripted-model.ts";
import { type AgentSettings, ended, openScene, runsOf, scripted, userTexts } from "../fixture.ts";

/** What an agent reads of the fields that its structured blocks declare. */
// It takes its time under vite, which makes it anew for each file.
beforeAll(() => loadLoro(), 60_000);

const contact = {
  label: "contact",
  description: "Whom we write to",
  schema: {
    type: "map",
    fields: [
      { name: "name", type: "text", required: true, description: "Who it is", default: "Sara" },
      { name: "mail" },
      { name: "visits", type: "counter" },
      { name: "since", type: "timestamp", readOnly: true, description: 'The day of the "first" order' },
    ],
  },
};
const contactFields =
  'fields: name (text, required): Who it is · mail (text) · visits (counter) · since (timestamp, read-only): "The day of the \\"first\\" order"';
const tasks = {
  label: "tasks",
  schema: {
    type: "list",
    itemSchema: {
      type: "map",
      fields: [
        { name: "what", required: true },
        { name: "done", type: "boolean" },
      ],
    },
  },
};

const stage = async (settings: Partial<AgentSettings> = {}) => {
  const { house, analyst, ask, agent } = await openScene(settings);
  const { workspaceId } = house;
  let runs = 0;
  return {
    workspaceId,
    house,
    analyst,
    agent,
    create: async (block: object, of = agent) =>
      unwrap(
        await of.createBlock(workspaceId, CreateBlock.parse({ type: "working", pinned: true, ...block }), "system"),
      ),
    /** Plays a run with these calls, one a step. Answers what the model read first, and what the calls came to. */
    run: async (...calls: ScriptedPart[]) => {
      const model = scripted([...calls.map((each) => step(each)), step(text("Done."))]);
      runs += 1;
      await ask("Go on", runs);
      await ended(workspaceId, analyst, runs);
      const [newest] = await runsOf(workspaceId, analyst);
      const outputs = (newest?.steps ?? []).flatMap(({ toolCalls }) => toolCalls).map(({ output }) => output);
      const { prompt = [] } = model.calls[0] ?? {};
      const [first] = prompt;
      const system = first?.role === "system" ? first.content : "";
      return { input: [system, ...userTexts(model.calls[0])].join("\n"), outputs };
    },
  };
};

const edit = (label: string, ...operations: object[]) => call("block_edit", { label, operations });
const refused = (message: string) => ({ success: false, error: { code: "edit_refused", message } });

describe.each(["consciousness", "timeline"] as const)("a %s", (continuity) => {
  test("[K11] reads the declared fields of a block above its value, also while it is empty", async () => {
    const { create, run } = await stage({ continuity });
    await create({ ...contact, type: "core" });
    await create(tasks);
    await create({ label: "diary", schema: { type: "log", entryFields: ["mood", { name: "level", type: "number" }] } });
    await create({
      label: "project",
      schema: {
        type: "composite",
        sections: [
          { name: "facts", schema: { type: "map", fields: [{ name: "lead" }] }, description: "What is agreed" },
          { name: "notes", schema: { type: "text" }, readOnly: true },
          { name: "ideas", schema: { type: "list" } },
        ],
      },
    });
    await create({ label: "memo", content: "No fields here." });
    const { input } = await run();
    expect(input).toContain(
      `<block:contact permission="ReadWrite">\n  | Whom we write to\n  |\n  | ${contactFields}\n  |\n  | name: Sara\n  | visits: 0\n</block:contact>`,
    );
    expect(input).toContain(
      '<block:tasks permission="ReadWrite">\n  | item fields: what (text, required) · done (boolean)\n</block:tasks>',
    );
    expect(input).toContain(
      '<block:diary permission="ReadWrite">\n  | entry fields: mood (text) · level (number)\n</block:diary>',
    );
    expect(input).toContain(
      [
        '<block:project permission="ReadWrite">',
        "  | section facts (map): What is agreed — fields: lead (text)",
        "  | section notes (text, read-only)",
        "  | section ideas (list) — items: any value",
        "  |",
        "  | === facts ===",
      ].join("\n"),
    );
    expect(input).toContain('<block:memo permission="ReadWrite">\n  | No fields here.\n</block:memo>');
  });

  test("[K11] does not read them where its owner leaves them out", async () => {
    const { create, run } = await stage({ continuity, context: { blockSchemas: false } });
    await create(contact);
    const { input } = await run();
    expect(input).toContain("  | Whom we write to\n  |\n  | name: Sara\n  | visits: 0\n</block:contact>");
    expect(input).not.toContain("fields:");
  });

  test("[K11] reads the schema when it loads a block, its own or another's, and none of a text", async () => {
    const { create, run, house, analyst, workspaceId } = await stage({ continuity });
    const scribe = await house.agent({ name: "Scribe" });
    const owner = env.AGENT.getByName(scribe.id);
    await create({ ...contact, pinned: false });
    await create({ label: "memo", content: "A text." });
    await create(tasks, owner);
    unwrap(await owner.shareBlock(workspaceId, "tasks", { granteeId: analyst.id, permission: "Append" }));
    const { outputs } = await run(
      call("block_load", { label: "contact" }),
      call("block_load", { label: "tasks" }),
      call("block_load", { label: "memo" }),
    );
    const { schema } = CreateBlock.parse({ type: "working", ...contact });
    expect(outputs[0]).toMatchObject({ schema, content: "name: Sara\nvisits: 0" });
    expect(outputs[1]).toMatchObject({ sharedFrom: "Scribe", schema: { type: "list", itemSchema: { type: "map" } } });
    expect(outputs[2]).not.toHaveProperty("schema");
  });

  test("[K11] is told which fields there are where it names a wrong one, and never what it wrote", async () => {
    const { create, run } = await stage({ continuity });
    await create(contact);
    await create(tasks);
    await create({ label: "diary", schema: { type: "log" } });
    await create({
      label: "project",
      schema: { type: "composite", sections: [{ name: "facts", schema: { type: "text" } }] },
    });
    const secret = "sk-12345";
    const { outputs } = await run(
      edit("contact", { op: "set_field", field: "email", value: secret }),
      edit("contact", { op: "set_field", field: "visits", value: secret }),
      edit("tasks", { op: "push_item", item: { what: "Call", who: secret } }),
      edit("tasks", { op: "push_item", item: { [`${secret} `.repeat(20)]: 1 } }),
      edit("tasks", { op: "push_item", item: secret }),
      edit("diary", { op: "append_log_entry", entry: { words: secret } }),
      edit("project", { op: "set_text", section: "notes", text: secret }),
      edit("contact", { op: "set_field", section: "facts", field: "name", value: secret }),
    );
    const fields = "name (text, required), mail (text), visits (counter), since (timestamp, read-only)";
    expect(outputs).toEqual([
      refused(`Field not found: email. The fields are: ${fields}`),
      refused("Field 'visits' takes a number of at most 9007199254740991 (maxCount), not a text"),
      refused("Field not found: who. The fields are: what (text, required), done (boolean)"),
      refused("Field not found. The fields are: what (text, required), done (boolean)"),
      refused("An item must be an object of fields, not a text. The fields are: what (text, required), done (boolean)"),
      refused("Field not found: words. The fields are: message (text)"),
      refused("Field not found: notes. The sections are: facts (text)"),
      refused("Field not found: facts. The block has no sections: leave section out"),
    ]);
    expect(JSON.stringify(outputs)).not.toContain(secret);
  });
});

test("[K11] a schema that is too large for a result is told in short", async () => {
  const { create, run } = await stage();
  const fields = Array.from({ length: 64 }, (_, index) => ({ name: `f${index}`, description: "words ".repeat(160) }));
  await create({ label: "large", schema: { type: "map", fields }, pinned: false });
  const load = (more: object = {}) => call("block_load", { label: "large", ...more });
  const { outputs } = await run(load(), load({ schema: true, lines: 200 }), load({ schema: true, startLine: 201 }));
  expect(outputs[0]).not.toHaveProperty("schema");
  expect(outputs[0]).toMatchObject({ fields: [expect.stringMatching(/^fields: f0 \(text\): "words .*…" · f1 /)] });
  expect(JSON.stringify(outputs[0])).toContain("more");
  expect(outputs[0]).toMatchObject({ wholeSchema: "block_load with schema: true" });
  const pages = z.array(z.object({ content: z.string(), note: z.string() })).parse(outputs.slice(1));
  expect(pages[0]?.note).toMatch(/^cut: 200 of \d+ lines; block_load with schema: true, startLine: 201 reads on$/);
  expect(JSON.parse(pages.map(({ content }) => content).join("\n"))).toMatchObject({ type: "map", fields });
});
