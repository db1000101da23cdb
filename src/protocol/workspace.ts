import * as z from "zod";
import { Entity } from "./entity.ts";
import { Erasure } from "./erasure.ts";
import { entityId, keyId, workspaceId } from "./ids.ts";
import { RetentionDays } from "./space.ts";
import { component, Label, Name, strictComponent, Timestamp } from "./text.ts";

/** Whether a session that an admin made for another person may answer approvals as that person. */
export const ImpersonatedApprovals = z.enum(["refused", "allowed"]);
export type ImpersonatedApprovals = z.infer<typeof ImpersonatedApprovals>;

/** `secret`: the name of the workspace's secret that signs. */
const AuditWebhook = z.object({ url: z.string().min(1).max(2048), secret: Label });
export type AuditWebhook = z.infer<typeof AuditWebhook>;

const Suspension = z.object({ at: Timestamp, reason: z.string() });

export const Workspace = component("Workspace", {
  id: workspaceId,
  name: z.string(),
  /** An answer that an earlier version kept for a repeated request is without. */
  impersonatedApprovals: ImpersonatedApprovals.default("refused"),
  createdAt: Timestamp,
  retentionDays: RetentionDays.optional().describe("Of spaces that set none of their own; left out: for ever"),
  auditWebhook: AuditWebhook.optional().meta({ description: "Where the audit log is told" }),
  suspended: Suspension.optional().meta({ description: "Since when the operator has it suspended, and why" }),
});
export type Workspace = z.infer<typeof Workspace>;

/** A workspace as the operator's list has it. */
export const RegisteredWorkspace = component("RegisteredWorkspace", {
  id: workspaceId,
  name: z.string(),
  createdAt: Timestamp,
  suspended: Suspension.optional(),
  deletedAt: Timestamp.optional(),
});
export type RegisteredWorkspace = z.infer<typeof RegisteredWorkspace>;

const Count = z.int();
/** A workspace as it is now. */
export const WorkspaceOverview = component("WorkspaceOverview", {
  ...RegisteredWorkspace.shape,
  counts: z.object({ people: Count, services: Count, agents: Count, spaces: Count, keys: Count }),
  bytes: Count.meta({ description: "What the workspace's own object stores, without its spaces and agents" }),
  waiting: Count.meta({
    description:
      "Spaces and agents that are not told of a suspension or a change yet, and those that an erasure visits",
  }),
  erasure: Erasure.optional().meta({ description: "Of a workspace that ends, or has ended" }),
});
export type WorkspaceOverview = z.infer<typeof WorkspaceOverview>;

/** An isolate's counts, by name and labels, and the gauges of the objects in it. */
export type MeterReport = {
  counts: [series: string, added: number][];
  gauges: [family: string, object: string, value: number][];
};

export const SuspendWorkspace = strictComponent("SuspendWorkspace", {
  reason: z.string().trim().min(1).max(500).meta({ description: "Who reads the workspace reads it" }),
});

export const NameOnly = strictComponent("NameOnly", { name: Name });

export const UpdateWorkspace = strictComponent("UpdateWorkspace", {
  name: Name.optional(),
  /** Only a secret key sets it. */
  impersonatedApprovals: ImpersonatedApprovals.optional(),
  retentionDays: RetentionDays.nullable()
    .optional()
    .describe("Days after which messages of spaces that set none of their own are deleted; `null`: never"),
  auditWebhook: AuditWebhook.nullable().optional().meta({
    description: "Each entry of the audit log goes there, from now on. Only a secret key sets it; null ends it",
  }),
});
export type UpdateWorkspace = z.infer<typeof UpdateWorkspace>;

/** What a secret key may do: all; ask (`GET`); sign people in and out; wake agents. */
export const KeyScope = z.enum(["full", "read", "tokens", "hooks"]);
export type KeyScope = z.infer<typeof KeyScope>;

const KeyScopes = z
  .array(KeyScope)
  .min(1)
  .refine((scopes) => new Set(scopes).size === scopes.length, "must name each scope once");

