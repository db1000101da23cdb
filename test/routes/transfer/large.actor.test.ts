import { env, exports } from "cloudflare:workers";
import { describe, expect, test, vi } from "vitest";
import { loadLoro } from "../../../src/agent/memory/documents/document.ts";
import { exportMediaType, ImportedAgent } from "../../../src/protocol/exported-agent.ts";
import { unwrap } from "../../../src/shared/errors.ts";
import { expectOk, type House, ids, openHouse } from "../../support/house.ts";
import { installModel, scriptedModel, step, text, call as toolCall } from "../../support/scripted-model.ts";
import { problemIn } from "../operations.ts";
import { comparable, exported, imported, runsEnded, send, textOf } from "./lived.ts";

const chunked = (house: House, bytes: Uint8Array, size: number): Promise<Response> => {
  let at = 0;
  const body = new ReadableStream<Uint8Array>({
    pull(controller) {
      if (at >= bytes.length) return controller.close();
      controller.enqueue(bytes.slice(at, at + size));
      at += size;
    },
  });
  const headers = { authorization: `Bearer ${house.secretKey}`, "content-type": exportMediaType };
  return exports.default.fetch(new Request("https://colloquy.test/v1/imports", { method: "POST", body, headers }));
};

describe("a large agent", () => {
  test("[B3] with 8,000 facts is imported and exported page by page", async () => {
    const house = await openHouse();
    const createdAt = "2026-02-18T15:00:00.000Z";
    const content = "The kettle of the third kitchen was mended by somebody: ünïcode. ";
    const archival = Array.from({ length: 8000 }, (_, index) => ({
      id: ids.mintOwned("arch", ids.mint("ent")),
      content: `${content.repeat(4)}${index}`,
      metadata: {},
      source: {},
      createdAt,
    }));
    const head = { id: ids.mint("ent"), config: { name: "Keeper" } };
    const envelope = { kind: "agent", format: "colloquy.agent", version: 2, exportedAt: createdAt, agent: head };
    const lines = [envelope, ...archival.map((row) => ({ kind: "archival", row }))];
    const bytes = new TextEncoder().encode(textOf(lines));
    expect(bytes.length).toBeGreaterThan(3_000_000);
    const { agent, imported: report } = await expectOk(ImportedAgent, chunked(house, bytes, 4999));
    expect(report.counts.archival).toBe(8000);
    const again = await exported(house, agent.id);
    expect(again.agent.archival.map((entry) => entry.content)).toEqual(archival.map((entry) => entry.content));
  }, 60_000);

  test("keeps every version of a block with a long history; damaged bytes are refused", async () => {
    await loadLoro();
    const house = await openHouse();
    const { id } = await house.agent({ name: "Keeper" });
    await send(house, `/v1/agents/${id}/blocks`, { label: "log", type: "log", schema: { type: "log" } });
    const stub = env.AGENT.getByName(id);
    for (let edit = 0; edit < 70; edit += 1) {
      const operations = [{ op: "append_log_entry" as const, entry: { message: `entry ${edit}` } }];
      unwrap(await stub.editBlock(house.workspaceId, "log", { operations, as: "system" }, "system"));
    }
    const document = await exported(house, id);
    const [log] = document.agent.blocks;
    expect(log?.snapshot).toHaveLength(1);
    expect(log?.versions.filter(({ update }) => update !== undefined)).toHaveLength(7);
    const other = await openHouse("Elsewhere");
    const { agent } = await expectOk(ImportedAgent, imported(other, document));
    const selves = [id, agent.id];
    expect(comparable(await exported(other, agent.id), selves)).toEqual(comparable(document, selves));
    for (const version of [1, 2, 40, 64, 71]) {
      const path = `/blocks/log?version=${version}`;
      expect(await send(other, `/v1/agents/${agent.id}${path}`)).toEqual(await send(house, `/v1/agents/${id}${path}`));
    }
    const undo = { operations: [{ op: "undo" }] };
    const undone = await send(other, `/v1/agents/${agent.id}/blocks/log/operations`, undo);
    expect(undone).toMatchObject({ rendered: expect.not.stringContaining("entry 69") });
    const bytes = Buffer.from(log?.snapshot[0] ?? "", "base64");
    for (const at of [0, 20, Math.floor(bytes.length / 2), bytes.length - 1]) {
      const damaged = Buffer.from(bytes);
      damaged[at] = (damaged[at] ?? 0) ^ 0x10;
      const copy = structuredClone(document);
      copy.agent.config.name = "Damaged";
      if (copy.agent.blocks[0]) copy.agent.blocks[0].snapshot = [damaged.toString("base64")];
      expect(await problemIn(await imported(other, copy)), String(at)).toMatchObject({
        code: "invalid_request",
        issues: [{ path: "block log" }],
      });
    }
  }, 60_000);

  test.each(["consciousness", "timeline"])(
    "[R1] in the middle of a run exports that run as canceled: %s",
    async (continuity) => {
      const house = await openHouse();
      const mona = await house.person("Mona");
      const { id } = await house.agent({ name: "Analyst", continuity, messaging: "threaded" });
      const space = await house.space("Kitchen", [mona, { id }]);
      const asked = Promise.withResolvers<void>();
      let heard = false;
      const enter = continuity === "timeline" ? [] : [step(toolCall("enter_space", { spaceId: space.id }))];
      const undo = installModel(
        scriptedModel(async (_, index) => {
          const known = enter[index];
          if (known) return known;
          heard = true;
          await asked.promise;
          return step(text("Done."));
        }),
      );
      try {
        await house.say(space.id, mona, "@Analyst think of something");
        await vi.waitUntil(() => heard);
        const document = await exported(house, id);
        expect(document.agent.left).toMatchObject({ runs: 1, events: 1 });
        expect(document.agent.runs).toMatchObject([
          { status: "canceled", kept: false, reason: "it was under way when the agent was exported" },
        ]);
        const other = await openHouse("Elsewhere");
        const { agent } = await expectOk(ImportedAgent, imported(other, document));
        expect(agent.activity).toMatchObject({ state: "idle", waiting: { events: 0 } });
        const selves = [id, agent.id];
        expect(comparable(await exported(other, agent.id), selves)).toEqual(comparable(document, selves));
      } finally {
        asked.resolve();
        await runsEnded(house, id, 1);
        undo();
      }
    },
  );
});
