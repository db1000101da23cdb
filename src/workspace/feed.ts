import { and, asc, eq, gt, lt, lte, max, or } from "drizzle-orm";
import type { Env } from "../env/env.ts";
import { isMeant, type WorkspaceEvent, workspaceEvents } from "../protocol/endpoint.ts";
import type { AskedEvents, ToldEvent, ToldEvents } from "../protocol/endpoint-rpc.ts";
import { type Clock, isoTime } from "../shared/clock.ts";
import { type Database, Remembered } from "../shared/database.ts";
import { ColloquyError } from "../shared/errors.ts";
import { compartmentId, type Ids } from "../shared/ids.ts";
import { withTimeout } from "../shared/timeouts.ts";
import type { Jobs } from "../timers/jobs.ts";
import type { Audit } from "./audit.ts";
import { feedAgeMs, maxFeedEvents, maxFeedPage, maxTellsAtOnce, tellTimeoutMs } from "./bounds.ts";
import type { Directory } from "./directory.ts";
import type { EndpointRow, Endpoints } from "./endpoints.ts";
import { feed } from "./schema.ts";
import type { WaitingCalls } from "./waiting-calls.ts";

const kind = "feed";

type Around = {
  env: Env;
  db: Database;
  clock: Clock;
  jobs: Jobs;
  ids: () => Ids;
  workspaceId: () => string;
  audit: Pick<Audit, "at">;
  directory: Pick<Directory, "find">;
  waitingCalls: Pick<WaitingCalls, "find">;
  endpoints: () => Endpoints;
};

/**
 * What happened in the workspace itself, for its endpoints: a source as each space's log is one.
 *
 * Invariants
 * 1. It holds ids alone. What an event tells is read when it is sent: a name that was erased is not in it.
 * 2. An endpoint has a job while it was not told of all of it. Nothing is kept where no endpoint names the event.
 * 3. Of calls of confidential spaces those endpoints are told that name the space (C19).
 */
export const createFeed = (around: Around) => {
  const { env, db, clock, jobs, ids, workspaceId, audit, directory, waitingCalls, endpoints } = around;
  const newest = new Remembered(
    db,
    () =>
      db
        .select({ position: max(feed.position) })
        .from(feed)
        .get()?.position ?? 0,
  );

  jobs.handle(kind, {
    atOnce: maxTellsAtOnce,
    async run({ key }) {
      for (;;) {
        const row = endpoints().find(key);
        const cursor = newest.get();
        if (!row || row.toldTo >= cursor) return undefined;
        const news = { workspaceId: workspaceId(), sourceId: workspaceId(), after: row.toldTo, cursor };
        const told = await withTimeout(tellTimeoutMs, env.ENDPOINT.getByName(key).deliver(news));
        // Its object is being made.
        if (!told.ok) throw new ColloquyError("unavailable", told.problem.detail);
        endpoints().told(key, cursor);
      }
    },
  });

  /** A call of a confidential space is told where the endpoint names that space. */
  const hears = (
    { spaceIds }: EndpointRow,
    { toolCallId, agentId }: { toolCallId: string; agentId: string },
  ): boolean => {
    const mind = ids().ownerOf("tc", toolCallId);
    if (!ids().isCompartment(mind)) return true;
    return (spaceIds ?? []).some((spaceId) => compartmentId(ids(), agentId, spaceId) === mind);
  };

  /** What an event tells now; undefined where there is nothing to tell any more. */
  const dataOf = (endpoint: EndpointRow, { type, subject }: typeof feed.$inferSelect): object | undefined => {
    if (type === "audit.entry") return audit.at(Number(subject));
    if (type === "tool_call.waiting") {
      const call = waitingCalls.find(subject);
      return call && hears(endpoint, call) ? { call } : undefined;
    }
    return { entity: directory.find(subject) ?? { id: subject } };
  };

  const eventOf = (endpoint: EndpointRow, row: typeof feed.$inferSelect): ToldEvent[] => {
    const data = dataOf(endpoint, row);
    if (!data) return [];
    const { position: seq, type, at } = row;
    const told = JSON.stringify({ workspaceId: workspaceId(), ...data });
    return [{ id: `${workspaceId()}_${seq}`, seq, type, timestamp: isoTime(at), data: told }];
  };

  return {
    newest: (): number => newest.get(),

    /** In the transaction of what happened. */
    add(type: WorkspaceEvent, subject: string): void {
      const wanting = endpoints().wanting(type);
      if (wanting.length === 0) return;
      const at = clock.now();
      const { position } = db.insert(feed).values({ at, type, subject }).returning({ position: feed.position }).get();
      newest.set(position);
      const isOld = or(lt(feed.at, at - feedAgeMs), lte(feed.position, position - maxFeedEvents));
      db.delete(feed).where(isOld).run();
      for (const { id } of wanting) jobs.set({ kind, key: id });
    },

    /** For an endpoint: what it names of what happened after a place. */
    toldTo({ endpointId, after, types }: AskedEvents): ToldEvents {
      const endpoint = endpoints().find(endpointId);
      if (!endpoint) throw new ColloquyError("not_found", "There is no such endpoint");
      const isWanted = or(...workspaceEvents.filter((type) => isMeant(types, type)).map((type) => eq(feed.type, type)));
      const isNext = and(gt(feed.position, after), isWanted);
      const rows = isWanted
        ? db.select().from(feed).where(isNext).orderBy(asc(feed.position)).limit(maxFeedPage).all()
        : [];
      const last = rows.length < maxFeedPage ? undefined : rows.at(-1)?.position;
      return { events: rows.flatMap((row) => eventOf(endpoint, row)), cursor: last ?? Math.max(after, newest.get()) };
    },
  };
};
export type Feed = ReturnType<typeof createFeed>;
