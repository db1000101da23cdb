import { setTimeout as wait } from "node:timers/promises";
import * as z from "zod";
import type { House } from "../e2e/support/house.ts";
import { answerPieces, type Command, commandsIn, type Said } from "./commands.ts";
import type { Reading } from "./mind.ts";

/**
 * The program of a guest agent, which outlives each crash of the server. Like the models of the others it carries out what
 * its run's events command. What is cut off it sends again under the same key, until it is answered or its run is gone.
 */
const Claimed = z.object({
  run: z.object({ id: z.string() }),
  events: z.array(
    z.looseObject({
      data: z.looseObject({
        message: z.looseObject({ id: z.string(), spaceId: z.string(), text: z.string().default("") }).optional(),
      }),
    }),
  ),
  lease: z.string(),
});
type Claimed = z.infer<typeof Claimed>;
const Answered = z.object({ call: z.looseObject({ status: z.string(), output: z.unknown().optional() }) });

type Act = { name: string; input: object; key: string; lease: string };
type Speech = { key: string; lease: string; pieces: string[] };

/** How it reaches the server. All reject with `Refused` where the server said no, and with anything else where it said nothing. */
type Reach = {
  claim(): Promise<unknown>;
  call(runId: string, act: Act): Promise<unknown>;
  speak(runId: string, speech: Speech): Promise<unknown>;
  end(runId: string, kind: "complete" | "skip", words: object): Promise<unknown>;
  close(): void;
};

class Refused extends Error {}

/** It comes by requests, or by one socket for all. */
export type GuestAgent = { id: string; name: string; guest: "http" | "socket" };
export type Guest = { close(): Promise<void> };
type Own = { house: House; agent: GuestAgent; token: string };

const againMs = 100;
const claimSeconds = 5;
const betweenPiecesMs = 20;

const overHttp = ({ house, agent, token }: Own): Reach => {
  const over = new AbortController();
  const post = async (path: string, body: BodyInit): Promise<unknown> => {
    const response = await fetch(`${house.url}/v1/agents/${agent.id}/${path}`, {
      ...{ method: "POST", body, duplex: "half", signal: over.signal },
      headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
    });
    const text = await response.text();
    if (response.status >= 500) throw new Error(text);
    if (!response.ok) throw new Refused(`${path}: ${text}`);
    return text === "" ? undefined : JSON.parse(text);
  };
  const send = (path: string, value: object) => post(path, JSON.stringify(value));
  return {
    claim: () => send("claims", { waitSeconds: claimSeconds }),
    call: (runId, act) => send(`runs/${runId}/calls`, act),
    speak: (runId, { key, lease, pieces }) => {
      const lines = [...pieces.map((delta) => ({ delta })), { done: true }];
      const words = new ReadableStream({
        async pull(stream) {
          const line = lines.shift();
          if (!line) return stream.close();
          await wait(betweenPiecesMs);
          stream.enqueue(new TextEncoder().encode(`${JSON.stringify(line)}\n`));
        },
      });
      return post(`runs/${runId}/speech?key=${key}&lease=${lease}`, words);
    },
    end: (runId, kind, words) => send(`runs/${runId}/${kind}`, words),
    close: () => over.abort(),
  };
};

const Frame = z.looseObject({ type: z.string(), id: z.string().optional(), status: z.int().optional() });
type Frame = z.infer<typeof Frame>;
const Socket = globalThis.WebSocket;

