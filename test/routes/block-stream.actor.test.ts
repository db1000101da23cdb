import { evictDurableObject, runDurableObjectAlarm, runInDurableObject } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { afterEach, beforeAll, describe, expect, it, vi } from "vitest";
import { loadLoro } from "../../src/agent/memory/documents/document.ts";
import { listenToBlock } from "../support/block-listener.ts";
import { call, openHouse } from "../support/house.ts";
import { problemIn } from "./operations.ts";

afterEach(() => {
  vi.useRealTimers();
});

beforeAll(() => loadLoro(), 60_000);

const scene = async () => {
  const house = await openHouse();
  const agent = await house.agent({ name: "Analyst" });
  const at = `/v1/agents/${agent.id}/blocks`;
  const bearer = house.secretKey;
  await call(at, { bearer, body: { label: "notes", type: "working", content: "a" } });
  const stub: unknown = env.AGENT.getByName(agent.id);
  const open = (headers: Record<string, string> = { authorization: `Bearer ${bearer}` }, query = "") =>
    call(`${at}/notes/stream${query}`, { headers: { upgrade: "websocket", ...headers } });
  return {
    ...{ house, agent, at },
    stub: stub as DurableObjectStub,
    append: (text: string, more: object = {}) =>
      call(`${at}/notes/operations`, { bearer, body: { operations: [{ op: "append_text", text }], ...more } }),
    patch: (body: object) => call(`${at}/notes`, { method: "PATCH", bearer, body }),
    remove: () => call(`${at}/notes`, { method: "DELETE", bearer }),
    open,
    /** By the workspace's key, or by a token. */
    watch: async (token?: string) => {
      const { webSocket, status } = await (token === undefined ? open() : open({}, `?token=${token}`));
      if (!webSocket) throw new Error(`no socket: ${status}`);
      return listenToBlock(webSocket);
    },
  };
};

describe("who watches a block", () => {
  it("gets the block as it is, then each change once, by any author", async () => {
    const { watch, append, patch, remove, agent } = await scene();
    const [one, other] = [await watch(), await watch()];
    await append("b");
    await append("c", { as: "agent" });
    await patch({ description: "Mine" });
    await one.until(4);
    expect(one.frames).toMatchObject([
      { type: "welcome", cursor: 1, block: { rendered: "a", value: "a", version: 1 } },
      { type: "block.changed", cursor: 2, by: "system", block: { rendered: "ab", value: "ab" } },
      { type: "block.changed", cursor: 3, by: `agent:${agent.id}`, block: { rendered: "abc" } },
      { type: "block.changed", cursor: 3, block: { description: "Mine", value: "abc" } },
    ]);
    await remove();
    await other.untilClosed();
    expect(other.frames.at(-1)).toMatchObject({ type: "block.deleted", label: "notes", by: "system" });
    expect(other.heard.closed).toBe(4404);
  });

  it("is closed with the agent", async () => {
    const { watch, house, agent } = await scene();
    const watcher = await watch();
    await call(`/v1/agents/${agent.id}`, { method: "DELETE", bearer: house.secretKey });
    expect(await watcher.untilClosed()).toBe(4404);
  });

  it("gets no frame for an edit that was refused or changed nothing", async () => {
    const { watch, append } = await scene();
    const watcher = await watch();
    await append("x".repeat(6000));
    await append("");
    await append("b");
    await watcher.until(2);
    expect(watcher.frames.map((frame) => ("cursor" in frame ? frame.cursor : 0))).toEqual([1, 2]);
  });

  it("goes on after the agent has slept", async () => {
    const { watch, append, stub } = await scene();
    const watcher = await watch();
    await watcher.until(1);
    await evictDurableObject(stub);
    watcher.socket.send("ping");
    await append("b");
    await watcher.until(2);
    expect(watcher.heard.pongs).toBe(1);
    expect(watcher.frames[1]).toMatchObject({ type: "block.changed", block: { rendered: "ab" } });
  });

  it("[S4] is told that this stream takes no frames, and closed if it goes on", async () => {
    const { watch } = await scene();
    const watcher = await watch();
    watcher.socket.send("{");
    await watcher.until(2);
    expect(watcher.frames[1]).toMatchObject({ type: "error", code: "bad_frame" });
    for (let sent = 0; sent < 20; sent += 1) watcher.socket.send("again");
    await watcher.untilClosed();
    expect(watcher.heard.closed).toBe(4400);
  });

  it("[S5] closes once its rights are gone, and not before", async () => {
    const { house, stub, watch } = await scene();
    const boss = await house.person("Boss", "admin");
    const watcher = await watch(boss.token);
    const byKey = await watch();
    vi.useFakeTimers({ toFake: ["Date"] });
    const pass = async (): Promise<void> => {
      vi.setSystemTime(Date.now() + 46_000);
      await runDurableObjectAlarm(stub);
    };
    await pass();
    expect([watcher.heard.closed, byKey.heard.closed]).toEqual([undefined, undefined]);
    await call(`/v1/entities/${boss.id}`, { method: "PATCH", bearer: house.secretKey, body: { role: "member" } });
    await pass();
    expect(await watcher.untilClosed()).toBe(4401);
    expect(byKey.heard.closed).toBeUndefined();
  });

  it("[S5] is closed when its token expires, not later", async () => {
    const { house, stub, watch } = await scene();
    const boss = await house.person("Boss", "admin");
    const watcher = await watch(await house.token(boss.id, 10));
    const wakesIn = await runInDurableObject(
      stub,
      async (_, state) => Number(await state.storage.getAlarm()) - Date.now(),
    );
    expect(wakesIn).toBeLessThanOrEqual(10_000);
    vi.useFakeTimers({ toFake: ["Date"] });
    vi.setSystemTime(Date.now() + 10_000);
    await runDurableObjectAlarm(stub);
    expect(await watcher.untilClosed()).toBe(4401);
  });

  it("must have the workspace's rights, and a WebSocket", async () => {
    const { house, open, at } = await scene();
    const mia = await house.person("Mia");
    expect((await problemIn(await open({ authorization: `Bearer ${mia.token}` }))).status).toBe(403);
    expect((await problemIn(await open({}, `?token=${mia.token}`))).status).toBe(403);
    expect((await problemIn(await open({}))).status).toBe(401);
    const bearer = house.secretKey;
    expect((await problemIn(await call(`${at}/notes/stream`, { bearer }))).status).toBe(426);
    const nothing = await call(`${at}/nope/stream`, { bearer, headers: { upgrade: "websocket" } });
    expect((await problemIn(nothing)).status).toBe(404);
  });
});
