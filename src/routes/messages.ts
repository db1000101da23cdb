import { createHash } from "node:crypto";
import { createRoute, z } from "@hono/zod-openapi";
import { Message, MessageRouting, PostMessage, ReadMark, ReadReceipt } from "../protocol/message.ts";
import { ColloquyError } from "../shared/errors.ts";
import { access } from "./access.ts";
import { createRoutes } from "./house.ts";
import { replayedHeader } from "./idempotent.ts";
import { inSpace, requireParticipant, spaceAt } from "./in-space.ts";
import {
  answers,
  badBody,
  IdempotencyHeaders,
  idempotencyHeader,
  jsonBody,
  limitQuery,
  listOf,
  nothing,
  onePage,
  pathId,
  problems,
  queryNumber,
} from "./route-parts.ts";

const OneMessage = z.object({ message: Message });
const tags = ["Messages"];
const params = z.object({ spaceId: pathId("spc", "the space") });
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

const isSame = (message: Message, body: PostMessage): boolean =>
  message.text === body.text &&
  message.replyTo === body.replyTo &&
  (message.expectsReply ?? false) === (body.expectsReply ?? false);

export const messages = createRoutes();

messages.openapi(
  createRoute({
    method: "get",
    path: "/v1/spaces/{spaceId}/messages",
    tags,
    summary: "A space's messages, newest last",
    description: "The newest page; with `before` or `after` (a message's `seq`), the page on that side of it.",
    ...access("space"),
    request: { params, query: z.object({ before: seq, after: seq, limit: limitQuery(maxMessagesAPage) }) },
    responses: { 200: answers(listOf(Message), "A page"), ...problems("not_found", "invalid_request") },
  }),
  async (context) => {
    const stub = spaceAt(context, context.req.valid("param").spaceId);
    const query = context.req.valid("query");
    if (query.before !== undefined && query.after !== undefined) {
      throw new ColloquyError("invalid_request", "Send before or after, not both.");
    }
    return context.json(await inSpace(context, (principal) => stub.list(principal, query)), 200);
  },
);

messages.openapi(
  createRoute({
    method: "post",
    path: "/v1/spaces/{spaceId}/messages",
    tags,
    summary: "Say something",
    description: "The same `clientKey` or `Idempotency-Key` again stores nothing and answers the same message.",
    ...access("space"),
    request: { params, headers: IdempotencyHeaders, body: jsonBody(PostMessage) },
    responses: {
      200: answers(OneMessage, "The message that this `clientKey` stored before"),
      201: answers(OneMessage, "The message"),
      ...problems(
        "not_found",
        "text_too_long",
        "acting_entity_required",
        "unknown_reference",
        "idempotency_mismatch",
        ...badBody,
      ),
    },
  }),
  async (context) => {
    const stub = spaceAt(context, context.req.valid("param").spaceId);
    const body = context.req.valid("json");
    const idempotencyKey = context.req.valid("header")[idempotencyHeader];
    await requireParticipant(context);
    const post = (message: PostMessage) => inSpace(context, (principal) => stub.post(principal, message));
    if (body.clientKey !== undefined || idempotencyKey === undefined) {
      const { message, created } = await post(body);
      return created ? context.json({ message }, 201) : context.json({ message }, 200);
    }
    const { message, created } = await post({ ...body, clientKey: clientKeyOf(idempotencyKey) });
    if (!created) {
      if (!isSame(message, body)) {
        throw new ColloquyError("idempotency_mismatch", "This Idempotency-Key came with another body: send a new key.");
      }
      context.header(replayedHeader, "true");
    }
    return context.json({ message }, 201);
  },
);

messages.openapi(
  createRoute({
    method: "post",
    path: "/v1/spaces/{spaceId}/read",
    tags,
    summary: "Move the caller's read mark",
    ...access("space"),
    request: { params, body: jsonBody(ReadMark) },
    responses: { 204: nothing, ...problems("not_found", "acting_entity_required", "unknown_reference", ...badBody) },
  }),
  async (context) => {
    const stub = spaceAt(context, context.req.valid("param").spaceId);
    const { messageId } = context.req.valid("json");
    await requireParticipant(context);
    await inSpace(context, (principal) => stub.markRead(principal, messageId));
    return context.body(null, 204);
  },
);

messages.openapi(
  createRoute({
    method: "get",
    path: "/v1/spaces/{spaceId}/messages/{messageId}/reads",
    tags,
    summary: "Who has read a message, and what came of it",
    description: "Those whose read mark has come to the message, its sender aside; of an agent the outcome of its run.",
    ...access("space"),
    request: { params: params.extend({ messageId: pathId("msg", "the message") }) },
    responses: { 200: answers(listOf(ReadReceipt), "All of them"), ...problems("not_found") },
  }),
  async (context) => {
    const { spaceId, messageId } = context.req.valid("param");
    const stub = spaceAt(context, spaceId);
    return context.json(onePage(await inSpace(context, (principal) => stub.reads(principal, messageId))), 200);
  },
);

messages.openapi(
  createRoute({
    method: "get",
    path: "/v1/spaces/{spaceId}/messages/{messageId}/routing",
    tags,
    summary: "What the space's router decided about a message",
    description:
      "Which agents it woke, that it woke nobody, or why it failed. It is asked about the messages of people that address nobody, where the space has a `router`.",
    ...access("space"),
    request: { params: params.extend({ messageId: pathId("msg", "the message") }) },
    responses: { 200: answers(z.object({ routing: MessageRouting }), "The decision"), ...problems("not_found") },
  }),
  async (context) => {
    const { spaceId, messageId } = context.req.valid("param");
    const stub = spaceAt(context, spaceId);
    return context.json({ routing: await inSpace(context, (principal) => stub.routing(principal, messageId)) }, 200);
  },
);