/** A secret key as it is listed. An answer that an earlier version kept for a repeated request has `id` and `createdAt`. */
export const Key = component("Key", {
  id: keyId,
  name: z.string().nullable().default(null),
  scopes: z.array(KeyScope).default(["full"]),
  createdAt: Timestamp,
  lastUsedAt: Timestamp.nullable().default(null).meta({ description: "To the hour; null where it was never used" }),
  expiresAt: Timestamp.nullable().default(null),
});
export type Key = z.infer<typeof Key>;

/** A secret key to be. `by`: the key that asks for it; nobody gets more by it than that key has. `expiresAt`: milliseconds. */
export type NewKey = {
  keyId: string;
  keyHash: string;
  name?: string | undefined;
  scopes?: KeyScope[] | undefined;
  expiresAt?: number | undefined;
  by?: string | undefined;
};

const maxKeySeconds = 10 * 365 * 24 * 60 * 60;
const maxOverlapSeconds = 30 * 24 * 60 * 60;
const dayInSeconds = 24 * 60 * 60;

export const CreateKey = strictComponent("CreateKey", {
  name: Name.optional(),
  scopes: KeyScopes.default(["full"]),
  expiresAt: Timestamp.optional(),
  expiresInSeconds: z.int().min(1).max(maxKeySeconds).optional(),
}).refine(({ expiresAt, expiresInSeconds }) => expiresAt === undefined || expiresInSeconds === undefined, {
  error: "leave it out, or leave expiresAt out: they say the same",
  path: ["expiresInSeconds"],
});
export type CreateKey = z.infer<typeof CreateKey>;

export const UpdateKey = strictComponent("UpdateKey", { name: Name.optional(), scopes: KeyScopes.optional() });
export type UpdateKey = z.infer<typeof UpdateKey>;

export const RollKey = strictComponent("RollKey", {
  overlapSeconds: z.int().min(0).max(maxOverlapSeconds).default(dayInSeconds).meta({
    description: "How long the key until now goes on beside its successor",
  }),
});

const NamedPrint = z.object({ name: z.string(), print: z.string() });

/** How far a workspace's things are sealed by the deployment's first secret. */
export const Reseal = component("Reseal", {
  signing: NamedPrint.describe("The secret that signs and seals. Its print is public, and tells nothing of it"),
  ring: z.array(NamedPrint).describe("All that verify and open, the first one first"),
  state: z.enum(["needed", "running", "done"]).describe("`done`: no other secret is needed here to open anything"),
  startedAt: Timestamp.nullable().describe("When the last one under the signing secret began"),
  agents: z.int().describe("Agents that it had to visit"),
  hanging: z.object({
    secrets: z.array(z.string()).describe("Names of secrets that another one seals still"),
    answers: z.int().describe("Kept answers that another one seals; they are forgotten within a day"),
    agents: z.int().describe("Agents that are not visited yet"),
  }),
  unopened: z.array(z.string()).describe("What no secret of the ring opens: write these anew"),
});
export type Reseal = z.infer<typeof Reseal>;

const maxTokenSeconds = 30 * 24 * 60 * 60;
/** How long a browser stays signed in. */
export const sessionSeconds = maxTokenSeconds;

export const noTokensOfAgents = "An agent speaks through its runs: tokens are for people, services and guest agents.";

export const CreateToken = strictComponent("CreateToken", {
  entityId,
  expiresInSeconds: z.int().min(1).max(maxTokenSeconds).default(3600),
});

export const SignInLink = component("SignInLink", {
  link: z.string().meta({ description: "Opens the page and signs in, once; shown this once" }),
  expiresAt: Timestamp,
});

export const SignIn = strictComponent("SignIn", {
  code: z.string().max(200).meta({ description: "What stands after `#sign-in=` in the link" }),
  replace: z.boolean().default(false).meta({ description: "Take it although the browser has another session" }),
});

/** Who is signed in by a browser's cookie, and until when. `madeBy`: the admin who made it for the person. */
export const Session = component("Session", {
  entity: Entity,
  expiresAt: Timestamp,
  madeBy: z.object({ id: entityId, name: z.string() }).nullable().default(null),
});
export type Session = z.infer<typeof Session>;

export const Token = component("Token", { token: z.string(), expiresAt: Timestamp });
