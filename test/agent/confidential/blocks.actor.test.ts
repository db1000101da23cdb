import { env } from "cloudflare:workers";
import { beforeAll, describe, expect, test, vi } from "vitest";
import { loadLoro } from "../../../src/agent/memory/documents/document.ts";
import type { Permission } from "../../../src/protocol/block.ts";
import { type Outcome, unwrap } from "../../../src/shared/errors.ts";
import { ownPart } from "../../../src/shared/ids.ts";
import { rowsWith } from "../../support/rows.ts";
import { call } from "../../support/scripted-model.ts";
import { agentStub, ids, undoLater } from "../fixture.ts";
import { dumpOf, openTwoMinds } from "./scene.ts";

undoLater();

// It takes its time under vite, which makes it anew for each file.
beforeAll(() => loadLoro(), 60_000);

const append = (label: string, text: string, more: object = {}) =>
  call("block_edit", { label, operations: [{ op: "append_text", text }], ...more });

const problemOf = (outcome: Outcome<unknown>): string =>
  outcome.ok ? "none" : `${outcome.problem.code}: ${outcome.problem.detail}`;

const refusal = "is an open block; a run of a confidential space may not change it; make one of your own";

describe.each(["consciousness", "timeline"] as const)("a compartment of a %s", (continuity) => {
  test("[C18] reads the blocks of the open mind and changes none, refused by name", async () => {
    const { open, inside, run, analyst, secret } = await openTwoMinds({ continuity });
    await open.create({ label: "persona", type: "core", content: "You are Ada." });
    await open.create({ label: "plan", content: "Ship on Monday.", permission: "Admin" });
    await run(analyst);
    const before = await dumpOf(analyst);
    const { results, inputs } = await run(
      secret,
      call("block_list", {}),
      call("block_load", { label: "plan" }),
      append("plan", " No."),
      call("block_pin", { label: "plan" }),
      call("block_archive", { label: "plan" }),
      call("block_viewport", { label: "plan", startLine: 1, displayLines: 1 }),
      call("block_share", { label: "plan", space: "Board" }),
      call("block_delete", { label: "persona" }),
    );
    const [first = []] = inputs;
    const shown = JSON.stringify(continuity === "consciousness" ? first[0] : first);
    expect(shown).toContain('<block:persona permission=\\"ReadOnly\\" shared_from=\\"Analyst\\">');
    expect(shown).toContain("You are Ada.");
    expect(JSON.stringify(first)).toContain('\\"plan\\" is');
    expect(results[0]).toContain('"label":"plan"');
    expect(results[1]).toContain("Ship on Monday.");
    for (const refused of results.slice(2)) expect(refused).toContain(refusal);
    expect(results.slice(2)).toHaveLength(6);
    expect(await dumpOf(analyst)).toEqual(before);
    expect((await inside.blocks()).map(({ label, permission }) => [label, permission])).toEqual([
      ["persona", "ReadOnly"],
      ["plan", "ReadOnly"],
    ]);
  });

  test("[C17] [C18] makes its own blocks, under open labels too, unknown to the open mind", async () => {
    const { open, inside, run, analyst, secret } = await openTwoMinds({ continuity });
    await open.create({ label: "plan", content: "Ship on Monday." });
    const { results } = await run(
      secret,
      call("block_create", { label: "plan", type: "core", content: "Sell in March." }),
      append("plan", " Or April."),
      call("block_load", { label: "plan" }),
      call("block_load", { label: "plan", from: "Analyst" }),
      append("plan", " No.", { from: "Analyst" }),
      call("block_create", { label: "names", content: "Project Falcon" }),
    );
    expect(results[2]).toContain("Sell in March. Or April.");
    expect(results[3]).toContain("Ship on Monday.");
    expect(results[4]).toContain(refusal);
    const kept = (await inside.blocks()).map(({ label, sharedFrom }) => [label, sharedFrom?.agentName]);
    expect(kept.sort()).toEqual([
      ["names", undefined],
      ["plan", undefined],
      ["plan", "Analyst"],
    ]);
    const later = await run(secret);
    expect(JSON.stringify(later.inputs)).toContain("Sell in March. Or April.");
    const elsewhere = await run(analyst, call("block_list", {}), call("block_load", { label: "names" }));
    expect(JSON.stringify(elsewhere)).not.toMatch(/Sell in March|Falcon/);
    expect(elsewhere.results[1]).toContain("there is no block");
    expect((await open.blocks()).map(({ label }) => label)).toEqual(["plan"]);
    expect(JSON.stringify(await dumpOf(analyst))).not.toMatch(/Sell in March|Falcon/);
  });

  test("[C18] knows open blocks as they are when its run begins, new and deleted ones too", async () => {
    const { open, run, secret, workspaceId } = await openTwoMinds({ continuity });
    await open.create({ label: "persona", type: "core", content: "You are Ada." });
    await open.create({ label: "mood", type: "core", content: "Cheerful." });
    await run(secret);
    const operations = [{ op: "set_text", text: "You are Bea." } as const];
    unwrap(await open.stub().editBlock(workspaceId, "persona", { operations, as: "system" }, "system"));
    unwrap(await open.stub().deleteBlock(workspaceId, "mood", "system", "system"));
    await open.create({ label: "rules", type: "core", content: "Be brief." });
    const { inputs, results } = await run(secret, call("block_load", { label: "mood" }));
    const last = JSON.stringify(inputs.at(-1));
    expect(last).toContain("You are Bea.");
    expect(last).toContain("Be brief.");
    if (continuity === "timeline") expect(last).not.toMatch(/You are Ada|Cheerful/);
    else expect(last).toContain('\\"mood\\" ');
    expect(results[0]).toContain("there is no block");
  });

  test("[L4] forgets an open block as it is deleted, and not with its next run", async () => {
    const { open, run, secret, workspaceId } = await openTwoMinds({ continuity });
    await open.create({ label: "fruit", type: "archival", content: "Ann likes the quinces of the old orchard." });
    await run(secret);
    const held = () => rowsWith(agentStub(secret), "quinces");
    expect(await held()).toContainEqual(expect.stringMatching(/^shared_blocks /));
    unwrap(await open.stub().deleteBlock(workspaceId, "fruit", "system", "system"));
    await vi.waitFor(async () => expect(await held()).toEqual([]));
  });

  test("[C17] [C18] has others' blocks where these say so, and hears nothing of the rest", async () => {
    const scene = await openTwoMinds({ continuity });
    const { house, workspaceId, analyst, secret, inside, run, of } = scene;
    const scribe = await house.agent({ name: "Scribe" });
    const theirs = of(scribe);
    await theirs.create({ label: "shared", content: "For all." });
    await theirs.create({ label: "vault", content: "For Board too.", confidential: "allowed" });
    for (const label of ["shared", "vault"]) {
      const grant = { granteeId: analyst.id, permission: "ReadWrite" } as const;
      unwrap(await theirs.stub().shareBlock(workspaceId, label, grant));
    }
    const { results, inputs } = await run(
      secret,
      call("block_list", {}),
      append("vault", " Falcon."),
      append("shared", " Falcon."),
      call("block_load", { label: "shared" }),
    );
    expect(JSON.stringify(inputs[0])).toContain('\\"vault\\" is');
    expect(JSON.stringify(inputs[0])).not.toContain('\\"shared\\" is');
    expect(results[0]).not.toContain('"label":"shared"');
    expect(results[1]).toContain('"success":true');
    for (const gone of results.slice(2)) expect(gone).toContain('there is no block \\"shared\\"');
    expect(unwrap(await theirs.stub().block(workspaceId, "vault")).value).toBe("For Board too. Falcon.");
    expect(unwrap(await theirs.stub().block(workspaceId, "shared")).value).toBe("For all.");
    // An owner asked for it by name answers the same.
    const asked = await theirs.stub().block(workspaceId, "shared", undefined, analyst.id, true);
    expect(problemOf(asked)).toMatch(/^not_found/);
    const by = { kind: "agent", agentId: analyst.id, name: "Analyst", confidential: true } as const;
    const edit = { operations: [{ op: "append_text", text: "x" } as const], by };
    expect(problemOf(await theirs.stub().editSharedBlock(workspaceId, "shared", edit))).toMatch(/^not_found/);
    unwrap(await theirs.stub().updateBlock(workspaceId, "vault", { confidential: null }, "system"));
    expect(unwrap(await theirs.stub().block(workspaceId, "vault"))).not.toHaveProperty("confidential");
    expect((await inside.blocks()).map(({ label }) => label)).toEqual([]);
    expect((await of(analyst).blocks()).map(({ label }) => label)).toEqual(["shared", "vault"]);
  });
});

