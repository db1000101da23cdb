import * as z from "zod";
import { Entity } from "../protocol/entity.ts";
import { spaceId } from "../protocol/ids.ts";
import { Message, ReadReceipt } from "../protocol/message.ts";
import { Space } from "../protocol/space.ts";
import { MessageText } from "../protocol/text.ts";
import { jsonHash } from "../shared/canonical-json.ts";
import { ColloquyError } from "../shared/errors.ts";
import { mentionsIn } from "../shared/mentions.ts";
import { quote } from "../shared/quote.ts";
import { type AskApi, askFor, inputOf, jsonOf, type Surroundings } from "./toolset.ts";

/**
 * Asks an agent and waits for what it says. The question is a message like any other, so nothing is lost when nobody waits
 * any more: the same call again finds the message by its key, and goes on waiting.
 *
 * Invariants
 * 1. How things stand is read from the space; its events only say when to look again. So none that is missed costs more
 *    than a look at the end.
 * 2. The space's stream is closed when the call is answered, given up or over.
 */
export const maxWaitSeconds = 55;
const maxEntityPages = 10;
const maxMessagePages = 10;

export const AskAgentInput = z.strictObject({
  agent: z.string().min(1).max(200).describe("The agent's id, or its name"),
  text: MessageText.describe("What to ask"),
  spaceId: spaceId.optional().describe("Where to ask, if not in a space of the person and the agent alone"),
  idempotencyKey: z
    .string()
    .regex(/^[\x21-\x7e]{1,200}$/, "must be 1–200 visible ASCII characters")
    .optional()
    .describe("The same again asks nothing anew: it waits for the same answer"),
  waitSeconds: z.int().min(0).max(maxWaitSeconds).default(maxWaitSeconds).describe("How long to wait for the answer"),
});

const Entities = z.object({ items: z.array(Entity), nextCursor: z.string().nullable() });
const Messages = z.object({ items: z.array(Message), nextCursor: z.string().nullable() });
const Receipts = z.object({ items: z.array(ReadReceipt) });
const OneSpace = z.object({ space: Space });
const OneMessage = z.object({ message: Message });

type Named = { id: string; name: string };

/** The agent of this id or name among those that the person may know of. */
const findAgent = async (ask: AskApi, wanted: string): Promise<Named> => {
  const found: Named[] = [];
  let cursor = "";
  for (let page = 0; page < maxEntityPages; page += 1) {
    const { items, nextCursor } = await askFor(ask, Entities, `/v1/entities?type=agent&limit=100${cursor}`);
    const isMeant = ({ id, name }: Named): boolean => id === wanted || name.toLowerCase() === wanted.toLowerCase();
    found.push(...items.filter(isMeant));
    if (nextCursor === null) break;
    cursor = `&cursor=${encodeURIComponent(nextCursor)}`;
  }
  const [agent, another] = found;
  if (!agent) {
    const detail = `There is no agent ${quote(wanted)} in the person's spaces: see the members of a space.`;
    throw new ColloquyError("unknown_reference", detail, { issues: [{ path: "agent", message: "is not known" }] });
  }
  if (!another) return agent;
  const ids = found.map(({ id }) => id).join(", ");
  throw new ColloquyError("unknown_reference", `Several agents have that name: name one by its id, of ${ids}.`);
};

/** The space to ask in: the one that is named, or one of the person and the agent alone, made when first needed. */
const placeOf = async (ask: AskApi, agent: Named, named: string | undefined): Promise<Space> => {
  if (named !== undefined) {
    const { space } = await askFor(ask, OneSpace, `/v1/spaces/${named}`);
    if (space.members?.some(({ id }) => id === agent.id)) return space;
    throw new ColloquyError(
      "unknown_reference",
      `${agent.name} is not in that space: name one of its spaces, or none.`,
    );
  }
  const name = [...`Questions to ${agent.name}`].slice(0, 64).join("").trim();
  const body = { name, members: [{ entityId: agent.id }] };
  // An agent that was renamed has a new one, whose name is right.
  const headers = { "idempotency-key": `ask_agent:${agent.id}:${jsonHash(name).slice(0, 16)}` };
  return (await askFor(ask, OneSpace, "/v1/spaces", { body, headers })).space;
};

/** Whoever reads in the space is woken by a mention alone in some spaces. */
const addressed = (text: string, agent: Named, isShared: boolean): string =>
  isShared && mentionsIn(text, [agent]).length === 0 ? `@${agent.name} ${text}` : text;

type Asked = { spaceId: string; message: Message; agent: Named };

