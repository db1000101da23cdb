import * as z from "zod";
import { rootHeader } from "../auth/root-header.ts";
import { entityId, workspaceId } from "../protocol/ids.ts";
import type { ErrorCode } from "../shared/errors.ts";

/** The pieces that routes' definitions are put together from. */

const defaultLimit = 50;

/** A whole number in a query. */
export const queryNumber = (minimum: number, maximum: number) =>
  z
    .string()
    .regex(/^\d{1,15}$/, `must be a whole number from ${minimum} to ${maximum}`)
    .transform(Number)
    .refine((value) => value >= minimum && value <= maximum, `must be from ${minimum} to ${maximum}`)
    .meta({ type: "integer", minimum, maximum });

export const limitQuery = (
  maximum: number,
  usual = Math.min(defaultLimit, maximum),
  what = "How many items a page holds",
) => queryNumber(1, maximum).default(usual).meta({ description: what, default: usual });

const cursor = z.string().max(200).optional().meta({ description: "The nextCursor of the page before" });

export const pageQuery = (maximum = 100) => z.object({ limit: limitQuery(maximum), cursor });

/** The problems of a bad `pageQuery`. */
export const badPage: ErrorCode[] = ["invalid_request", "invalid_cursor"];

/** For what browsers open without headers. It is read with the credentials. */
export const streamQuery = z.object({
  as: entityId.optional().meta({ description: "As `X-Entity-Id`, for browsers, which cannot set headers here" }),
  workspace: workspaceId.optional().meta({ description: "As `X-Workspace-Id`, for the JWT of a workspace's own user" }),
});

export const listOf = <Item extends z.ZodType>(item: Item) =>
  z.object({ items: z.array(item), nextCursor: z.string().nullable() });

/** A whole list on one page. */
export const onePage = <Item>(items: Item[]): { items: Item[]; nextCursor: null } => ({ items, nextCursor: null });

export const RootHeaders = z.object({
  [rootHeader]: z.string().max(1000).optional().meta({
    description: "As a tool's request brought it: the event goes on in that chain. Pass it on unread, within 24 hours",
  }),
});

export const idempotencyHeader = "idempotency-key";
export const IdempotencyHeaders = z.object({
  [idempotencyHeader]: z
    .string()
    .regex(/^[\x21-\x7e]{1,255}$/, "must be 1–255 visible ASCII characters")
    .optional()
    .meta({ description: "Sent again with the same body, it gets the same answer and makes nothing twice" }),
});
