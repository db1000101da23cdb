import { createHash } from "node:crypto";
import * as z from "zod";
import { openRoot, rootHeader } from "../auth/root-header.ts";
import {
  EditMessage,
  Message,
  MessageRouting,
  PostMessage,
  ReadMark,
  ReadReceipt,
  RelatedItem,
} from "../protocol/message.ts";
import { mayRead } from "../protocol/principal.ts";
import type { SpaceRpc } from "../protocol/rpc.ts";
import { QueryText } from "../protocol/search.ts";
import { ToolAnswer } from "../protocol/tool-call.ts";
import { systemClock } from "../shared/clock.ts";
import { ColloquyError } from "../shared/errors.ts";
import { settledWithin } from "../shared/timeouts.ts";
import { authorOf } from "./blocks.ts";
import { agentAt, type HttpContext, spaceAt } from "./http-context.ts";
import { forgetAnswers, replayedHeader } from "./idempotent.ts";
import { impersonatedApprovals, inSpace, mayOwn, requireParticipant } from "./in-space.ts";
import { mindIdOf } from "./mind-query.ts";
import { Resource } from "./route.ts";
import { IdempotencyHeaders, limitQuery, listOf, onePage, queryNumber, RootHeaders } from "./route-parts.ts";

const OneMessage = z.object({ message: Message });
const maxMessagesAPage = 200;
const maxClientKeyCharacters = 128;
const seq = queryNumber(0, Number.MAX_SAFE_INTEGER).optional();

/** An `Idempotency-Key` is one more client key: the space keeps both by the same promise. */
const clientKeyOf = (idempotencyKey: string): string => {
  const key = `idempotency:${idempotencyKey}`;
  return key.length <= maxClientKeyCharacters
    ? key
    : `idempotency:${createHash("sha256").update(idempotencyKey).digest("hex")}`;
};

export const messages = new Resource("Messages");

messages.route("GET /v1/spaces/{spaceId}/messages", {
  summary: "A space's messages, newest last",
  description:
    "The newest page; with `before` or `after` (a message's `seq`), the page on that side of it. With `q`, those that hold each of its words: a page looks through 1,000 messages, so one without any may have a `nextCursor`, to be sent as `before`.",
  access: "space",
  query: z.object({
    ...{ before: seq, after: seq, limit: limitQuery(maxMessagesAPage) },
    q: QueryText.optional().meta({ description: "Words, or parts of words, in any order and case" }),
  }),
  answers: [listOf(Message), "A page"],
  problems: ["not_found", "invalid_request"],
  handle: async ({ context, space, query: { q, ...query } }) => {
    if (query.after !== undefined && (query.before !== undefined || q !== undefined)) {
      throw new ColloquyError("invalid_request", "Send before or after, not both; with q, before alone.");
    }
    const { before, limit } = query;
    if (q !== undefined)
      return inSpace(context, (principal) => space.search(principal, { q: q.trim(), before, limit }));
    return inSpace(context, (principal) => space.list(principal, query));
  },
});

messages.route("POST /v1/spaces/{spaceId}/messages", {
  summary: "Say something",
  description:
    "The same `clientKey` or `Idempotency-Key` again stores nothing and answers the same message. What a service says as a tool's request set it off passes its `Colloquy-Root` on; a person begins what comes of their words themselves.",
  access: "space",
  headers: IdempotencyHeaders.extend(RootHeaders.shape),
  body: PostMessage,
  status: 201,
  answers: [OneMessage, "The message"],
  responses: {
    200: {
      description: "The message that this `clientKey` stored before",
      content: { "application/json": { schema: OneMessage } },
    },
  },
  problems: [
    "not_found",
    "text_too_long",
    "acting_entity_required",
    "unknown_reference",
    "gone",
    "idempotency_mismatch",
  ],
  handle: async ({ context, space, workspaceId, body, headers, idempotencyKey }) => {
    await requireParticipant(context);
    const root = await openRoot(context.env, workspaceId, headers[rootHeader], systemClock.now());
    const post = (message: PostMessage) => inSpace(context, (principal) => space.post(principal, message, root));
    if (body.clientKey !== undefined || idempotencyKey === undefined) {
      const { message, created } = await post(body);
      return created ? { message } : context.json({ message }, 200);
    }
    const { message, created } = await post({ ...body, clientKey: clientKeyOf(idempotencyKey) });
    if (!created) context.header(replayedHeader, "true");
    return { message };
  },
});