/** The messages of an agent since it was asked, oldest first. */
const saidAfter = async (ask: AskApi, { spaceId: id, agent, message }: Asked): Promise<Message[]> => {
  const said: Message[] = [];
  let after: string | null = String(message.seq);
  for (let page = 0; page < maxMessagePages && after !== null; page += 1) {
    const path = `/v1/spaces/${id}/messages?after=${after}&limit=200`;
    const next: z.infer<typeof Messages> = await askFor(ask, Messages, path);
    said.push(...next.items.filter(({ sender, deleted }) => sender.id === agent.id && !deleted));
    after = next.nextCursor;
  }
  return said;
};

/** What the agent has said since, and whether it is done: by its receipt of the question, or since it asks people. */
const look = async (ask: AskApi, asked: Asked) => {
  const { spaceId: id, message, agent } = asked;
  const [{ items: receipts }, said] = await Promise.all([
    askFor(ask, Receipts, `/v1/spaces/${id}/messages/${message.id}/reads`),
    saidAfter(ask, asked),
  ]);
  const { outcome, reason } = receipts.find(({ entityId }) => entityId === agent.id) ?? {};
  const asksPeople = said.some(({ toolCall }) => toolCall?.status === "requires_action");
  const status = asksPeople ? "needs_answer" : outcome;
  return { status, reason, said };
};

/** What a model reads of a message. */
const told = ({ id, text, toolCall, replyTo, createdAt }: Message) => ({ id, text, toolCall, replyTo, createdAt });

const nextSteps: Record<string, string> = {
  needs_answer:
    "The agent waits for a person: see needs_you, and answer. Then call ask_agent again with this idempotencyKey.",
  failed: "Its run failed. Say what the reason is, or ask again with another idempotencyKey.",
  silent: "The agent has read it and chose to say nothing.",
};

/** Waits for durable events that name the agent, of the space's Server-Sent Events. */
const eventsOf = (body: ReadableStream<Uint8Array>, agentId: string) => {
  const reader = body.pipeThrough(new TextDecoderStream() as ReadableWritablePair<string, Uint8Array>).getReader();
  let rest = "";
  return {
    /** False once the stream has ended. */
    async next(): Promise<boolean> {
      for (;;) {
        const { value, done } = await reader.read();
        if (done) return false;
        const events = (rest + value).split("\n\n");
        rest = events.pop() ?? "";
        if (events.some((event) => /^id: /m.test(event) && event.includes(agentId))) return true;
      }
    },
    close: (): unknown => reader.cancel().catch(() => undefined),
  };
};

/** Looks until the agent is done, whenever an event of it comes, until `signal` says that the time is up. */
const awaitAnswer = async (asked: Asked, { ask, progress }: Surroundings, signal: AbortSignal) => {
  const answer = await ask({ method: "GET", path: `/v1/spaces/${asked.spaceId}/events` });
  if (!answer.ok || !answer.body) return jsonOf(answer).then(() => look(ask, asked));
  const events = eventsOf(answer.body, asked.agent.id);
  signal.addEventListener("abort", events.close, { once: true });
  try {
    for (;;) {
      const seen = await look(ask, asked);
      if (seen.status !== undefined || signal.aborted) return seen;
      progress(seen.said.length === 0 ? `${asked.agent.name} has the question` : `${asked.agent.name} goes on`);
      if (!(await events.next())) return await look(ask, asked);
    }
  } finally {
    events.close();
  }
};

export const askAgent = async (input: unknown, surroundings: Surroundings): Promise<unknown> => {
  const { ask, signal } = surroundings;
  const { agent: wanted, text, spaceId: named, waitSeconds, idempotencyKey } = inputOf(AskAgentInput, input);
  const until = AbortSignal.any([signal, AbortSignal.timeout(waitSeconds * 1000)]);
  const agent = await findAgent(ask, wanted);
  const space = await placeOf(ask, agent, named);
  const key = idempotencyKey ?? crypto.randomUUID();
  const { message } = await askFor(ask, OneMessage, `/v1/spaces/${space.id}/messages`, {
    body: { text: addressed(text, agent, named !== undefined), expectsReply: true },
    headers: { "idempotency-key": key },
  });
  const asked = { spaceId: space.id, message, agent };
  const { status = "pending", reason, said } = await awaitAnswer(asked, surroundings, until);
  const soFar = said.length === 0 ? "No answer yet" : "It goes on";
  const goOn = `${soFar}. Call ask_agent again with the same arguments and this idempotencyKey to go on waiting, or read_messages with after: ${message.seq} later.`;
  return {
    status,
    ...{ reason, answer: said.map(told), spaceId: space.id, messageId: message.id, idempotencyKey: key },
    next: status === "pending" ? goOn : nextSteps[status],
  };
};
