import { and, asc, count, desc, eq, gt, gte, lt, lte, max, min } from "drizzle-orm";
import type { AuditEntry, AuditFilters, AuditNote } from "../protocol/audit.ts";
import type { Page, PageRequest } from "../protocol/rpc.ts";
import { type Clock, isoTime } from "../shared/clock.ts";
import { among, countOf, type Database, Remembered } from "../shared/database.ts";
import { pageOf } from "../shared/page.ts";
import { withoutNulls } from "../shared/without-nulls.ts";
import type { Timers } from "../timers/timers.ts";
import { auditAgeMs, maxAuditEntries } from "./bounds.ts";
import { audit } from "./schema.ts";

export const auditTimer = "audit";
/** Entries that leave at once where the log is full: this part of it. */
const prunedPart = 100;
/** How often what is too old is looked for. */
const pruneEveryMs = 24 * 60 * 60_000;

/** An older worker does not say by whose right it asks. */
export const unknownActor = { id: "unknown" };

type Row = typeof audit.$inferSelect;

const entryOf = ({ at, action, actor, actorAs, impersonatedBy, target, detail }: Row): AuditEntry => ({
  ...{ at: isoTime(at), action, target, detail: detail ?? {} },
  actor: { id: actor, ...withoutNulls({ as: actorAs, impersonatedBy }) },
});

export type Audit = ReturnType<typeof createAudit>;

/**
 * What was done in the workspace, by whom and to what.
 *
 * Invariants
 * 1. An act is noted in the transaction that does it. What a space does comes by its job, once.
 * 2. Nothing changes an entry. One leaves by its age, or where the log is full: the oldest of the act that
 *    there is most of. A note says how many. So nobody washes other acts out by doing again and again what is cheap.
 */
export const createAudit = (
  db: Database,
  clock: Clock,
  timers: Timers,
  { entries: most, ageMs } = { entries: maxAuditEntries, ageMs: auditAgeMs },
  /** Something new is in it, at this place. In the transaction. */
  noted: (position: number) => void = () => undefined,
) => {
  const held = new Remembered(db, () => countOf(db, audit));

  const insert = ({ actor, at = clock.now(), detail, once, ...act }: AuditNote): boolean => {
    const { id, as, impersonatedBy } = actor;
    const who = { actor: id, actorAs: as ?? null, impersonatedBy: impersonatedBy ?? null };
    const before = held.get();
    const row = { ...act, ...who, at, detail: detail ?? null, once: once ?? null };
    const returned = { position: audit.position };
    const [added] = db.insert(audit).values(row).onConflictDoNothing().returning(returned).all();
    if (!added) return false;
    held.set(before + 1);
    noted(added.position);
    return true;
  };

  const left = (entries: number): void => {
    held.forget();
    if (entries === 0) return;
    insert({ action: "audit.pruned", actor: { id: "workspace" }, target: "audit", detail: { entries } });
  };

  const makeRoom = (): void => {
    const rows = count();
    const [first] = db
      .select({ action: audit.action, rows })
      .from(audit)
      .groupBy(audit.action)
      .orderBy(desc(rows))
      .limit(1)
      .all();
    const isMost = first && eq(audit.action, first.action);
    const oldest = db.select({ position: audit.position }).from(audit).where(isMost).orderBy(asc(audit.position));
    const leaving = oldest.limit(Math.ceil(most / prunedPart)).all();
    const positions = leaving.map(({ position }) => position);
    db.delete(audit).where(among(audit.position, positions)).run();
    left(positions.length);
  };

  return {
    /** Belongs in the transaction of what it notes. */
    note(act: AuditNote): void {
      if (!insert(act)) return;
      if (held.get() > most) makeRoom();
      if (timers.dueAt(auditTimer) === undefined) timers.set(auditTimer, clock.now() + ageMs);
    },

    /** The place of the newest entry. */
    newest: (): number =>
      db
        .select({ at: max(audit.position) })
        .from(audit)
        .get()?.at ?? 0,

    /** The entry at a place. */
    at(position: number): AuditEntry | undefined {
      const row = db.select().from(audit).where(eq(audit.position, position)).get();
      return row && entryOf(row);
    },

    /** The first entry after a place. */
    after(position: number): { position: number; entry: AuditEntry } | undefined {
      const isLater = gt(audit.position, position);
      const row = db.select().from(audit).where(isLater).orderBy(asc(audit.position)).limit(1).get();
      return row && { position: row.position, entry: entryOf(row) };
    },

    /** Newest first. */
    page({ action, actor, target, from, to, ...request }: PageRequest & AuditFilters): Page<AuditEntry> {
      const isMeant = and(
        action && eq(audit.action, action),
        actor === undefined ? undefined : eq(audit.actor, actor),
        target === undefined ? undefined : eq(audit.target, target),
        from === undefined ? undefined : gte(audit.at, Date.parse(from)),
        to === undefined ? undefined : lt(audit.at, Date.parse(to)),
      );
      const read = ({ from: before, limit }: { from: number | undefined; limit: number }): Row[] => {
        const isNext = and(isMeant, before === undefined ? undefined : lt(audit.position, before));
        return db.select().from(audit).where(isNext).orderBy(desc(audit.position)).limit(limit).all();
      };
      return pageOf(request, read, entryOf);
    },

    /** The timer `audit` went off: what is too old leaves. */
    onTimer: (): void =>
      db.transaction(() => {
        const now = clock.now();
        const isOld = lte(audit.at, now - ageMs);
        const entries = countOf(db, audit, isOld);
        db.delete(audit).where(isOld).run();
        left(entries);
        const first = db
          .select({ at: min(audit.at) })
          .from(audit)
          .get()?.at;
        if (typeof first === "number") timers.set(auditTimer, Math.max(first + ageMs, now + pruneEveryMs));
      }),
  };
};
