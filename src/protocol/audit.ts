import * as z from "zod";
import { entityId, keyId } from "./ids.ts";
import type { Principal } from "./principal.ts";
import { component, Timestamp } from "./text.ts";

/** What the audit log notes. A new act of consequence gets its name here. */
export const AuditAction = z.enum([
  "key.created",
  "key.changed",
  "key.rolled",
  "key.revoked",
  "token.minted",
  "link.made",
  "session.began",
  "session.ended",
  "auth.changed",
  "auth.deleted",
  "entity.signed_out",
  "entity.role_changed",
  "entity.identified",
  "entity.removed",
  "secret.put",
  "secret.deleted",
  "secret.used",
  "secrets.resealed",
  "approval.answered",
  "space.read",
  "space.deleted",
  "space.retention",
  "message.deleted",
  "agent.read",
  "erasure.began",
  "erasure.done",
  "agent.changed",
  "agent.deleted",
  "agent.exported",
  "agent.imported",
  "workspace.created",
  "workspace.changed",
  "workspace.limited",
  "workspace.suspended",
  "workspace.resumed",
  "workspace.deleted",
  "endpoint.created",
  "endpoint.changed",
  "endpoint.rolled",
  "endpoint.redelivered",
  "endpoint.disabled",
  "endpoint.deleted",
  "storage.near",
  "tokens.spent",
  "limit.reached",
  "audit.exported",
  "audit.pruned",
]);
export type AuditAction = z.infer<typeof AuditAction>;

/** Ids, names of settings, hashes and numbers: never a token, a secret or a word that somebody said. */
const AuditDetail = z.record(z.string(), z.union([z.string(), z.number(), z.boolean()]));

/** Who did it: the id of an entity or a key, `operator`, or `workspace` for what it did itself. */
export const AuditActor = z.object({
  id: z.string(),
  /** The entity as which a key acted. */
  as: z.string().optional(),
  /** Who had made the session for the entity. */
  impersonatedBy: z.string().optional(),
});
export type AuditActor = z.infer<typeof AuditActor>;

/** An act to be noted. `once`: another note under the same name changes nothing. `at`: when it was, if not just now. */
export const AuditNote = z.object({
  action: AuditAction,
  actor: AuditActor,
  target: z.string(),
  detail: AuditDetail.optional(),
  once: z.string().optional(),
  at: z.number().optional(),
});
export type AuditNote = z.infer<typeof AuditNote>;

export const AuditEntry = component("AuditEntry", {
  at: Timestamp,
  action: AuditAction,
  actor: AuditActor,
  target: z.string().meta({ description: "The id, or the name, of what it was done to" }),
  detail: AuditDetail,
});
export type AuditEntry = z.infer<typeof AuditEntry>;

/** Entries that meet all of these. `from` and `to` are the first moment and the one after the last. */
export const auditFilters = {
  action: AuditAction.optional(),
  actor: z
    .union([entityId, keyId, z.enum(["operator", "workspace"])], "must be the id of an entity or a key, or `operator`")
    .optional(),
  target: z.string().trim().min(1).max(200).optional(),
  from: Timestamp.optional(),
  to: Timestamp.optional(),
};
export type AuditFilters = z.infer<z.ZodObject<typeof auditFilters>>;

export const actorOf = (principal: Principal): AuditActor => {
  if (principal.kind === "entity") {
    const { entityId: id, impersonatedBy } = principal;
    return { id, ...(impersonatedBy !== undefined && { impersonatedBy }) };
  }
  const { keyId: id, entityId } = principal;
  return { id, ...(entityId !== undefined && { as: entityId }) };
};

/** The name of an act that is noted at most once in an hour. */
export const hourly = (at: number, ...names: string[]): string => `${names.join(" ")} ${Math.floor(at / 3_600_000)}`;