const overSocket = ({ house, agent, token }: Own): Reach => {
  const waiting = new Map<string, PromiseWithResolvers<Frame>>();
  let asked = 0;
  let opened: Promise<WebSocket> | undefined;

  const open = (): Promise<WebSocket> => {
    const socket = new Socket(`${house.url.replace("http", "ws")}/v1/agents/${agent.id}/runtime?token=${token}`);
    const { promise, resolve, reject } = Promise.withResolvers<WebSocket>();
    socket.addEventListener("open", () => resolve(socket));
    socket.addEventListener("message", ({ data }) => {
      const frame = Frame.parse(JSON.parse(String(data)));
      waiting.get(frame.id ?? "")?.resolve(frame);
    });
    socket.addEventListener("close", () => {
      opened = undefined;
      const cut = new Error("the socket has closed");
      reject(cut);
      for (const { reject: give } of waiting.values()) give(cut);
    });
    return promise;
  };
  const ask = async (frame: object, then?: (socket: WebSocket, id: string) => Promise<void>): Promise<Frame> => {
    opened ??= open();
    const socket = await opened;
    asked += 1;
    const id = `${asked}`;
    const answer = Promise.withResolvers<Frame>();
    waiting.set(id, answer);
    answer.promise.catch(() => undefined);
    socket.send(JSON.stringify({ ...frame, id }));
    await then?.(socket, id);
    const got = await answer.promise.finally(() => waiting.delete(id));
    if (got.type !== "error") return got;
    if ((got.status ?? 500) >= 500) throw new Error(JSON.stringify(got));
    throw new Refused(JSON.stringify(got));
  };
  return {
    claim: () => ask({ type: "claim" }),
    call: (runId, act) => ask({ type: "call", runId, ...act }),
    speak: (runId, { key, lease, pieces }) =>
      ask({ type: "speech", runId, key, lease }, async (socket, id) => {
        for (const delta of pieces) {
          await wait(betweenPiecesMs);
          socket.send(JSON.stringify({ type: "speech.delta", id, delta }));
        }
        socket.send(JSON.stringify({ type: "speech.done", id }));
      }),
    end: (runId, kind, words) => ask({ type: kind, runId, ...words }),
    close: () => void opened?.then((socket) => socket.close()).catch(() => undefined),
  };
};

/** Begins to claim. What each run is given goes to `readings`. */
export const startGuest = async (house: House, agent: GuestAgent, readings: Reading[]): Promise<Guest> => {
  const { token } = await house.api.post<{ token: string }>("/v1/tokens", { entityId: agent.id });
  const reach = (agent.guest === "socket" ? overSocket : overHttp)({ house, agent, token });
  let isOver = false;

  const until = async (ask: () => Promise<unknown>): Promise<unknown> => {
    while (!isOver) {
      try {
        return await ask();
      } catch (error) {
        if (error instanceof Refused) throw error;
        await wait(againMs);
      }
    }
    throw new Refused("the program has ended");
  };

  const call = async ({ run: { id }, lease }: Claimed, name: string, input: object, key: string): Promise<string> => {
    for (;;) {
      const { call: made } = Answered.parse(await until(() => reach.call(id, { name, input, key, lease })));
      if (made.status !== "started") return JSON.stringify(made.output ?? null);
      await wait(againMs);
    }
  };

  const carryOut = async (claimed: Claimed, { id, verb }: Command): Promise<Said> => {
    if (verb === "say") return "said";
    const output = await call(claimed, verb, { order: id }, `${verb}-${id}`);
    if (output.includes("outcome_unknown")) return "unknown";
    return output.includes("refunded") ? "refunded" : "failed";
  };

  const live = async (claimed: Claimed): Promise<void> => {
    const { run, events, lease } = claimed;
    const messages = events.flatMap(({ data: { message } }) => message ?? []);
    note(readings, { agent: agent.name, ask: run.id, messageIds: messages.map(({ id }) => id) });
    const meant = messages.flatMap(({ spaceId, text }) =>
      commandsIn(text).flatMap((command) => (command.agent === agent.name ? { ...command, spaceId } : [])),
    );
    if (meant.length === 0) {
      await until(() => reach.end(run.id, "skip", { reason: "it is for others", lease }));
      return;
    }
    for (const { spaceId, ...command } of meant) {
      await call(claimed, "enter_space", { spaceId }, "enter");
      const said = await carryOut(claimed, command);
      const speech = { key: `say-${command.id}`, lease, pieces: answerPieces(command.id, said) };
      await until(() => reach.speak(run.id, speech));
    }
    await until(() => reach.end(run.id, "complete", { summary: "That was all.", lease }));
  };

  const living = (async () => {
    while (!isOver) {
      try {
        const claimed = await until(() => reach.claim());
        if (claimed !== undefined) await live(Claimed.parse(claimed));
      } catch (error) {
        // Its run was given to another claim, or has ended.
        if (!(error instanceof Refused)) throw error;
        await wait(againMs);
      }
    }
  })();
  return {
    close: async () => {
      isOver = true;
      reach.close();
      await living;
    },
  };
};

/** A run that is claimed again is given the same: each message counts once in it. */
const note = (readings: Reading[], reading: Reading): void => {
  const known = readings.find(({ agent, ask }) => agent === reading.agent && ask === reading.ask);
  if (!known) return void readings.push(reading);
  known.messageIds.push(...reading.messageIds.filter((id) => !known.messageIds.includes(id)));
};
