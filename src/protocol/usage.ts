import * as z from "zod";
import { component } from "./text.ts";

/** Days for which a workspace keeps what was used. */
export const usageDays = 100;

const used = {
  tokens: z.int().meta({ description: "That models billed; 0 for what no agent's ledger, and no router's, counts" }),
  runs: z.int().meta({ description: "Runs of agents that began" }),
  messages: z.int().meta({ description: "Messages that were said, deleted ones among them" }),
};
const Used = z.object(used);

export const UsageBy = z.enum(["agent", "person", "space", "day"]);
export type UsageBy = z.infer<typeof UsageBy>;

export const UsageEntry = component("UsageEntry", {
  id: z.string().optional().meta({ description: "The agent, the person or service, or the space; none of a day" }),
  day: z.iso.date().optional().meta({ description: "UTC; with `by=day` alone" }),
  ...used,
});
export type UsageEntry = z.infer<typeof UsageEntry>;

const day = (what: string) =>
  z.iso
    .date()
    .optional()
    .meta({ description: `${what} day, UTC: 2026-11-24` });

/** Which days, and by what they are told apart. */
export const usageFilters = {
  by: UsageBy.default("day"),
  from: day("The first"),
  to: day("The last"),
};

export const UsagePage = z.object({
  items: z.array(UsageEntry),
  nextCursor: z.string().nullable(),
  from: z.iso.date(),
  to: z.iso.date(),
  total: Used.meta({ description: "Of all that the caller may see in these days, whatever page this is" }),
});
export type UsagePage = z.infer<typeof UsagePage>;

export type UsageRequest = {
  by: UsageBy;
  from: string;
  to: string;
  limit: number;
  cursor?: string | undefined;
  /** The people who ask; left out for a key. Where one of them is not in a confidential space, only its tokens are told (C19). */
  readers?: string[];
};

/** From this part of its room on, something is near its end. */
export const nearPart = 0.8;

/** What an agent's mind, or a space, stores, and what it may store. */
export const StorageUse = component("StorageUse", {
  bytes: z.int(),
  maxBytes: z.int(),
  state: z.enum(["ok", "near", "full"]).meta({
    description:
      "`near` from 80 % on. `full`: what is new is refused, by this bound or by the workspace's own maxStorageBytes, and what is there can be read and deleted",
  }),
});
export type StorageUse = z.infer<typeof StorageUse>;

/** `all` of the one who tells; of an agent, its own id is the subject. */
export type UsageKind = "all" | "agent" | "person" | "space";

/** So many, of this kind and subject, on this day. */
export type UsageRow = [day: string, kind: UsageKind, subject: string, count: number];

/**
 * A report of an agent's mind, or of a space, to its workspace. `tokens` replace those of the same day, kind and
 * subject. `counted` are runs, or a space's messages, of the rows after `after` up to `upTo`: they are added once.
 */
export type UsageReport = {
  reporter: string;
  tokens: UsageRow[];
  counted?: { after: number; upTo: number; rows: UsageRow[] } | undefined;
  /** The bytes that it stores now, and that it may store. */
  bytes?: number | undefined;
  maxBytes?: number | undefined;
};

/** Up to which of its rows it has told; and that its workspace stores all that it may. */
export type UsageHeard = { upTo: number; isFull?: boolean | undefined };
