import { and, desc, eq, gte, isNotNull, lt, lte, max, min } from "drizzle-orm";
import type { EndpointDelivery } from "../protocol/endpoint.ts";
import type { Page, PageRequest } from "../protocol/rpc.ts";
import { type Clock, isoTime } from "../shared/clock.ts";
import { type Database, placeholders, prepared } from "../shared/database.ts";
import { ColloquyError } from "../shared/errors.ts";
import { pageOf } from "../shared/page.ts";
import { withoutNulls } from "../shared/without-nulls.ts";
import { deliveriesAgeMs, maxDeliveries } from "./bounds.ts";
import { deliveries } from "./schema.ts";

type Row = typeof deliveries.$inferSelect;

const columns = ["sourceId", "seq", "webhookId", "type", "events", "at", "attempt"] as const;
const results = ["isDelivered", "status", "ms", "answer", "error"] as const;
const insert = prepared((db) => db.insert(deliveries).values(placeholders([...columns, ...results])));
type Try = Omit<Row, "position">;

const viewOf = ({
  webhookId: id,
  sourceId,
  type,
  events,
  at,
  attempt,
  isDelivered,
  ms,
  ...row
}: Row): EndpointDelivery => {
  const { status, answer, error } = row;
  return {
    ...{ id, type, events, at: isoTime(at), attempt, isDelivered, ms },
    ...(sourceId.startsWith("spc_") && { spaceId: sourceId }),
    ...withoutNulls({ status, answer, error }),
  };
};

/**
 * The tries of the last days: what was sent when, and what came of it.
 *
 * Invariants
 * 1. A try is in memory until `store`, which may be a moment later.
 * 2. A server may repeat what it was told. So answers about a source are forgotten where words of it were taken back.
 */
export const createDeliveries = (db: Database, clock: Clock) => {
  const untold: Try[] = [];
  const forget = (isMeant = isNotNull(deliveries.answer)): number => {
    const set = { answer: null };
    return db.update(deliveries).set(set).where(isMeant).returning({ at: deliveries.at }).all().length;
  };

  /** The places of the tries that are kept. */
  const places = (): { first: number; newest: number } => {
    const { position } = deliveries;
    const row = db
      .select({ first: min(position), newest: max(position) })
      .from(deliveries)
      .get();
    return { first: row?.first ?? 0, newest: row?.newest ?? 0 };
  };

  /** Removes tries that are older than `deliveriesAgeMs`. Answers when to look again. */
  const prune = (): number | undefined => {
    db.delete(deliveries)
      .where(lt(deliveries.at, clock.now() - deliveriesAgeMs))
      .run();
    const first = db
      .select({ at: min(deliveries.at) })
      .from(deliveries)
      .get()?.at;
    return typeof first === "number" ? first + deliveriesAgeMs + 1 : undefined;
  };

  const store = (): void => {
    if (untold.length === 0) return;
    for (const each of untold.splice(0)) insert(db).run({ ...each, isDelivered: Number(each.isDelivered) });
    db.delete(deliveries)
      .where(lte(deliveries.position, places().newest - maxDeliveries))
      .run();
  };

  return {
    store,
    prune,
    note: (tried: Try): void => void untold.push(tried),

    /** Newest first. */
    page(request: PageRequest): Page<EndpointDelivery> {
      store();
      const isRecent = gte(deliveries.at, clock.now() - deliveriesAgeMs);
      const read = ({ from = Number.MAX_SAFE_INTEGER, limit }: { from: number | undefined; limit: number }) =>
        db
          .select()
          .from(deliveries)
          .where(and(isRecent, lt(deliveries.position, from)))
          .orderBy(desc(deliveries.position))
          .limit(limit)
          .all();
      return pageOf(request, read, viewOf);
    },

    /** Of each source, the first place of what was sent since then. Throws `limit_reached` where not all of it is known. */
    firstSince(from: number): { sourceId: string; seq: number }[] {
      store();
      const { first, newest } = places();
      const known =
        db.select({ at: deliveries.at }).from(deliveries).where(eq(deliveries.position, first)).get()?.at ?? 0;
      if (from < known && newest - first + 1 >= maxDeliveries) {
        const most = `The newest ${maxDeliveries} deliveries alone are known (maxDeliveries)`;
        throw new ColloquyError("limit_reached", `${most}: send again from ${isoTime(known)} on`);
      }
      const seq = min(deliveries.seq);
      const rows = db.select({ sourceId: deliveries.sourceId, seq }).from(deliveries).where(gte(deliveries.at, from));
      return rows
        .groupBy(deliveries.sourceId)
        .all()
        .map((row) => ({ ...row, seq: row.seq ?? 0 }));
    },

    /** Answers how many were forgotten. */
    forgetAnswers(sourceId?: string): number {
      store();
      return forget(sourceId === undefined ? undefined : eq(deliveries.sourceId, sourceId));
    },
  };
};
export type Deliveries = ReturnType<typeof createDeliveries>;
