import { createServer, type IncomingMessage } from "node:http";
import { setTimeout as wait } from "node:timers/promises";
import { Webhook } from "standardwebhooks";
import * as z from "zod";
import type { House } from "../e2e/support/house.ts";
import type { Random } from "./random.ts";
import { insist } from "./taken-away.ts";

/**
 * Servers on loopback of the workspace's endpoints. One answers 500 at times, before or after it has handled what came;
 * one is slow; one takes several events at once. A try is kept whatever it is answered by.
 */
export type Told = {
  id: string;
  /** What it is of, whatever it is called: its type, and the message or run. */
  about: string;
  spaceId: string;
  /** Its place in its space's log; runs have none. */
  place: number | undefined;
};
export type Try = { webhookId: string; events: Told[]; isTaken: boolean };

export type Receiver = {
  name: string;
  tries: Try[];
  /** What came without a signature that counts. */
  unsigned(): number;
  isDisabled(): Promise<boolean>;
  close(): Promise<void>;
};

const told = z
  .object({
    id: z.string(),
    type: z.string(),
    data: z.looseObject({
      spaceId: z.string(),
      cursor: z.int().optional(),
      runId: z.string().optional(),
      messageId: z.string().optional(),
      message: z.looseObject({ id: z.string() }).optional(),
    }),
  })
  .transform(({ id, type, data: { spaceId, cursor: place, runId, messageId, message } }): Told => {
    return { id, about: `${type} ${runId ?? messageId ?? message?.id}`, spaceId, place };
  });
const Delivery = z.union([
  z.object({ type: z.literal("batch"), data: z.array(told) }).transform(({ data }) => data),
  told.transform((event) => [event]),
]);

const kinds = ["failing", "slow", "batch"] as const;
const slowMs = 120;

const textOf = async (request: IncomingMessage): Promise<string> => {
  let text = "";
  for await (const chunk of request.setEncoding("utf8")) text += chunk;
  return text;
};

const openReceiver = async (house: House, kind: (typeof kinds)[number], random: Random): Promise<Receiver> => {
  const tries: Try[] = [];
  let unsigned = 0;
  let webhook: Webhook | undefined;
  const seen = new Set<string>();
  /**
   * An id fails when it comes first, or never: what has others of its place behind it comes again with them. After a second failure
   * in a row it would be tried again a minute later.
   */
  const fails = (id: string): boolean => {
    if (kind !== "failing" || seen.has(id)) return false;
    seen.add(id);
    return random.chance(0.04);
  };
  const server = createServer(async (request, response) => {
    const body = await textOf(request).catch(() => undefined);
    if (body === undefined) return;
    const webhookId = String(request.headers["webhook-id"]);
    try {
      webhook?.verify(body, request.headers as Record<string, string>);
    } catch {
      unsigned += 1;
    }
    const isTaken = !fails(webhookId);
    if (kind === "slow") await wait(random.between(0, slowMs));
    if (isTaken || random.chance(0.5)) tries.push({ webhookId, events: Delivery.parse(JSON.parse(body)), isTaken });
    response.writeHead(isTaken ? 200 : 500).end();
  });
  await new Promise<void>((listening) => server.listen(0, "127.0.0.1", listening));
  server.unref();
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("a receiver has no port");
  const made = await house.api.post<{ endpoint: { id: string }; secret: string }>("/v1/workspace/endpoints", {
    url: `http://127.0.0.1:${address.port}/`,
    types: ["space.message", "message.deleted", "run.*"],
    batch: kind === "batch",
    description: kind,
  });
  webhook = new Webhook(made.secret);
  const at = "/v1/workspace/endpoints";
  return {
    ...{ name: kind, tries, unsigned: () => unsigned },
    isDisabled: async () => {
      const { items } = await house.api.get<{ items: { id: string; disabled?: object }[] }>(at);
      return items.some(({ id, disabled }) => id === made.endpoint.id && disabled !== undefined);
    },
    close: async () => {
      await insist(() => house.api.delete(`${at}/${made.endpoint.id}`));
      server.closeAllConnections();
      await new Promise<void>((stopped) => server.close(() => stopped()));
    },
  };
};

/** Before there are spaces, so that each tells all of itself. */
export const openReceivers = (house: House, random: Random): Promise<Receiver[]> =>
  Promise.all(kinds.map((kind) => openReceiver(house, kind, random)));
