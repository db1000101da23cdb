import * as z from "zod";

/**
 * Ids on the wire: `prefix_` + ULID + 8 characters that prove it was issued here (`shared/ids.ts` makes and checks
 * them). Inside a space or an agent, the owner's ULID stands before the thing's own.
 */
const ownPrefixes = ["wsp", "ent", "spc", "key", "str", "ep", "dev"] as const;

export type OwnPrefix = (typeof ownPrefixes)[number];
export type OwnedPrefix = "msg" | "run" | "tc" | "pln" | "hook" | "evt" | "arch";
export type IdPrefix = OwnPrefix | OwnedPrefix;

export const idPattern = (prefix: IdPrefix): RegExp =>
  new RegExp(`^${prefix}_[0-9A-HJKMNP-TV-Z]{${ownPrefixes.some((own) => own === prefix) ? 34 : 60}}$`);

const id = (prefix: IdPrefix, what: string) =>
  z
    .string()
    .regex(idPattern(prefix), `must be ${what} (${prefix}_…)`)
    .meta({ example: `${prefix}_…` });

export const workspaceId = id("wsp", "a workspace's id");
export const entityId = id("ent", "an entity's id");
export const spaceId = id("spc", "a space's id");
export const keyId = id("key", "a key's id");
export const messageId = id("msg", "a message's id");
export const runId = id("run", "a run's id");
export const toolCallId = id("tc", "a tool call's id");
export const eventId = id("evt", "an event's id");
export const hookId = id("hook", "a hook's id");
export const archivalId = id("arch", "an archival entry's id");
export const endpointId = id("ep", "an endpoint's id");
export const streamId = id("str", "a stream's id");
export const deviceId = id("dev", "a device's id");
