import * as z from "zod";
import { entityId, runId, toolCallId } from "./ids.ts";
import { component, Label, strictComponent, Timestamp } from "./text.ts";

/** The host of an address, with its port where that is not the usual one. */
export const hostOf = (url: string): string => (URL.canParse(url) ? new URL(url).host : "");

const maxHosts = 50;
const maxAgents = 100;

/** A host as addresses have it. */
const Host = z
  .string()
  .min(1)
  .max(253)
  .transform((host) => host.toLowerCase())
  .refine(
    (host) => /^[a-z0-9.:[\]-]+$/.test(host) && hostOf(`https://${host}`) === host,
    "must be a host such as api.example.com, or host:port",
  )
  .meta({ example: "api.example.com" });

const bounds = {
  hosts: z.array(Host).min(1).max(maxHosts).optional().describe("Where it may be sent; left out: anywhere"),
  agents: z.array(entityId).min(1).max(maxAgents).optional().describe("Who may use it; left out: each agent"),
};
export const SecretBounds = z.object(bounds);
export type SecretBounds = z.infer<typeof SecretBounds>;

/** A workspace secret: at most 8 KiB, written and never read back. */
export const PutSecret = strictComponent("PutSecret", { value: z.string().min(1).max(8192), ...bounds });

export const Secret = component("Secret", { name: Label, ...bounds, updatedAt: Timestamp });
export type Secret = z.infer<typeof Secret>;

const kinds = ["tool", "mcp", "model", "embedder", "summary", "router"] as const;

/** What a secret is opened for. `cause`: the run or the tool call, or both with a space between. */
export type SecretUse = { kind: (typeof kinds)[number]; name: string; url: string; cause?: string };

/** Where a secret went, without its value. */
export const SecretUsed = component("SecretUsed", {
  agentId: entityId,
  spaceId: z.string().optional().describe("The confidential space whose compartment used it"),
  kind: z.enum(kinds),
  by: z.string().describe("The tool, the MCP server or the model"),
  host: z.string(),
  runId: runId.optional(),
  toolCallId: toolCallId.optional(),
  times: z.int(),
  firstAt: Timestamp,
  lastAt: Timestamp,
});
export type SecretUsed = z.infer<typeof SecretUsed>;
