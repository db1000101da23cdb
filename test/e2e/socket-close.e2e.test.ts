import { once } from "node:events";
import { expect, test } from "vitest";
import { WebSocket } from "ws";
import { closeCodes, pingText } from "../../src/protocol/events.ts";
import { houseForFile } from "./support/for-file.ts";

/** Closing a socket takes ten seconds where one side leaves the other's close unanswered. */
const soonMs = 1000;

const house = await houseForFile();
const ann = await house.addPerson("Ann");
const bob = await house.addPerson("Bob");

/** A socket that has sent one frame, as the client does when it opens. */
const openSocket = async (path: string, token: string): Promise<WebSocket> => {
  const headers = { authorization: `Bearer ${token}` };
  const socket = new WebSocket(`${house.url.replace(/^http/, "ws")}${path}`, { headers });
  await once(socket, "message");
  socket.send(pingText);
  await once(socket, "message");
  return socket;
};

/** How long the connection stays after `close`, and the code that it ends with. */
const ending = async (socket: WebSocket, close: () => unknown): Promise<{ code: unknown; tookMs: number }> => {
  const ended = once(socket, "close");
  const begunAt = performance.now();
  await close();
  const [code] = await ended;
  return { code, tookMs: performance.now() - begunAt };
};

const expectSoon = ({ code, tookMs }: { code: unknown; tookMs: number }, wanted: number): void => {
  expect(code).toBe(wanted);
  expect(tookMs).toBeLessThan(soonMs);
};

test("a space's socket ends at once, whichever side closes it", async () => {
  const spaceId = await house.addSpace("Kitchen", [ann.id, bob.id]);
  const path = `/v1/spaces/${spaceId}/stream`;
  const [first, second] = [await openSocket(path, ann.token), await openSocket(path, bob.token)];
  expectSoon(await ending(first, () => first.close(1000)), 1000);
  const removed = await ending(second, () => house.api.delete(`/v1/spaces/${spaceId}/members/${bob.id}`));
  expectSoon(removed, closeCodes.removed);
});

test("a block's socket ends at once, whichever side closes it", async () => {
  const agentId = await house.addAgent({ name: "Keeper" });
  await house.api.post(`/v1/agents/${agentId}/blocks`, { label: "notes", type: "core", content: "Calm" });
  const path = `/v1/agents/${agentId}/blocks/notes/stream`;
  const [first, second] = [await openSocket(path, house.secretKey), await openSocket(path, house.secretKey)];
  expectSoon(await ending(first, () => first.close(1000)), 1000);
  const deleted = await ending(second, () => house.api.delete(`/v1/agents/${agentId}/blocks/notes`));
  expectSoon(deleted, closeCodes.spaceDeleted);
});
