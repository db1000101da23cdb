import { eq } from "drizzle-orm";
import type { AuditActor } from "../protocol/audit.ts";
import type { Erasure } from "../protocol/erasure.ts";
import type { WorkspaceOverview } from "../protocol/workspace.ts";
import { countOf } from "../shared/database.ts";
import { ColloquyError } from "../shared/errors.ts";
import { registeredOf, type WorkspaceRow } from "./registry.ts";
import { entities, spaces, workspaces } from "./schema.ts";
import type { WorkspaceServices } from "./services.ts";

const operator = { id: "operator" };

export const overviewOf = (
  { db, keys, databaseBytes, outbox, erasures }: WorkspaceServices,
  row: WorkspaceRow,
): WorkspaceOverview => {
  const ofType = (type: "human" | "service" | "agent"): number => countOf(db, entities, eq(entities.type, type));
  const erasure = erasures.find(row.id);
  const counts = { people: ofType("human"), services: ofType("service"), agents: ofType("agent") };
  return {
    ...registeredOf(row),
    counts: { ...counts, spaces: countOf(db, spaces, eq(spaces.deleted, false)), keys: keys.all().length },
    bytes: databaseBytes(),
    waiting: outbox.waiting() + erasures.left(),
    ...(erasure && { erasure }),
  };
};

const change = (
  { db, self, registered }: WorkspaceServices,
  row: WorkspaceRow,
  changes: Partial<Pick<WorkspaceRow, "suspended" | "deletedAt">>,
): WorkspaceRow => {
  db.update(workspaces).set(changes).run();
  self.forget();
  registered();
  return { ...row, ...changes };
};

/** Again with another reason, it is still suspended since it was. */
export const suspend = (services: WorkspaceServices, row: WorkspaceRow, reason: string | null): WorkspaceOverview => {
  if (reason === null ? row.suspended === null : row.suspended?.reason === reason) return overviewOf(services, row);
  const { clock, audit, outbox } = services;
  const suspended = reason === null ? null : { at: row.suspended?.at ?? clock.now(), reason };
  const next = change(services, row, { suspended });
  const [action, detail] =
    reason === null ? (["workspace.resumed", {}] as const) : (["workspace.suspended", { reason }] as const);
  audit.note({ action, actor: operator, target: row.id, detail });
  if ((row.suspended === null) !== (suspended === null)) outbox.suspensionChanged();
  if (suspended === null) services.auditWebhook.resume();
  return overviewOf(services, next);
};

/**
 * The workspace is over: its keys and tokens count no more, and all that is in it is erased. Its row stays, so that it is over
 * for good.
 */
export const end = (services: WorkspaceServices, row: WorkspaceRow, by: AuditActor = operator): Erasure => {
  const { clock, audit, erasures } = services;
  audit.note({ action: "workspace.deleted", actor: by, target: row.id });
  const erasure = erasures.begin({ kind: "workspace", id: row.id }, by);
  change(services, row, { deletedAt: clock.now() });
  return erasure;
};

/** By its operator. */
export const endSuspended = (services: WorkspaceServices, row: WorkspaceRow): WorkspaceOverview => {
  if (row.suspended === null) {
    const detail = "The workspace is not suspended: suspend it first, and wait until `waiting` is 0.";
    throw new ColloquyError("conflict", detail);
  }
  end(services, row);
  return overviewOf(services, services.self.get() ?? row);
};
