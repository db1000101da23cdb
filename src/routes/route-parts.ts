import { z } from "@hono/zod-openapi";
import type { IdPrefix } from "../protocol/ids.ts";
import { Problem } from "../protocol/problem.ts";
import { type ErrorCode, errorKind } from "../shared/errors.ts";

/** The pieces that routes' definitions are put together from. */

/** An id in a path. `access` has checked that it was issued, so its shape is only told here. */
export const pathId = (prefix: IdPrefix, what: string) =>
  z.string().meta({ description: `The id of ${what}`, example: `${prefix}_…` });

const defaultLimit = 50;
const maxLimit = 100;

/** A whole number in a query. */
export const queryNumber = (minimum: number, maximum: number) =>
  z
    .string()
    .regex(/^\d{1,15}$/, `must be a whole number from ${minimum} to ${maximum}`)
    .transform(Number)
    .refine((value) => value >= minimum && value <= maximum, `must be from ${minimum} to ${maximum}`)
    .meta({ type: "integer", minimum, maximum });

const limitOf = (maximum: number) =>
  queryNumber(1, maximum)
    .default(Math.min(defaultLimit, maximum))
    .meta({ description: "How many items a page holds", default: Math.min(defaultLimit, maximum) });

const cursor = z.string().max(200).optional().meta({ description: "The nextCursor of the page before" });

export const pageQuery = (maximum = maxLimit) => z.object({ limit: limitOf(maximum), cursor });
export const limitQuery = (maximum: number) => limitOf(maximum);

export const listOf = <Item extends z.ZodType>(item: Item) =>
  z.object({ items: z.array(item), nextCursor: z.string().nullable() });

/** A whole list on one page. */
export const onePage = <Item>(items: Item[]): { items: Item[]; nextCursor: null } => ({ items, nextCursor: null });

export const jsonBody = <Schema extends z.ZodType>(schema: Schema) => ({
  required: true as const,
  content: { "application/json": { schema } },
});

export const answers = <Schema extends z.ZodType>(schema: Schema, description: string) => ({
  description,
  content: { "application/json": { schema } },
});

export const nothing = { description: "Done; the answer has no body" };

export const idempotencyHeader = "idempotency-key";
export const IdempotencyHeaders = z.object({
  [idempotencyHeader]: z
    .string()
    .regex(/^[\x21-\x7e]{1,255}$/, "must be 1–255 visible ASCII characters")
    .optional()
    .meta({ description: "Sent again with the same body, it gets the same answer and makes nothing twice" }),
});

const common: ErrorCode[] = [
  "unauthorized",
  "token_expired",
  "forbidden",
  "acting_entity_required",
  "rate_limited",
  "internal",
  "unavailable",
];

const retryAfter = { description: "When to try again, in seconds", schema: { type: "integer" as const } };

/**
 * The problems that a route answers, besides those of every route with a caller. They show in the OpenAPI document;
 * handlers throw them, so they are no part of what a handler returns.
 */
export const problems = (...codes: ErrorCode[]): Record<never, never> => {
  const byStatus = new Map<number, ErrorCode[]>();
  for (const code of new Set([...codes, ...common])) {
    const { status } = errorKind(code);
    byStatus.set(status, [...(byStatus.get(status) ?? []), code]);
  }
  return Object.fromEntries(
    [...byStatus].map(([status, all]) => [
      status,
      {
        description: all.map((code) => `\`${code}\`: ${errorKind(code).title}`).join("; "),
        ...(all.some((code) => errorKind(code).retryable) ? { headers: { "Retry-After": retryAfter } } : {}),
        content: { "application/problem+json": { schema: Problem } },
      },
    ]),
  );
};

/** What a route with a body may answer to a bad one. */
export const badBody: ErrorCode[] = ["invalid_json", "invalid_request", "payload_too_large"];
/** What a route with an `Idempotency-Key` may answer. */
export const badRepeat: ErrorCode[] = ["idempotency_mismatch", "idempotency_in_progress"];
