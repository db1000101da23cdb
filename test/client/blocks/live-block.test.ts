import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { afterEach, expect, test } from "vitest";
import { WebSocketServer } from "ws";
import { type EditRequest, openLiveBlock } from "../../../src/client/blocks/live-block.ts";
import { createCredentials } from "../../../src/client/credentials.ts";
import { ColloquyError } from "../../../src/shared/errors.ts";
import { until } from "../../support/node/until.ts";
import { listBlock } from "./list-block.ts";

const block = listBlock(1, ["bread"]);

const closing: (() => void)[] = [];
afterEach(() => {
  for (const close of closing.splice(0)) close();
});

/** A live block whose first edit fails with `failure`, and the requests that it sent. */
const opened = async (failure: ColloquyError) => {
  const server = new WebSocketServer({ port: 0, host: "127.0.0.1" });
  server.on("connection", (socket) => socket.send(JSON.stringify({ type: "welcome", cursor: 1, block })));
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  const sent: { key: string; request: EditRequest }[] = [];
  const live = openLiveBlock({
    by: "human:ent_me",
    credentials: createCredentials("token"),
    streamAddress: () => `ws://127.0.0.1:${port}/`,
    read: async () => block,
    edit: async (request, key) => {
      sent.push({ key, request });
      if (sent.length === 1) throw failure;
      return { version: 3, value: ["bread", "tea", "milk"], rendered: "", results: [] };
    },
  });
  closing.push(() => {
    live.close();
    server.close();
  });
  await until(live, (state) => state.block !== null);
  const tell = (frame: unknown): void => {
    for (const socket of server.clients) socket.send(JSON.stringify(frame));
  };
  return { live, sent, tell };
};

const changed = { type: "block.changed", cursor: 2, by: "agent:ent_x", block: listBlock(2, ["bread"]) };

test.each([
  ["[R2] an edit of unknown outcome is retried as the same request under the same key", "unavailable", 1],
  ["a refused edit is retried as a new request on the newest version", "edit_refused", 2],
] as const)("%s", async (_, code, onVersion) => {
  const { live, sent, tell } = await opened(new ColloquyError(code, "not now"));
  const key = live.edit([{ op: "push_item", item: "milk" }]);
  await until(live, ({ edits }) => edits.some(({ status }) => status.kind === "refused"));
  tell(changed);
  await until(live, (state) => state.block?.version === 2);
  live.retry(key);
  await until(live, ({ edits }) => edits.length === 0);
  expect(sent.map((each) => each.key)).toEqual([key, key]);
  expect(sent.map(({ request }) => request.onVersion)).toEqual([1, onVersion]);
});