messages.route("PATCH /v1/spaces/{spaceId}/messages/{messageId}", {
  summary: "Edit a message",
  description:
    "For the person or service who said it. Everybody is told by `message.updated`; it wakes no agent anew, and agents forget the words that stood there. The same text again changes nothing.",
  access: "space",
  body: EditMessage,
  answers: [OneMessage, "The message as it is now, with `editedAt`"],
  problems: ["not_found", "text_too_long", "acting_entity_required", "gone"],
  handle: async ({ context, space, params, body }) => {
    await requireParticipant(context);
    return {
      message: await inSpace(context, (principal) => space.editMessage(principal, params.messageId, body.text)),
    };
  },
});

/** How long agents may take to say what they have; one that is silent is left out. */
const relatedWaitMs = 3000;

const maxCompartmentsAsked = 1000;

/**
 * The spaces whose compartments may know a message, as far as the caller reads them too (C19): an open one, and one that the
 * agent said in a confidential space from outside it.
 */
const compartmentsOf = async (context: HttpContext, agentId: string): Promise<string[]> => {
  const { principal } = context.var;
  const known = await agentAt(context, agentId).compartments(principal.workspaceId, { limit: maxCompartmentsAsked });
  const ids = known.ok ? known.value.items.map(({ space }) => space.id) : [];
  if (principal.kind === "key") return ids;
  const asked = ids.map(async (id) => {
    const space = await spaceAt(context, id).describe(principal);
    return space.ok && mayRead(space.value, principal) ? [id] : [];
  });
  return (await Promise.all(asked)).flat();
};

/** The blocks and archival entries that agents and their compartments wrote of a message. `isToGo`: they are deleted. */
const relatedOf = async (
  context: HttpContext,
  { spaceId, messageId }: Record<"spaceId" | "messageId", string>,
  { agents, isConfidential }: { agents: string[]; isConfidential: boolean },
  isToGo: boolean,
): Promise<Record<"related" | "removed", RelatedItem[]>> => {
  const { workspaceId } = context.var.principal;
  const found: Record<"related" | "removed", RelatedItem[]> = { related: [], removed: [] };
  const ask = async (whose: { agentId: string; spaceId?: string }): Promise<void> => {
    const { agentId, spaceId: inside } = whose;
    const agent = agentAt(context, inside === undefined ? agentId : mindIdOf(context, agentId, inside));
    const answer = await agent.related(workspaceId, messageId);
    for (const item of answer.ok ? answer.value : []) {
      const { label = "", id = "" } = item;
      const remove = async () => {
        const isBlock = item.kind === "block";
        await forgetAnswers(context, `/agents/${agentId}/${isBlock ? `blocks/${label}` : `archival/${id}`}`);
        return isBlock
          ? agent.deleteBlock(workspaceId, label, "system", authorOf(context))
          : agent.deleteArchival(workspaceId, id);
      };
      const isGone = isToGo && (await remove()).ok;
      found[isGone ? "removed" : "related"].push({ ...whose, ...item });
    }
  };
  const askAll = async (agentId: string): Promise<void> => {
    const spaceIds = new Set([...(isConfidential ? [spaceId] : []), ...(await compartmentsOf(context, agentId))]);
    await Promise.allSettled([ask({ agentId }), ...[...spaceIds].map((each) => ask({ agentId, spaceId: each }))]);
  };
  await settledWithin(relatedWaitMs, Promise.allSettled(agents.map(askAll)));
  return { related: [...found.related], removed: [...found.removed] };
};

messages.route("DELETE /v1/spaces/{spaceId}/messages/{messageId}", {
  summary: "Delete a message",
  description:
    "For the person or service who said it, and for an admin or a secret key any message, an agent's too; a tool call's once the call is over. Its words go: from the log, which keeps who deleted it and when, and from the agents that have them. Again, it answers the same.",
  access: "space",
  query: z.object({
    related: z
      .enum(["true", "false"])
      .optional()
      .describe(
        "`true`: blocks and archival entries that agents wrote of it are deleted too. For an admin or a secret key",
      ),
  }),
  answers: [
    OneMessage.extend({ related: z.array(RelatedItem), removed: z.array(RelatedItem).optional() }),
    "What is left of the message, with `deleted`; and for an admin or a secret key what agents wrote down of it and still have, to be deleted by their own routes; of confidential spaces, in those that the caller reads. With `related=true`, `removed` is what was deleted of it, and `related` what is left: ask again",
  ],
  problems: ["not_found", "conflict", "invalid_request"],
  handle: async ({ context, space, params, query }) => {
    const isOwner = await mayOwn(context);
    if (query.related === "true" && !isOwner) {
      const detail = "Only an admin or a secret key deletes what agents wrote: leave out related.";
      throw new ColloquyError("forbidden", detail);
    }
    const { message, ...heard } = await inSpace(context, (principal) =>
      space.deleteMessage(principal, params.messageId),
    );
    if (!isOwner) return { message, related: [] };
    const { related, removed } = await relatedOf(context, params, heard, query.related === "true");
    return { message, related, ...(query.related === "true" && { removed }) };
  },
});