test("[C17] a block of another agent names what woke its writer, but for a compartment", async () => {
  const { house, workspaceId, analyst, secret, boardId, alpha, inside, run, of } = await openTwoMinds();
  const scribe = await house.agent({ name: "Scribe" });
  const theirs = of(scribe);
  await theirs.create({ label: "vault", content: "For all.", confidential: "allowed" });
  const grant = { granteeId: analyst.id, permission: "ReadWrite" } as const;
  unwrap(await theirs.stub().shareBlock(workspaceId, "vault", grant));
  await run(secret, append("vault", " Falcon."), call("block_create", { label: "own", content: "Falcon" }));
  await run(analyst, append("vault", " Heron."));
  const sourcesIn = async (mind: typeof theirs, label: string) => {
    const { items } = unwrap(await mind.stub().blockHistory(workspaceId, label, { limit: 9 }));
    return items.map(({ sources = [] }) => sources.map((id) => ids.ownerOf("msg", id)));
  };
  expect(await sourcesIn(theirs, "vault")).toEqual([[alpha.id], [], []]);
  expect(await sourcesIn(inside, "own")).toEqual([[boardId]]);
  const [own] = unwrap(await inside.stub().blockHistory(workspaceId, "own", { limit: 1 })).items;
  expect(await rowsWith(agentStub(scribe), ownPart(own?.sources?.[0] ?? ""))).toEqual([]);
  const written = unwrap(await theirs.stub().blockHistory(workspaceId, "vault", { limit: 1 })).items;
  const messageId = written[0]?.sources?.[0] ?? "";
  expect(unwrap(await theirs.stub().related(workspaceId, messageId))).toEqual([{ kind: "block", label: "vault" }]);
});

