import { abortAllDurableObjects } from "cloudflare:test";
import { beforeAll, describe, expect, it } from "vitest";
import { loadLoro } from "../../src/agent/memory/documents/document.ts";
import { Block } from "../../src/protocol/block.ts";
import { schemaIssues } from "../../src/shared/json-schema.ts";
import { call, expectOk, openHouse } from "../support/house.ts";
import { append, Items, openAgent, set } from "./block-agent.ts";
import { problemIn } from "./operations.ts";

beforeAll(() => loadLoro(), 60_000);

describe("blocks over HTTP", () => {
  it("are created with the given settings, and defaults for the rest", async () => {
    const { create, read, list } = await openAgent();
    const made = await create({ charLimit: 0 });
    expect(made).toMatchObject({
      label: "notes",
      type: "working",
      permission: "ReadWrite",
      description: "",
      schema: { type: "text" },
      pinned: false,
      charLimit: 5000,
      version: 1,
      rendered: "",
      value: "",
    });
    await create({ label: "persona", type: "core", content: "I am calm.", pinned: true, permission: "ReadOnly" });
    expect(await read("persona")).toMatchObject({
      rendered: "I am calm.",
      value: "I am calm.",
      permission: "ReadOnly",
    });
    expect((await list()).map(({ label }) => label)).toEqual(["notes", "persona"]);
  });

  it("[K10] are listed by type, and a type that there is not is refused", async () => {
    const { create, send } = await openAgent();
    await create({});
    await create({ label: "persona", type: "core" });
    const labels = async (query: string) => {
      const { items } = await expectOk(Items(Block), send("GET", query));
      return items.map(({ label }) => label);
    };
    expect(await labels("?type=core")).toEqual(["persona"]);
    expect(await labels("?type=working")).toEqual(["notes"]);
    expect(await labels("?type=log")).toEqual([]);
    for (const query of ["?type=poem", "?typ=core"])
      expect(await problemIn(await send("GET", query))).toMatchObject({ status: 400, code: "invalid_request" });
  });

  it("are edited, all operations or none, with what each did", async () => {
    const { create, edited, edit, read } = await openAgent();
    await create({ schema: { type: "list" } });
    const done = await edited([
      { op: "push_item", item: { done: false, title: "Milk" } },
      { op: "push_item", item: "Eggs" },
    ]);
    expect(done).toEqual({
      rendered: "[ ] {done: false, title: Milk}\n2. Eggs",
      value: [{ done: false, title: "Milk" }, "Eggs"],
      version: 2,
      results: [
        { op: "push_item", message: "Inserted item 0 into block 'notes'" },
        { op: "push_item", message: "Inserted item 1 into block 'notes'" },
      ],
    });
    const refused = await edit([
      { op: "push_item", item: "Bread" },
      { op: "insert_item", index: 9, item: "x" },
    ]);
    expect(await problemIn(refused)).toMatchObject({
      status: 422,
      code: "edit_refused",
      detail: "Index 9 out of bounds (len=3)",
    });
    expect(await read()).toMatchObject({ version: 2, value: done.value, rendered: done.rendered });
  });

  it("keep their versions with who made them, and show any of them again", async () => {
    const { house, agent, create, edited, history, read, send } = await openAgent();
    const mia = await house.person("Mia");
    await create({ content: "initial" });
    await edited(append(" first"), { as: "agent" });
    const asMia = await call(`/v1/agents/${agent.id}/blocks/notes/operations`, {
      method: "POST",
      bearer: house.secretKey,
      headers: { "x-entity-id": mia.id },
      body: { operations: [set("Mia's")] },
    });
    expect(asMia.status).toBe(200);
    await edited({ op: "undo" }, { as: "agent" });
    expect((await history()).map(({ version, author, operations }) => [version, author, operations])).toEqual([
      [4, `agent:${agent.id}:undo`, ["undo"]],
      [3, `human:${mia.id}:edit`, ["set_text"]],
      [2, `agent:${agent.id}:append`, ["append_text"]],
      [1, "system:create", []],
    ]);
    expect(await read("notes", "?version=2")).toMatchObject({ version: 2, rendered: "initial first" });
    expect(await read("notes", "?version=1")).toMatchObject({ version: 1, rendered: "initial" });
    expect(await read()).toMatchObject({ version: 4, rendered: "Mia's" });
    expect(await problemIn(await send("GET", "/notes?version=9"))).toMatchObject({
      status: 404,
      detail: "there is no version 9; the newest is 4",
    });
  });

  it("undo and redo walk the edits of each by itself", async () => {
    const { create, edited, edit } = await openAgent();
    await create({});
    await edited(set("initial"));
    await edited(append(" first"), { as: "agent" });
    await edited(append(" second"), { as: "agent" });
    expect(await edited({ op: "undo" }, { as: "agent" })).toMatchObject({ rendered: "initial first" });
    expect(await edited({ op: "redo" }, { as: "agent" })).toMatchObject({ rendered: "initial first second" });
    await edited([{ op: "undo" }, { op: "undo" }], { as: "agent" });
    expect((await problemIn(await edit({ op: "undo" }, { as: "agent" }))).detail).toBe("Nothing to undo");
    expect(await edited({ op: "undo" })).toMatchObject({ rendered: "" });
  });

  it("merge what two changed without seeing each other's", async () => {
    const { create, edited } = await openAgent();
    await create({ content: "one two three" });
    await edited({ op: "replace_text", old: "one", new: "1" }, { as: "agent" });
    const merged = await edited({ op: "replace_text", old: "three", new: "3" }, { onVersion: 1 });
    expect(merged).toMatchObject({ rendered: "1 two 3", version: 3 });
  });

  it("hold agents to the block's permission, and not the workspace's key", async () => {
    const { create, edit, edited, send } = await openAgent();
    await create({ permission: "Append", content: "a" });
    expect(await problemIn(await edit(set("x"), { as: "agent" }))).toMatchObject({
      status: 403,
      code: "forbidden",
      detail: "Permission denied: Overwrite requires ReadWrite permission, but block has Append (set_text)",
    });
    expect(await edited(append("b"), { as: "agent" })).toMatchObject({ rendered: "ab" });
    expect(await edited(set("c"))).toMatchObject({ rendered: "c" });
    expect((await send("DELETE", "/notes?as=agent")).status).toBe(403);
    expect((await send("DELETE", "/notes")).status).toBe(204);
    expect((await send("GET", "/notes")).status).toBe(404);
  });

  it("free their label and lose their content when they are deleted", async () => {
    const { create, read, send, history } = await openAgent();
    await create({ content: "old" });
    expect(await problemIn(await send("POST", "", { label: "notes", type: "core" }))).toMatchObject({
      status: 409,
      code: "name_taken",
    });
    await send("DELETE", "/notes");
    expect((await send("DELETE", "/notes")).status).toBe(404);
    await create({ content: "new" });
    expect(await read()).toMatchObject({ rendered: "new", version: 1 });
    expect(await history()).toHaveLength(1);
  });

  it("are changed in their settings", async () => {
    const { create, edited, send, read } = await openAgent();
    await create({ content: Array.from({ length: 10 }, (_, index) => `Line ${index + 1}`).join("\n") });
    const patch = (body: object) => send("PATCH", "/notes", body);
    await patch({ viewport: { startLine: 3, displayLines: 3 }, pinned: true, type: "core", description: "Mine" });
    expect(await read()).toMatchObject({
      pinned: true,
      type: "core",
      description: "Mine",
      schema: { type: "text", viewport: { startLine: 3, displayLines: 3 } },
      rendered: "[Showing lines 3-5 of 10]\nLine 3\nLine 4\nLine 5",
      version: 1,
    });
    expect(await edited({ op: "edit_range", startLine: 4, endLine: 4, text: "four" })).toMatchObject({
      rendered: "[Showing lines 3-5 of 10]\nLine 3\nfour\nLine 5",
    });
    await patch({ viewport: null, charLimit: 10 });
    expect((await read()).rendered).toContain("Line 1\n");
    expect(await problemIn(await send("POST", "/notes/operations", { operations: [append("more")] }))).toMatchObject({
      status: 413,
      code: "text_too_long",
    });
    expect((await patch({ schema: { type: "list" } })).status).toBe(409);
  });

  it("refuse a schema that their content does not fit", async () => {
    const { create, send, read, edited } = await openAgent();
    const map = (...fields: object[]) => ({ type: "map", fields });
    await create({ schema: map({ name: "a" }, { name: "b", type: "list" }), content: { a: "x", b: [1] } });
    const refused = async (schema: object, reason: string) => {
      const before = await read();
      const problem = await problemIn(await send("PATCH", "/notes", { schema }));
      expect(problem).toMatchObject({ status: 409, code: "conflict", detail: expect.stringContaining(reason) });
      expect(await read()).toEqual(before);
    };
    await refused(map({ name: "a", type: "number" }), "field 'a' is a text");
    await send("PATCH", "/notes", { schema: map({ name: "b", type: "list" }) });
    // A field that is no longer shown is still there, and comes back as the same kind.
    await refused(map({ name: "a", type: "number" }), "Field 'a' takes a number, not a text");
    await send("PATCH", "/notes", { schema: map({ name: "a" }) });
    expect(await read()).toMatchObject({ value: { a: "x" } });
    await create({ label: "list", schema: { type: "list" }, content: ["x", 5, 6] });
    const list = (schema: object) => send("PATCH", "/list", { schema: { type: "list", ...schema } });
    expect((await problemIn(await list({ itemSchema: { type: "text" } }))).detail).toContain("An item must be a text");
    expect((await problemIn(await list({ maxItems: 2 }))).detail).toContain("it holds 3 items, more than 2 (maxItems)");
    expect((await read("list")).schema).toEqual({ type: "list" });
    await edited({ op: "delete_item", index: 0 }, {}, "list");
    expect((await list({ itemSchema: { type: "integer" }, maxItems: 2 })).status).toBe(200);
    expect((await edited({ op: "push_item", item: 7 }, {}, "list")).value).toEqual([6, 7]);
    expect((await send("PATCH", "/notes", { section: "a" })).status).toBe(400);
  });

  it("[B3] check an item against a pattern that backtracks in less than 50 ms", async () => {
    const { create, edit } = await openAgent();
    const itemSchema = { type: "string", pattern: "^a*a*a*a*a*b$" };
    await create({ schema: { type: "list", itemSchema } });
    const refused = await edit({ op: "push_item", item: "a".repeat(10_000) });
    expect((await problemIn(refused)).detail).toContain("The item breaks its schema");
    // The clock of workerd stands while it computes, and goes on with the next answer.
    const answeredInMs = async (): Promise<number> => {
      const from = Date.now();
      for (let times = 0; times < 10; times += 1) schemaIssues(itemSchema, "a".repeat(10_000));
      await scheduler.wait(0);
      return (Date.now() - from) / 10;
    };
    expect(await answeredInMs()).toBeLessThan(50);
  });

  it("name a person of the workspace as their partner", async () => {
    const { create, send, house, agent, list } = await openAgent();
    const mia = await house.person("Mia");
    const elsewhere = await (await openHouse()).person("Noor");
    const partner = { label: "notes", type: "core", permission: "Partner" };
    for (const [id, status] of [
      [elsewhere.id, 422],
      [agent.id, 400],
      ["ent_nobody", 400],
    ] as const) {
      expect((await problemIn(await send("POST", "", { ...partner, partnerEntityId: id }))).status).toBe(status);
    }
    expect(await list()).toEqual([]);
    expect(await create({ ...partner, partnerEntityId: mia.id })).toMatchObject({ partnerEntityId: mia.id });
    expect((await send("PATCH", "/notes", { partnerEntityId: elsewhere.id })).status).toBe(422);
    expect((await send("PATCH", "/notes", { partnerEntityId: null })).status).toBe(200);
  });

  it("[D1] the same Idempotency-Key makes and edits one once", async () => {
    const { house, agent, read, history } = await openAgent();
    const once = (path: string, body: object, key = path) =>
      call(`/v1/agents/${agent.id}/blocks${path}`, {
        bearer: house.secretKey,
        body,
        headers: { "idempotency-key": `key${key}` },
      });
    const notes = { label: "notes", type: "core", content: "a" };
    const made = await (await once("", notes)).json();
    expect(await (await once("", notes)).json()).toEqual(made);
    expect((await problemIn(await once("", { ...notes, content: "b" }))).code).toBe("idempotency_mismatch");
    const twice = { operations: [append("b")] };
    const done = await (await once("/notes/operations", twice)).json();
    const again = await once("/notes/operations", twice);
    expect(again.headers.get("idempotency-replayed")).toBe("true");
    expect(await again.json()).toEqual(done);
    expect((await problemIn(await once("/notes/operations", { operations: [append("c")] }))).code).toBe(
      "idempotency_mismatch",
    );
    await once("/notes/operations", twice, "another");
    expect(await read()).toMatchObject({ value: "abb", version: 3 });
    expect(await history()).toHaveLength(3);
  });

  const map = (...fields: object[]) => ({ schema: { type: "map", fields } });
  const inner = { name: "a", schema: { type: "composite", sections: [] } };

  it.each([
    [{ label: "a b" }, 400],
    [{ label: "</block:x>" }, 400],
    [{ type: "hot" }, 400],
    [{ permission: "bogus" }, 400],
    [{ nope: 1 }, 400],
    [map({ name: "a" }, { name: "a" }), 400],
    [map({ name: "a", type: "number", default: "x" }), 422],
    [{ schema: { type: "composite", sections: [inner] } }, 400],
    [{ schema: { type: "list" }, content: "text" }, 422],
    [{ charLimit: 3, content: "text" }, 413],
    [{ charLimit: 200_001 }, 400],
  ])("[S4] $0 is refused, and nothing made (%#)", async (body, status) => {
    const { send, list } = await openAgent();
    const refused = await send("POST", "", { label: "x", type: "core", ...body });
    expect((await problemIn(refused)).status).toBe(status);
    expect(await list()).toEqual([]);
  });

  it.each([
    [[], 400],
    [[{ op: "nope" }], 400],
    [[{ op: "set_text" }], 400],
    [[{ op: "set_text", text: "x", more: 1 }], 400],
    [[{ op: "set_text", text: "x".repeat(200_001) }], 413],
    [[{ op: "set_text", text: "x".repeat(2_000_000) }], 413],
    [[{ op: "replace_text", mode: "nth", old: "a", new: "b" }], 400],
    [[{ op: "edit_range", startLine: 3, endLine: 2, text: "" }], 400],
    [[{ op: "push_item", item: 1 }], 422],
    [[{ op: "patch", patch: "@@ -9,1 +9,1 @@\n-nope\n+x\n" }], 422],
    [[{ op: "replace_text", mode: "regex", old: "(?<=a)b", new: "x" }], 422],
    [[{ op: "append_text", text: "\ud83d" }], 400],
    [[{ op: "replace_text", mode: "all", old: "b", new: "x".repeat(200_000) }, append("y".repeat(200_000))], 413],
    [[{ op: "push_item", item: JSON.parse('{"a": [{"__proto__": {"done": true}}]}') }], 400],
  ])("[S4] operations %# are refused, and nothing changed", async (operations, status) => {
    const { create, send, read } = await openAgent();
    await create({ content: "abc" });
    const refused = await send("POST", "/notes/operations", { operations });
    expect((await problemIn(refused)).status).toBe(status);
    expect(await read()).toMatchObject({ value: "abc", version: 1 });
  });

  it("[D1] survive their object's end, long histories too", async () => {
    const { create, edited, read } = await openAgent();
    await create({ schema: { type: "list", maxItems: 5 } });
    for (let round = 0; round < 70; round += 1) await edited({ op: "push_item", item: round });
    await abortAllDurableObjects();
    expect(await read("notes", "?version=3")).toMatchObject({ value: [0, 1] });
    expect(await edited(Array.from({ length: 70 }, () => ({ op: "undo" })))).toMatchObject({ value: [] });
  });
});