messages.route("POST /v1/spaces/{spaceId}/read", {
  summary: "Move the caller's read mark",
  access: "space",
  body: ReadMark,
  problems: ["not_found", "acting_entity_required", "unknown_reference"],
  handle: async ({ context, space, body }) => {
    await requireParticipant(context);
    return inSpace(context, (principal) => space.markRead(principal, body.messageId));
  },
});

messages.route("GET /v1/spaces/{spaceId}/messages/{messageId}/reads", {
  summary: "Who has read a message, and what came of it",
  description:
    "Those whose read mark has come to the message, its sender aside; of an agent the outcome of the run that took it. A receipt stays when its reader reads on, and when it leaves.",
  access: "space",
  answers: [listOf(ReadReceipt), "All of them"],
  problems: ["not_found"],
  handle: async ({ context, space, params }) =>
    onePage(await inSpace(context, (principal) => space.reads(principal, params.messageId))),
});

/** One answer for all, so that it tells nobody what is in a space that they are not in. */
const noOrigin =
  "Nothing to show: the message has no origin in a space that you are in, or there is no such message here.";

messages.route("GET /v1/spaces/{spaceId}/messages/{messageId}/origin", {
  summary: "The message in another space that an agent's message was said because of",
  description:
    "An agent's message names the message by its `origin`. The space of that one answers, to its own members and to the workspace. Everybody else gets 404, as where there is none.",
  access: "space",
  answers: [
    z.object({ message: Message, spaceName: z.string() }),
    "The message, and the name of the space that it is in",
  ],
  problems: ["not_found"],
  handle: async ({ context, space, params }) => {
    const find = (there: Pick<SpaceRpc, "find">, messageId: string, isShown: boolean) =>
      inSpace(context, (principal) => there.find(principal, messageId, isShown));
    try {
      const { origin } = (await find(space, params.messageId, false)).message;
      if (origin && "messageId" in origin && origin.messageId !== undefined) {
        return await find(spaceAt(context, origin.spaceId), origin.messageId, true);
      }
    } catch (error) {
      if (!(error instanceof ColloquyError) || !["not_found", "forbidden"].includes(error.code)) throw error;
    }
    throw new ColloquyError("not_found", noOrigin);
  },
});

messages.route("GET /v1/spaces/{spaceId}/messages/{messageId}/routing", {
  summary: "What the space's router decided about a message",
  description:
    "Which agents it woke, that it woke nobody, or why it failed. It is asked about the messages of people that address nobody, where the space has a `router`.",
  access: "space",
  answers: [z.object({ routing: MessageRouting }), "The decision"],
  problems: ["not_found"],
  handle: async ({ context, space, params }) => ({
    routing: await inSpace(context, (principal) => space.routing(principal, params.messageId)),
  }),
});

messages.route("POST /v1/spaces/{spaceId}/tool-calls/{toolCallId}/result", {
  summary: "Answer a tool call that waits for people",
  description:
    "For a person of the space, one of the call's `approvers` where it names some. An approval is answered with `{result: {approved, inputHash, note?}}`: who approves shows every field of `awaits.shown` and sends `awaits.inputHash`. Any other call is answered with a result that matches its `schema`, or with an `error`. The first valid answer wins; the same answer again is answered like the first time.",
  access: "space",
  body: ToolAnswer,
  answers: [OneMessage, "The message that shows the call, as it stands then"],
  problems: ["not_found", "conflict", "approval_changed", "gone", "answer_invalid", "acting_entity_required"],
  handle: async ({ context, space, params, body }) => {
    await requireParticipant(context);
    const allowed = await impersonatedApprovals(context);
    const { message } = await inSpace(context, (principal) =>
      space.answerToolCall(principal, params.toolCallId, body, allowed),
    );
    return { message };
  },
});
