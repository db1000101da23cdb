import { describe, expect, it } from "vitest";
import { verdictOn } from "../../../../src/agent/memory/documents/permission.ts";
import { type Json, type Permission, permissions } from "../../../../src/protocol/block.ts";
import { agent, block, system } from "./block.ts";

/** The table of seed 004, cell by cell: what each permission lets an agent do, on every schema. */
const append: Permission[] = ["Append", "ReadWrite", "Admin"];
const overwrite: Permission[] = ["ReadWrite", "Admin"];
const remove: Permission[] = ["Admin"];
const asking: Permission[] = ["Partner", "Human"];

const text = { schema: { type: "text" }, content: "one\ntwo\n" };
const fields = [{ name: "name" }, { name: "tags", type: "list" }, { name: "seen", type: "counter" }];
const map = { schema: { type: "map", fields }, content: { tags: ["a"] } };
const list = { schema: { type: "list" }, content: ["a", "b"] };
const log = { schema: { type: "log" }, content: ["a"] };

type Schema = { type: string; sections?: unknown };
type Cell = [{ schema: Schema; content: Json }, { op: string; [name: string]: unknown }, Permission[], string];
const cells: Cell[] = [
  [text, { op: "append_text", text: "x" }, append, "Append requires Append"],
  [text, { op: "set_text", text: "x" }, overwrite, "Overwrite requires ReadWrite"],
  [text, { op: "replace_text", old: "one", new: "x" }, overwrite, "Overwrite requires ReadWrite"],
  [text, { op: "edit_range", startLine: 1, endLine: 1, text: "x" }, overwrite, "Overwrite requires ReadWrite"],
  [text, { op: "patch", patch: "@@ -1,1 +1,1 @@\n-one\n+x\n" }, overwrite, "Overwrite requires ReadWrite"],
  [map, { op: "append_to_list", field: "tags", value: "b" }, append, "Append requires Append"],
  [map, { op: "set_field", field: "name", value: "b" }, overwrite, "Overwrite requires ReadWrite"],
  [map, { op: "increment", field: "seen", by: 1 }, overwrite, "Overwrite requires ReadWrite"],
  [map, { op: "remove_from_list", field: "tags", index: 0 }, remove, "Delete requires Admin"],
  [list, { op: "push_item", item: "x" }, append, "Append requires Append"],
  [list, { op: "insert_item", index: 0, item: "x" }, append, "Append requires Append"],
  [list, { op: "set_item", index: 0, item: "x" }, overwrite, "Overwrite requires ReadWrite"],
  [list, { op: "move_item", from: 0, to: 1 }, overwrite, "Overwrite requires ReadWrite"],
  [list, { op: "delete_item", index: 0 }, remove, "Delete requires Admin"],
  [log, { op: "append_log_entry", entry: "x" }, append, "Append requires Append"],
];

/** The same in a section of a composite. */
const inSection = cells.map(([{ schema, content }, operation, ...expected]): Cell => {
  const composite = { type: "composite", sections: [{ name: "part", schema }] };
  return [{ schema: composite, content: { part: content } }, { ...operation, section: "part" }, ...expected];
});

describe.each(permissions)("with the permission %s", (permission) => {
  it.each([...cells, ...inSection].map((cell) => [cell[0].schema.type, cell[1].op, cell] as const))(
    "an agent on a %s: %s",
    (_, op, [{ schema, content }, operation, allowed, refusal]) => {
      const held = block(schema, { content });
      const isDelete = allowed === remove;
      if (allowed.includes(permission)) {
        held.edit(operation, { by: agent(permission) });
        expect(held.version()).toBe(2);
        return;
      }
      expect(() => held.edit(operation, { by: agent(permission) })).toThrow(
        `Permission denied: ${refusal} permission, but block has ${permission} (${op})`,
      );
      expect(held.version()).toBe(1);
      const consents = asking.includes(permission) && !isDelete;
      if (consents) held.edit(operation, { by: agent(permission, true) });
      else expect(() => held.edit(operation, { by: agent(permission, true) })).toThrow("Permission denied");
      expect(held.version()).toBe(consents ? 2 : 1);
    },
  );

  it.each(cells.map((cell) => [cell[1].op, cell] as const))(
    "the runtime passes: %s",
    (_, [{ schema, content }, operation]) => {
      const held = block(schema, { content });
      held.edit(operation, { by: system });
      expect(held.version()).toBe(2);
    },
  );

  it("an agent takes back what it changed, where it may overwrite", () => {
    const held = block({ type: "text" });
    held.edit({ op: "append_text", text: "x" }, { by: agent("Admin") });
    const undo = () => held.edit({ op: "undo" }, { by: agent(permission) });
    if (overwrite.includes(permission)) undo();
    else expect(undo).toThrow(`Overwrite requires ReadWrite permission, but block has ${permission} (undo)`);
    expect(held.value()).toBe(overwrite.includes(permission) ? "" : "x");
  });
});

it("only Admin deletes a block, and no consent does", () => {
  expect(permissions.filter((permission) => verdictOn("delete_block", permission) === "allowed")).toEqual(["Admin"]);
  expect(permissions.filter((permission) => verdictOn("delete_block", permission) === "consent")).toEqual([]);
});

it("read-only fields refuse agents whatever the permission, and nobody else", () => {
  const fields = [
    { name: "readonly_field", type: "list", readOnly: true },
    { name: "writable_field", type: "text" },
  ];
  const held = block({ type: "map", fields });
  held.edit({ op: "set_field", field: "writable_field", value: "value" }, { by: agent("Admin") });
  for (const operation of [
    { op: "set_field", value: ["x"] },
    { op: "append_to_list", value: "x" },
    { op: "remove_from_list", index: 0 },
  ]) {
    expect(() => held.edit({ ...operation, field: "readonly_field" }, { by: agent("Admin") })).toThrow(
      "Field 'readonly_field' is read-only and cannot be modified by agent",
    );
  }
  held.edit({ op: "set_field", field: "readonly_field", value: ["system_value"] });
  expect(held.value()).toEqual({ writable_field: "value", readonly_field: ["system_value"] });
});
