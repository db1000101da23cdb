import { createServer, type IncomingMessage } from "node:http";
import { setTimeout as wait } from "node:timers/promises";
import * as z from "zod";
import type { ToolConfig } from "../../src/protocol/tool.ts";
import type { Random } from "./random.ts";

/**
 * A server on loopback that pays money back and keeps no secret of how often. At `/refund` every request pays, as with
 * most of the world's APIs; at `/credit` one `Idempotency-Key` pays once. Both take a while before and after they have
 * paid, so that a crash may fall on either side.
 */
export type Payment = { tool: "refund" | "credit"; order: string; key: string };

export type RefundDesk = {
  /** The agents' tools that come here. */
  tools: z.input<typeof ToolConfig>[];
  /** Every request that was taken, whether anybody waited for its answer or not. */
  requests: Payment[];
  /** Requests that came without the secret of the workspace that the tools send along. */
  withoutSecret(): number;
  /** Resolves when the next request comes in, before it has paid. */
  next(): Promise<void>;
  stop(): Promise<void>;
};

/** How long paying takes at most, and how long the answer takes after it. */
export const longestPauseMs = 250;

/** What the workspace's secret DESK holds. */
export const deskSecret = "a-secret-of-the-refund-desk";

const Order = z.object({ order: z.string() });

/** Undefined where the caller was gone before it had said what it wants: nothing is paid then. */
const orderIn = async (request: IncomingMessage): Promise<string | undefined> => {
  let text = "";
  try {
    for await (const chunk of request.setEncoding("utf8")) text += chunk;
    return Order.parse(JSON.parse(text)).order;
  } catch {
    return undefined;
  }
};

const toolAt = (url: string, tool: Payment["tool"]): z.input<typeof ToolConfig> => ({
  name: tool,
  description: "Pays an order back.",
  executionType: "gateway",
  idempotent: tool === "credit",
  inputSchema: {
    type: "object",
    properties: { order: { type: "string" } },
    required: ["order"],
    additionalProperties: false,
  },
  execution: {
    url: `${url}/${tool}`,
    method: "POST",
    headers: { authorization: `Bearer \${secret.DESK}` },
    body: { order: "{{input.order}}" },
  },
});

export const startRefundDesk = async (random: Random): Promise<RefundDesk> => {
  const requests: Payment[] = [];
  let withoutSecret = 0;
  let coming = Promise.withResolvers<void>();
  const server = createServer(async (request, response) => {
    if (request.headers.authorization !== `Bearer ${deskSecret}`) withoutSecret += 1;
    const tool = request.url === "/credit" ? "credit" : "refund";
    const order = await orderIn(request);
    if (order === undefined) return response.writeHead(400).end();
    coming.resolve();
    coming = Promise.withResolvers();
    await wait(random.between(0, longestPauseMs));
    requests.push({ tool, order, key: String(request.headers["idempotency-key"] ?? "") });
    await wait(random.between(0, longestPauseMs));
    response.writeHead(200, { "content-type": "application/json" });
    return response.end(JSON.stringify({ refunded: order }));
  });
  // Else a request may come over a connection that is just being closed: its sender cannot know whether it was taken.
  server.keepAliveTimeout = 0;
  await new Promise<void>((listening) => server.listen(0, "127.0.0.1", listening));
  server.unref();
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("the refund desk has no port");
  const url = `http://127.0.0.1:${address.port}`;
  return {
    tools: [toolAt(url, "refund"), toolAt(url, "credit")],
    requests,
    withoutSecret: () => withoutSecret,
    next: () => coming.promise,
    stop: () =>
      new Promise((stopped) => {
        server.close(() => stopped());
        server.closeAllConnections();
      }),
  };
};
