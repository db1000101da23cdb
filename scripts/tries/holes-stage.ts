import { createServer, type IncomingMessage } from "node:http";
import { WebSocket } from "ws";
import * as z from "zod";
import { type House, openHouse } from "../../test/e2e/support/house.ts";
import { type FakeRequest, type FakeStep, startFakeOpenAi } from "../../test/support/fake-openai.ts";
import { until } from "./scene.ts";

/**
 * What an attacker has: a house to try, a model that does what a message orders, a server of his own, and plain HTTP.
 * An order is in a message's text, so that whoever may speak to an agent may have it call any tool.
 */
export type ToolOrder = readonly [tool: string, input: object | string];

/** A name that nothing else has, in one word. */
export const named = (one: string): string => `${one}${Math.random().toString(36).slice(2, 8)}`;

const orders: { steps: (readonly ToolOrder[])[]; done: number }[] = [];

/** Words that have a model make these calls, once. Each list is one of its steps, with the calls that it makes side by side. */
export const order = (...steps: (readonly ToolOrder[])[]): string => `do:${orders.push({ steps, done: 0 })};`;

const Turn = z.looseObject({ role: z.string(), content: z.unknown(), tool_calls: z.array(z.unknown()).optional() });

const askIn = (turn: z.infer<typeof Turn>): string | undefined => {
  if (turn.role !== "user") return undefined;
  const text = typeof turn.content === "string" ? turn.content : JSON.stringify(turn.content).replaceAll("\\n", "\n");
  return /^(INBOX \(|TRIGGER:)[\s\S]*?(?=^ACTIVE SPACE:)/m.exec(text)?.[0];
};

/** A model that carries out the newest order of what came. */
const obey = ({ body }: FakeRequest): FakeStep => {
  const ask = z
    .array(Turn)
    .parse(body.messages)
    .map(askIn)
    .findLast((found) => found !== undefined);
  const [, number] = [...(ask ?? "").matchAll(/do:(\d+);/g)].at(-1) ?? [];
  const ordered = orders[Number(number) - 1];
  const calls = ordered?.steps[ordered.done];
  // Billed about as a real one would be.
  const usage = { prompt_tokens: Math.ceil(JSON.stringify(body).length / 4), completion_tokens: 20 };
  if (!ordered || !calls) return { text: "That was all.", usage };
  ordered.done += 1;
  return {
    usage,
    toolCalls: calls.map(([name, input]) => ({
      name,
      arguments: [typeof input === "string" ? input : JSON.stringify(input)],
    })),
  };
};

/** A socket. `refused`: the status of an upgrade that was not made. */
export type Line = {
  frames: string[];
  refused?: number;
  send(frame: object): void;
  closed(): number | undefined;
  end(): void;
};

export type Answer = { status: number; text: string; headers: Headers };
export type Asking = { bearer?: string; headers?: Record<string, string>; body?: unknown; patienceMs?: number };

/** The requests that came to the attacker's own server, and what it answers. */
export type OwnServer = {
  url: string;
  requests: { path: string; headers: IncomingMessage["headers"]; body: string }[];
  answer: (
    request: OwnServer["requests"][number],
  ) => Promise<{ status?: number; headers?: object; body?: unknown; html?: string }>;
};

const openServer = async (): Promise<{ own: OwnServer; stop: () => void }> => {
  const own: OwnServer = { url: "", requests: [], answer: async () => ({ body: { done: true } }) };
  const server = createServer(async (incoming, outgoing) => {
    let body = "";
    for await (const chunk of incoming.setEncoding("utf8")) body += chunk;
    const request = { path: incoming.url ?? "/", headers: incoming.headers, body };
    own.requests.push(request);
    const { status = 200, headers = {}, body: answer = {}, html } = await own.answer(request);
    outgoing.writeHead(status, { "content-type": "application/json", ...headers });
    outgoing.end(html ?? JSON.stringify(answer));
  });
  await new Promise<void>((listening) => server.listen(0, "127.0.0.1", listening));
  const address = server.address();
  own.url = `http://127.0.0.1:${typeof address === "object" ? address?.port : 0}`;
  return { own, stop: () => server.close().closeAllConnections() };
};

export type Message = {
  id: string;
  text?: string;
  sender: { id: string; name: string };
  origin?: object;
  toolCall?: {
    id: string;
    status: string;
    input: unknown;
    awaits?: { inputHash?: string; shown?: { path: string; text: string; hidden: number }[] };
  };
};
type List<T> = { items: T[] };

export type Stage = Awaited<ReturnType<typeof openStage>>;

/** A house on loopback with temporary data, which `close` ends. */
export const openStage = async (opened?: House) => {
  const house = opened ?? (await openHouse());
  const fake = await startFakeOpenAi(obey);
  const { own, stop } = await openServer();
  const { api, url, secretKey } = house;

  const http = async (method: string, path: string, asking: Asking = {}): Promise<Answer> => {
    const { bearer, headers = {}, body, patienceMs = 20_000 } = asking;
    const answer = await fetch(url + path, {
      method,
      redirect: "manual",
      signal: AbortSignal.timeout(patienceMs),
      headers: {
        ...(bearer === undefined ? {} : { authorization: `Bearer ${bearer}` }),
        ...(body === undefined || headers["content-type"] ? {} : { "content-type": "application/json" }),
        ...headers,
      },
      ...(body === undefined ? {} : { body: typeof body === "string" ? body : JSON.stringify(body) }),
    });
    return { status: answer.status, text: await answer.text(), headers: answer.headers };
  };

  const messages = async (spaceId: string): Promise<Message[]> =>
    (await api.get<List<Message>>(`/v1/spaces/${spaceId}/messages?limit=200`)).items;

  return {
    ...{ house, fake, own, api, url, key: secretKey, http, messages },
    close: async (): Promise<void> => {
      stop();
      await fake.stop();
      await house.close();
    },
    /** A timeline agent with the model that obeys; what it is asked stands in `given(name)`. */
    agent: (name: string, config: object = {}): Promise<string> => {
      const model = { provider: "openai-compatible", name, baseUrl: fake.baseUrl };
      return house.addAgent({ name, continuity: "timeline", model, ...config });
    },
    /** All inputs that the model of this agent was given since `from`, as text. */
    given: (model: string, from = 0): string =>
      fake.requests
        .slice(from)
        .filter((request) => request.model === model)
        .map(({ body }) => JSON.stringify(body))
        .join("\n"),
    space: async (name: string, members: string[], settings: object = {}): Promise<string> => {
      const body = { name, members: members.map((entityId) => ({ entityId })), ...settings };
      return (await api.post<{ space: { id: string } }>("/v1/spaces", body)).space.id;
    },
    say: async (spaceId: string, bearer: string, text: string): Promise<string> => {
      const { status, text: answer } = await http("POST", `/v1/spaces/${spaceId}/messages`, { bearer, body: { text } });
      if (status !== 201) throw new Error(`POST messages answered ${status}: ${answer}`);
      return (JSON.parse(answer) as { message: Message }).message.id;
    },
    /** Until the agent's run that took the message is over. */
    handled: (spaceId: string, messageId: string, agentId: string) =>
      until(`end of the run of ${messageId}`, async () => {
        type Read = { entityId: string; outcome?: string };
        const { items } = await api.get<List<Read>>(`/v1/spaces/${spaceId}/messages/${messageId}/reads`);
        return items.find(({ entityId, outcome }) => entityId === agentId && outcome !== undefined);
      }),
    /** The newest card of a tool in a space that has this status. */
    card: (spaceId: string, status: string, but: readonly string[] = [], ms?: number) =>
      until(
        `card that is ${status}`,
        async () => {
          const cards = (await messages(spaceId)).filter(({ id }) => !but.includes(id));
          return cards.findLast(({ toolCall }) => toolCall?.status === status);
        },
        ms,
      ),
    /** It keeps all frames as text. */
    socket: (path: string, headers: Record<string, string> = {}) =>
      new Promise<Line>((opened) => {
        const line = new WebSocket(url.replace(/^http/, "ws") + path, { headers });
        const frames: string[] = [];
        let code: number | undefined;
        const send = (frame: object): void => line.send(JSON.stringify(frame));
        const there = { frames, send, closed: () => code, end: () => line.terminate() };
        line.on("message", (data) => void frames.push(String(data)));
        line.on("close", (closed) => {
          code = closed;
        });
        line.on("unexpected-response", (_, answer) => opened({ ...there, refused: answer.statusCode ?? 0 }));
        line.on("error", () => opened({ ...there, refused: 0 }));
        line.on("open", () => opened(there));
      }),
  };
};

/** What was tried, one line each. */
export type Tries = ReturnType<typeof createTries>;

/** `only`: these holes; all of them, if there are none. */
export const createTries = (only: number[]) => {
  const wants = (hole: number): boolean => only.length === 0 || only.includes(hole);
  let open = 0;
  let closed = 0;
  const tell = (hole: string, what: string, loot: unknown): void => {
    const isClosed = !loot || (Array.isArray(loot) && loot.length === 0);
    if (isClosed) closed += 1;
    else open += 1;
    console.log(`  ${isClosed ? "closed" : "OPEN  "} ${hole.padStart(2)}  ${what}`);
    if (!isClosed)
      console.log(`             ${(typeof loot === "string" ? loot : JSON.stringify(loot)).slice(0, 2000)}`);
  };
  return {
    wants,
    /** `look` answers what an attacker got; nothing, where he got nothing. */
    async attack(hole: number, what: string, look: () => Promise<unknown>): Promise<void> {
      if (!wants(hole)) return;
      tell(`${hole}`, what, await look().catch((error: unknown) => `it could not be tried: ${error}`));
    },
    /** An attack that cannot be tried counts as open; the others are still tried. */
    play: (play: () => Promise<void>): Promise<void> =>
      play().catch((error: unknown) => tell("", "cannot go on", `${error instanceof Error ? error.stack : error}`)),
    counts: () => ({ open, closed }),
  };
};
