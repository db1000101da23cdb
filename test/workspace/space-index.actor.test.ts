import { expect, test } from "vitest";
import type { WorkspaceRpc } from "../../src/protocol/rpc.ts";
import { maxSpaces } from "../../src/workspace/bounds.ts";
import { delivery, ids, inside, openWorkspace } from "./fixture.ts";

const person = async (stub: WorkspaceRpc, name: string): Promise<string> => {
  const id = ids.mint("ent");
  await stub.createEntity(id, { type: "human", name, role: "member" });
  return id;
};

const spacesOf = async (stub: WorkspaceRpc, entityId?: string): Promise<string[]> => {
  const page = await stub.spaces({ limit: 100, entityId });
  if (!page.ok) throw new Error(page.problem.detail);
  return page.value.items.map((space) => space.name);
};

test("the index has the last word of a space, and an older one changes nothing", async () => {
  const { id, stub } = await openWorkspace();
  const [mona, adam] = [await person(stub, "Mona"), await person(stub, "Adam")];
  const spaceId = ids.mint("spc");
  await stub.follow(delivery(id, spaceId, 5, { [mona]: "Mona", [adam]: "Adam" }, { name: "New" }));
  await stub.follow(delivery(id, spaceId, 3, { [mona]: "Mona" }, { name: "Old" }));
  expect(await spacesOf(stub, adam)).toEqual(["New"]);
  expect(await stub.shareSpace(mona, adam)).toMatchObject({ ok: true, value: true });
  await stub.follow(delivery(id, spaceId, 6, { [mona]: "Mona" }, { name: "New" }));
  expect(await spacesOf(stub, adam)).toEqual([]);
  expect(await stub.shareSpace(mona, adam)).toMatchObject({ ok: true, value: false });
});

test("a deleted space does not come back, however late an older word arrives", async () => {
  const { id, stub } = await openWorkspace();
  const mona = await person(stub, "Mona");
  const spaceId = ids.mint("spc");
  await stub.follow(delivery(id, spaceId, 9, {}, { deleted: true }));
  await stub.follow(delivery(id, spaceId, 8, { [mona]: "Mona" }));
  expect(await spacesOf(stub)).toEqual([]);
  expect(await spacesOf(stub, mona)).toEqual([]);
});

test("spaces are listed newest first, page by page, all of them or an entity's own", async () => {
  const { id, stub } = await openWorkspace();
  const mona = await person(stub, "Mona");
  for (const name of ["One", "Two", "Three"]) {
    await stub.follow(delivery(id, ids.mint("spc"), 1, name === "Two" ? {} : { [mona]: "Mona" }, { name }));
  }
  expect(await spacesOf(stub)).toEqual(["Three", "Two", "One"]);
  const first = await stub.spaces({ limit: 1, entityId: mona });
  if (!first.ok || first.value.nextCursor === null) throw new Error("one more page was expected");
  expect(first.value.items.map((space) => space.name)).toEqual(["Three"]);
  const second = await stub.spaces({ limit: 1, entityId: mona, cursor: first.value.nextCursor });
  expect(second).toMatchObject({ ok: true, value: { items: [{ name: "One" }], nextCursor: null } });
});

test("[S1] an entity's list of entities holds itself and those it shares a space with", async () => {
  const { id, stub } = await openWorkspace();
  const [mona, adam, eve] = [await person(stub, "Mona"), await person(stub, "Adam"), await person(stub, "Eve")];
  await stub.follow(delivery(id, ids.mint("spc"), 1, { [mona]: "Mona", [adam]: "Adam" }));
  const visible = await stub.entities({ limit: 10, visibleTo: mona });
  expect(visible).toMatchObject({ ok: true, value: { items: [{ name: "Mona" }, { name: "Adam" }] } });
  expect(await stub.entities({ limit: 10, visibleTo: eve })).toMatchObject({ value: { items: [{ name: "Eve" }] } });
});

test("[S1] a space of another workspace is not followed", async () => {
  const { stub } = await openWorkspace();
  const outcome = await stub.follow(delivery(ids.mint("wsp"), ids.mint("spc"), 1, {}));
  expect(outcome).toMatchObject({ ok: false, problem: { code: "not_found" } });
  expect(await spacesOf(stub)).toEqual([]);
});

test("[B3] a workspace holds maxSpaces living spaces; a repeated or a replaced one is no more", async () => {
  const { id, stub } = await openWorkspace();
  const mine = ids.mint("spc");
  await inside(stub, (_, { storage }) => {
    const numbers = `WITH RECURSIVE n(i) AS (SELECT 2 UNION ALL SELECT i + 1 FROM n WHERE i < ${maxSpaces})`;
    const row = "'spc_' || i, 'Space', 'every_message', 'text', '', 0, 0";
    storage.sql.exec(
      `${numbers} INSERT INTO spaces (id, name, wake_policy, share_origin, created_at, cursor, deleted) SELECT ${row} FROM n`,
    );
  });
  await stub.follow(delivery(id, mine, 1, {}));
  expect(await stub.admitSpace(ids.mint("spc"))).toMatchObject({
    ok: false,
    problem: { code: "limit_reached", detail: expect.stringContaining("(maxSpaces)") },
  });
  expect(await stub.admitSpace(mine)).toMatchObject({ ok: true });
  // The space tells of its end again where it has not heard the answer: that makes room once.
  for (const _ of [1, 2]) await stub.follow(delivery(id, mine, 2, {}, { deleted: true }));
  const next = ids.mint("spc");
  expect(await stub.admitSpace(next)).toMatchObject({ ok: true });
  await stub.follow(delivery(id, next, 0, {}));
  await stub.follow(delivery(id, next, 1, {}));
  expect(await stub.admitSpace(ids.mint("spc"))).toMatchObject({ ok: false });
});