describe("a block that is shared with a confidential space", () => {
  const grantTo = (granteeId: string, permission: Permission = "Admin") => ({ granteeId, permission });

  test("[C18] of a compartment: with its own space alone, whose people use it", async () => {
    const { inside, open, run, house, workspaceId, ann, analyst, secret, alpha, boardId } = await openTwoMinds();
    const scribe = await house.agent({ name: "Scribe" });
    await house.space("Desk", [analyst, scribe]);
    const { results } = await run(
      secret,
      call("block_create", { label: "names", content: "Falcon" }),
      call("block_share", { label: "names", space: "Board" }),
      call("block_create", { label: "others", content: "Heron" }),
    );
    expect(results[1]).toContain('"success":true');
    for (const to of [scribe.id, alpha.id]) {
      const refused = problemOf(await inside.stub().shareBlock(workspaceId, "others", grantTo(to)));
      expect(refused).toMatch(/^forbidden: "others" is a block of a confidential space: it is shared with/);
    }
    const by = {
      kind: "person",
      spaceId: boardId,
      author: `human:${ann.id}`,
      name: "Ann",
      confidential: true,
    } as const;
    const edit = { operations: [{ op: "append_text", text: " and Heron" } as const], by };
    expect(unwrap(await inside.stub().editSharedBlock(workspaceId, "names", edit)).value).toBe("Falcon and Heron");
    expect(unwrap(await inside.stub().spaceBlocks(workspaceId, boardId))).toMatchObject([
      { label: "names", permission: "ReadWrite", sharedFrom: { agentId: analyst.id } },
    ]);
    expect(unwrap(await open.stub().spaceBlocks(workspaceId, boardId))).toEqual([]);
  });

  test("[C19] no open run has people or agents of a confidential space write a block", async () => {
    const { open, of, run, house, workspaceId, ann, analyst, boardId } = await openTwoMinds();
    const scribe = await house.agent({ name: "Scribe" });
    await house.space("Desk", [analyst, scribe]);
    const id = ids.mint("spc");
    const settings = { name: "Cellar", wakePolicy: "addressed", shareOrigin: "none", confidential: true } as const;
    unwrap(await env.SPACE.getByName(id).create({ id, workspaceId, settings, members: [ann, scribe] }));
    const spacesOf = async (of: { id: string }) =>
      unwrap(await env.AGENT.getByName(of.id).confidentialSpaces(workspaceId));
    await expect.poll(() => spacesOf(scribe)).toEqual([id]);
    await expect.poll(() => spacesOf(analyst)).toEqual([boardId]);
    for (const label of ["vault", "plan"]) {
      await open.create({ label, ...(label === "vault" ? { confidential: "allowed" } : {}) });
    }
    const share = (label: string, to: object) => call("block_share", { label, permission: "ReadWrite", ...to });
    const { results } = await run(
      analyst,
      share("vault", { space: "Board" }),
      share("vault", { agent: "Scribe" }),
      share("vault", { agent: "Scribe", permission: "ReadOnly" }),
      share("plan", { space: "Board" }),
      share("plan", { agent: "Scribe" }),
    );
    for (const refused of results.slice(0, 2)) expect(refused).toContain("share it ReadOnly, or have an admin who is");
    for (const done of results.slice(2)) expect(done).toContain('"success":true');
    expect(unwrap(await of(analyst).stub().blockGrants(workspaceId, "vault"))).toMatchObject([
      { granteeId: scribe.id, permission: "ReadOnly" },
    ]);
  });

  test("[C18] of an open mind: its people read it, and write it only if it says so", async () => {
    const { open, workspaceId, ann, analyst, alpha, boardId } = await openTwoMinds();
    await open.create({ label: "plan", content: "Ship on Monday." });
    const edit = (spaceId: string, confidential?: boolean) => {
      const by = { kind: "person", spaceId, author: `human:${ann.id}`, name: "Ann", confidential } as const;
      const operations = [{ op: "append_text", text: "!" } as const];
      return env.AGENT.getByName(analyst.id).editSharedBlock(workspaceId, "plan", { operations, by });
    };
    for (const spaceId of [alpha.id, boardId])
      unwrap(await open.stub().shareBlock(workspaceId, "plan", grantTo(spaceId)));
    const seenBy = async (spaceId: string) => {
      const [listed] = unwrap(await open.stub().spaceBlocks(workspaceId, spaceId));
      const read = unwrap(await open.stub().block(workspaceId, "plan", undefined, spaceId));
      return [listed?.permission, read.permission];
    };
    expect(await seenBy(alpha.id)).toEqual(["Admin", "Admin"]);
    expect(await seenBy(boardId)).toEqual(["ReadOnly", "ReadOnly"]);
    unwrap(await edit(alpha.id));
    expect(problemOf(await edit(boardId))).toMatch(
      /^forbidden: "plan" is an open block, which a confidential space only reads/,
    );
    // The space became confidential, and the agent has not heard of it yet.
    expect(problemOf(await edit(alpha.id, true))).toMatch(/^forbidden: "plan" is an open block/);
    const key = { kind: "key", workspaceId, keyId: "key" } as const;
    unwrap(await alpha.stub().update(key, { confidential: true }));
    await expect.poll(() => seenBy(alpha.id)).toEqual(["ReadOnly", "ReadOnly"]);
    expect(problemOf(await edit(alpha.id))).toMatch(/^forbidden: "plan" is an open block/);
    unwrap(await open.stub().updateBlock(workspaceId, "plan", { confidential: "allowed" }, "system"));
    expect(await seenBy(boardId)).toEqual(["Admin", "Admin"]);
    expect(unwrap(await edit(boardId, true)).value).toBe("Ship on Monday.!!");
  });
});
