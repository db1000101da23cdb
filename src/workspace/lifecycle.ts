import { eq } from "drizzle-orm";
import type { WorkspaceOverview } from "../protocol/workspace.ts";
import { countOf } from "../shared/database.ts";
import { ColloquyError } from "../shared/errors.ts";
import { registeredOf, type WorkspaceRow } from "./registry.ts";
import { entities, spaces, workspaces } from "./schema.ts";
import type { WorkspaceServices } from "./services.ts";

const operator = { id: "operator" };

export const overviewOf = (
  { db, keys, databaseBytes, outbox }: WorkspaceServices,
  row: WorkspaceRow,
): WorkspaceOverview => {
  const ofType = (type: "human" | "service" | "agent"): number => countOf(db, entities, eq(entities.type, type));
  const counts = { people: ofType("human"), services: ofType("service"), agents: ofType("agent") };
  return {
    ...registeredOf(row),
    counts: { ...counts, spaces: countOf(db, spaces, eq(spaces.deleted, false)), keys: keys.all().length },
    bytes: databaseBytes(),
    waiting: outbox.waiting(),
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
  return overviewOf(services, next);
};

/**
 * The workspace is over: its keys and tokens count no more, and a job for each space and agent ends it. The row stays, so
 * that it is over for good.
 */
export const end = (services: WorkspaceServices, row: WorkspaceRow): WorkspaceOverview => {
  if (row.suspended === null) {
    throw new ColloquyError(
      "conflict",
      "The workspace is not suspended: suspend it first, and wait until `waiting` is 0.",
    );
  }
  const { clock, audit, outbox } = services;
  const next = change(services, row, { deletedAt: clock.now() });
  audit.note({ action: "workspace.deleted", actor: operator, target: row.id });
  outbox.workspaceEnded();
  return overviewOf(services, next);
};
