import { beforeAll, describe, expect, it, vi } from "vitest";
import * as z from "zod";
import { Agent } from "../../src/agent/agent.ts";
import { loadLoro } from "../../src/agent/memory/documents/document.ts";
import { BlockDetail, BlockShare } from "../../src/protocol/block.ts";
import { refuse } from "../../src/shared/errors.ts";
import { call, expectOk } from "../support/house.ts";
import { append, Items, openAgent, set } from "./block-agent.ts";
import { problemIn } from "./operations.ts";

beforeAll(() => loadLoro(), 60_000);

describe("sharing", () => {
  const two = async () => {
    const owner = await openAgent("Archive");
    const reader = await openAgent("Analyst", owner.house);
    const share = (permission?: string) =>
      owner.send("PUT", `/notes/shares/${reader.agent.id}`, permission === undefined ? {} : { permission });
    return { owner, reader, share };
  };

  it("gives another agent a block, with a permission of its own", async () => {
    const { owner, reader, share } = await two();
    await owner.create({ content: "a", permission: "ReadOnly" });
    const { share: made } = await expectOk(z.object({ share: BlockShare }), share());
    expect(made).toMatchObject({ agentId: reader.agent.id, permission: "Append" });
    expect(await reader.list()).toMatchObject([
      {
        label: "notes",
        rendered: "a",
        permission: "Append",
        sharedFrom: { agentId: owner.agent.id, agentName: "Archive" },
      },
    ]);
    expect(await reader.edited(append("b"), { as: "agent" })).toMatchObject({ rendered: "ab", version: 2 });
    expect((await problemIn(await reader.edit(set("x"), { as: "agent" }))).detail).toBe(
      "Permission denied: Overwrite requires ReadWrite permission, but block has Append (set_text)",
    );
    expect((await owner.history())[0]?.author).toBe(`agent:${reader.agent.id}:append`);
    await share("ReadOnly");
    expect((await reader.edit(append("c"), { as: "agent" })).status).toBe(403);
    expect(await reader.read()).toMatchObject({ permission: "ReadOnly", value: "ab" });
    expect((await reader.send("DELETE", "/notes")).status).toBe(404);
  });

  it("[S1] that is refused late takes nothing from a block with the id of a deleted one", async () => {
    const { owner, reader, share } = await two();
    await owner.create({});
    vi.spyOn(Agent.prototype, "noteSharedBlock").mockImplementationOnce(async () => {
      await owner.send("DELETE", "/notes");
      await owner.create({ label: "second" });
      await owner.send("PUT", `/second/shares/${reader.agent.id}`, {});
      return refuse("limit_reached", "It has too many.");
    });
    expect((await share()).ok).toBe(false);
    expect((await expectOk(Items(BlockShare), owner.send("GET", "/second/shares"))).items).toHaveLength(1);
  });

  it("leaves people their rights at the reader's address, and names them", async () => {
    const { owner, reader, share } = await two();
    const mia = await owner.house.person("Mia");
    await owner.create({ content: "a", permission: "ReadOnly" });
    await share("ReadOnly");
    expect(await reader.edited(append("b"))).toMatchObject({ rendered: "ab" });
    const asMia = await call(`/v1/agents/${reader.agent.id}/blocks/notes/operations`, {
      bearer: owner.house.secretKey,
      as: mia.id,
      body: { operations: [append("c")] },
    });
    expect(asMia.status).toBe(200);
    expect((await owner.history()).map(({ author }) => author)).toEqual([
      `human:${mia.id}:append`,
      "system:append",
      "system:create",
    ]);
    expect((await reader.edit(append("d"), { as: "agent" })).status).toBe(403);
    expect(await owner.read()).toMatchObject({ value: "abc", version: 3 });
  });

  it("lets the reader pin it for itself, and change nothing else of how it is kept", async () => {
    const { owner, reader, share } = await two();
    await owner.create({ content: "a" });
    await share("Admin");
    const { block } = await expectOk(
      z.object({ block: BlockDetail }),
      reader.send("PATCH", "/notes", { pinned: true }),
    );
    expect(block).toMatchObject({ pinned: true, value: "a" });
    expect([(await reader.read()).pinned, (await owner.read()).pinned]).toEqual([true, false]);
    for (const changes of [{ type: "core" }, { pinned: false, permission: "Admin" }, { viewport: null }]) {
      expect(await problemIn(await reader.send("PATCH", "/notes", changes))).toMatchObject({
        status: 403,
        detail: '"notes" is shared by Archive: change it there, or only pin it',
      });
    }
    expect((await reader.read()).pinned).toBe(true);
  });

  it("ends at once", async () => {
    const { owner, reader, share } = await two();
    await owner.create({ content: "a" });
    await share("Admin");
    expect((await owner.send("DELETE", `/notes/shares/${reader.agent.id}`)).status).toBe(204);
    expect((await owner.send("DELETE", `/notes/shares/${reader.agent.id}`)).status).toBe(404);
    expect((await reader.send("GET", "/notes")).status).toBe(404);
    expect((await reader.edit(append("b"))).status).toBe(404);
    expect(await reader.list()).toEqual([]);
    await share();
    await owner.send("DELETE", "/notes");
    expect(await reader.list()).toEqual([]);
  });

  it("[S1] reaches no agent of another workspace, and none that was never made", async () => {
    const { owner } = await two();
    const stranger = await openAgent("Stranger");
    await owner.create({});
    expect((await owner.send("PUT", `/notes/shares/${stranger.agent.id}`, {})).status).toBe(404);
    expect((await owner.send("PUT", "/notes/shares/ent_made_up", {})).status).toBe(404);
    const shares = await expectOk(Items(BlockShare), owner.send("GET", "/notes/shares"));
    expect(shares.items).toEqual([]);
    expect(await stranger.list()).toEqual([]);
  });

  it("a deleted owner's blocks are gone for their readers too", async () => {
    const { owner, reader, share } = await two();
    await owner.create({ content: "a" });
    await share();
    const bearer = owner.house.secretKey;
    expect((await call(`/v1/agents/${owner.agent.id}`, { method: "DELETE", bearer })).status).toBe(204);
    expect(await reader.list()).toEqual([]);
  });
});
