import { and, asc, desc, eq, gt, isNull, lt, ne, sql } from "drizzle-orm";
import type { Env } from "../env/env.ts";
import type { AuditActor } from "../protocol/audit.ts";
import type { CreateErasure, Erasure, ErasureKind } from "../protocol/erasure.ts";
import type { Redaction } from "../protocol/message-change.ts";
import type { IndexDelivery, Page, PageRequest } from "../protocol/rpc.ts";
import { type Clock, isoTime } from "../shared/clock.ts";
import { countOf, type Database } from "../shared/database.ts";
import { ColloquyError, type Outcome, unwrap } from "../shared/errors.ts";
import { type Crashable, faultOnceStored } from "../shared/fault.ts";
import { pageOf } from "../shared/page.ts";
import { withTimeout } from "../shared/timeouts.ts";
import type { Jobs } from "../timers/jobs.ts";
import type { Audit } from "./audit.ts";
import {
  eraseAgainMs,
  erasePauseMs,
  erasePausePerRowMs,
  maxErasedAtOnce,
  maxErasures,
  maxErasuresAtOnce,
  maxWaitingShown,
  tellTimeoutMs,
} from "./bounds.ts";
import type { Directory } from "./directory.ts";
import type { Endpoints } from "./endpoints.ts";
import { askImported } from "./outbox.ts";
import { erasures, erasureVisits } from "./schema.ts";
import type { SpaceIndex } from "./space-index.ts";

/**
 * An erasure has a job for every object that may hold something, phase by phase, until all of them have let it go.
 *
 * Invariants
 * 1. Each object has a visit, a row that is stored with its job. A visit goes on from its stored state: what a crash
 *    cut is asked again, and nothing is counted twice. Visits stay, with ids and numbers, as long as the erasure does.
 * 2. A phase begins in the transaction that ends the one before. Agents forget an entity's names after the spaces told all of them.
 * 3. After each go of a space no other goes on until its pause is over: people post meanwhile. An object's first visit
 *    waits a little, so that visits under way are done before others begin. One that waits for others holds nobody up.
 *    The pauses are in memory: a crash begins them anew.
 * 4. Names are kept until the end of an erasure. Then ids and numbers are all that is left of it.
 */
const kind = "erase";

type Row = typeof erasures.$inferSelect;
type Visit = typeof erasureVisits.$inferSelect;
type Step = Partial<Pick<Visit, "place" | "upTo">> & {
  rows: number;
  objects: number;
  isDone: boolean;
  names?: string[];
};

/** An agent is visited twice, if it is erased itself: first it takes back what it shared. This is the second time. */
const itsEnd = " end";

/** One that waits is asked less and less often, up to so many times `eraseAgainMs` apart. */
const mostAgain = 4;

/** A first visit waits longer by this, and costs these rows: all in the space hear that the entity has left. */
const firstVisitPauseMs = 300;
const firstVisitRows = 10;

const isMoving = ({ place, upTo }: Step | Visit): boolean => (place ?? 0) < (upTo ?? 0);

type Surroundings = {
  env: Pick<Env, "SPACE" | "AGENT" | "ENDPOINT" | "PERSON">;
  db: Database;
  clock: Clock;
  jobs: Jobs;
  audit: Audit;
  directory: Directory;
  spaces: SpaceIndex;
  endpoints: Pick<Endpoints, "ids">;
  workspaceId: () => string;
  /** The agents that are being ended. */
  ending: () => string[];
  /** Nobody of this id is in the workspace any more. In a transaction. */
  removed: (id: string, by: AuditActor) => void;
  /** Deletes what the workspace's own object holds of it. In a transaction. Answers how many rows that were. */
  purge: (kind: ErasureKind, id: string) => number;
  /** Crashes it in tests. */
  object: Crashable;
};

const modelsWords = "What a model wrote in its own words, and what others said of it in theirs";
const documents = "Blocks and archival entries that agents wrote: the deletion of a message names them";
const outside = "What was sent to models, tools, webhooks and people's devices, or exported: an import brings it back";
const unknownOf: Record<ErasureKind, string[]> = {
  person: [modelsWords, documents, outside],
  agent: [
    modelsWords,
    "What agents were given of blocks, if it was deleted before its erasure; else of one that was taken back from them, or stood in it before its newest 200 versions",
    outside,
  ],
  space: [modelsWords, documents, outside],
  workspace: [outside],
};

export const createErasures = (surroundings: Surroundings) => {
  const { env, db, clock, jobs, audit, directory, spaces, endpoints, workspaceId, ending, removed, purge, object } =
    surroundings;

  const find = (id: string): Row | undefined => db.select().from(erasures).where(eq(erasures.id, id)).get();
  const isOf = (id: string) => eq(erasureVisits.erasureId, id);
  const isOpen = eq(erasureVisits.isDone, false);
  const isVisit = ({ erasureId, target }: Pick<Visit, "erasureId" | "target">) =>
    and(isOf(erasureId), eq(erasureVisits.target, target));

  const phasesOf = ({ id, kind }: Pick<Row, "id" | "kind">): (() => string[])[] => {
    if (kind === "space") return [() => [id], endpoints.ids];
    // An agent that is being deleted still holds all its words.
    const isErased = and(eq(erasures.kind, "agent"), isNull(erasures.completedAt), ne(erasures.id, id));
    const erased = () =>
      db
        .select()
        .from(erasures)
        .where(isErased)
        .all()
        .map((row) => row.id);
    const agents = () => [...new Set([...directory.agentIds(), ...ending(), ...erased()])];
    if (kind === "workspace")
      return [() => [...spaces.allIds(), ...agents(), ...endpoints.ids(), ...directory.peopleIds()]];
    // Its readers forget before they are asked for its name, so that what they changed is counted with that.
    const others = () => [...agents(), ...endpoints.ids()];
    return kind === "person" ? [spaces.allIds, others] : [spaces.allIds, () => [id], others, () => [id + itsEnd]];
  };

  /** When the next go of a space may begin, and the last time that was given to an object that is visited first. */
  let [freeAt, lastGiven] = [0, 0];
  const turn = (): number => {
    lastGiven = Math.max(clock.now(), freeAt + firstVisitPauseMs, lastGiven + erasePauseMs);
    return lastGiven;
  };

  /** Visits that are to begin again, though a go of them may be under way. A crash cuts that go too. */
  const anew = new Set<string>();

  /** Begins visits. A space that was visited before goes on from its place. An agent looks at everything again. */
  const visit = (erasureId: string, targets: string[]): void => {
    for (const target of targets) {
      const again = { target: [erasureVisits.erasureId, erasureVisits.target], set: { isDone: false, upTo: null } };
      db.insert(erasureVisits).values({ erasureId, target }).onConflictDoUpdate(again).run();
      anew.add(`${erasureId} ${target}`);
      jobs.set({ kind, key: `${erasureId} ${target}`, dueAt: turn() });
    }
  };

  const sumsOf = (id: string): Pick<Erasure, "rows" | "objects" | "requests"> =>
    db
      .select({
        requests: sql<number>`coalesce(sum(${erasureVisits.requests}), 0)`,
        rows: sql<number>`coalesce(sum(${erasureVisits.rows}), 0)`,
        objects: sql<number>`coalesce(sum(case when ${erasureVisits.isDone} then ${erasureVisits.objects} else 0 end), 0)`,
      })
      .from(erasureVisits)
      .where(isOf(id))
      .get() ?? { rows: 0, objects: 0, requests: 0 };

  /** Begins the next phase that has anything to visit, if nothing is left of this one. In a transaction. */
  const goOn = (id: string): void => {
    const row = find(id);
    if (!row || countOf(db, erasureVisits, and(isOf(id), isOpen)) > 0) return;
    const phases = phasesOf(row);
    for (let phase = row.phase + 1; phase < phases.length; phase += 1) {
      const targets = phases[phase]?.() ?? [];
      db.update(erasures).set({ phase }).where(eq(erasures.id, id)).run();
      visit(id, targets);
      if (targets.length > 0) return;
    }
    // The workspace's own object is counted once, however often an erasure goes on.
    const own = purge(row.kind, id);
    const end = {
      names: [],
      rows: row.objects === 0 ? own : row.rows,
      objects: row.objects || 1,
      completedAt: clock.now(),
    };
    db.update(erasures).set(end).where(eq(erasures.id, id)).run();
    audit.note({ action: "erasure.done", actor: { id: "workspace" }, target: id, detail: { kind: row.kind } });
  };

  /** A deleted object is done with. */
  const unlessGone = <T>(outcome: Outcome<T>): T | undefined =>
    !outcome.ok && outcome.problem.code === "not_found" ? undefined : unwrap(outcome);

  const askSpace = async ({ id, kind: what }: Row, { target, place, upTo, rows }: Visit): Promise<Step> => {
    const isWhole = what === "space" || what === "workspace";
    const of = isWhole ? null : { entityId: id, after: place, upTo: upTo ?? undefined };
    const done = unlessGone(await env.SPACE.getByName(target).erase(workspaceId(), of));
    if (!done) return { rows, objects: 1, isDone: true };
    const { after, objects, names, isDone } = done;
    return { place: after, upTo: done.upTo, rows: isWhole ? done.rows : rows + done.rows, objects, names, isDone };
  };

  const askAgent = async ({ id, kind: what, names }: Row, { target, upTo, requests }: Visit): Promise<Step> => {
    const agent = env.AGENT.getByName(target.replace(itsEnd, ""));
    const ask = async <T>(question: () => Promise<Outcome<T>>) => unlessGone(await askImported(agent, question));
    // `upTo` says that the visit has begun.
    const done = { rows: 0, objects: 1, isDone: true, upTo: 0 };
    if (what === "workspace" || target.endsWith(itsEnd)) {
      await ask(() => agent.remove(workspaceId()));
      return done;
    }
    if (target === id) {
      const taken = await ask(() => agent.takeBackBlocks(workspaceId()));
      // Else it went on, and gave more of it to others. It is visited once more, and counted then.
      if (taken?.isDone) await ask(() => agent.remove(workspaceId()));
      return { ...done, objects: 0, isDone: taken?.isDone ?? true };
    }
    const isAgain = upTo === null && requests > 0;
    const redaction: Redaction = { id, words: names, since: 0, senderName: names[0], isAgain };
    const told = await ask(() => agent.forgetSpace(workspaceId(), "", redaction));
    return { ...done, rows: told?.rows ?? 0, objects: told?.objects ?? 1, isDone: told?.isDone ?? true };
  };

  /** An endpoint's server may have answered with words that it was told. Of a person goes what they set, and were told. */
  const askOther = async ({ kind: what }: Row, { target }: Visit): Promise<Step> => {
    const done = { rows: 0, objects: 1, isDone: true };
    const objects = target.startsWith("ep_") ? env.ENDPOINT : env.PERSON;
    if (what === "workspace") unlessGone(await objects.getByName(target).remove(workspaceId()));
    else done.rows = unlessGone(await env.ENDPOINT.getByName(target).forgetAnswers(workspaceId())) ?? 0;
    return done;
  };

  const store = (row: Row, before: Visit, { names = [], ...step }: Step): void =>
    db.transaction(() => {
      // In the end an object tells no more of its others, which are gone: the largest number counts.
      const objects = Math.max(step.objects, before.objects);
      // How many rows held the words would prove guesses of what is said there (C19).
      const isHidden = spaces.confidential([]).some(({ id }) => id === before.target);
      const counted = isHidden ? { rows: 0, requests: 1 } : { requests: before.requests + 1 };
      db.update(erasureVisits)
        .set({ ...step, objects, ...counted })
        .where(isVisit(before))
        .run();
      const all = [...new Set([...(find(row.id)?.names ?? []), ...names])];
      if (names.length > 0) db.update(erasures).set({ names: all }).where(eq(erasures.id, row.id)).run();
      if (step.isDone) goOn(row.id);
    });

  jobs.handle(kind, {
    atOnce: maxErasedAtOnce,
    async run({ key }) {
      const [erasureId = "", ...rest] = key.split(" ");
      const row = find(erasureId);
      const before = db
        .select()
        .from(erasureVisits)
        .where(isVisit({ erasureId, target: rest.join(" ") }))
        .get();
      if (!row || !before || before.isDone) return undefined;
      const isFirst = before.requests === 0;
      if (isFirst && clock.now() < freeAt + firstVisitPauseMs) return turn();
      if (isMoving(before) && clock.now() < freeAt) return freeAt;
      // Another that is due now too waits until this one has answered.
      if (isMoving(before)) freeAt = clock.now() + eraseAgainMs;
      await faultOnceStored("workspace.before-tell", object);
      anew.delete(key);
      const isOther = before.target.startsWith("ep_") || directory.find(before.target)?.type === "human";
      const ask = isOther ? askOther : before.target.startsWith("spc_") ? askSpace : askAgent;
      const came = await withTimeout(tellTimeoutMs, ask(row, before));
      const step = anew.has(key) ? { ...came, upTo: null, isDone: false } : came;
      await faultOnceStored("workspace.after-tell", object);
      store(row, before, step);
      const changed = (step.upTo ?? 0) === 0 ? 0 : isFirst ? firstVisitRows : step.rows - before.rows;
      const overAt = clock.now() + erasePauseMs + changed * erasePausePerRowMs;
      if (isMoving(before) || changed > 0) freeAt = overAt;
      if (step.isDone) return undefined;
      return isMoving(step) ? overAt : clock.now() + eraseAgainMs * Math.min(mostAgain, 1 + before.requests / 4);
    },
  });

  const view = (row: Row): Erasure => {
    const { id, kind: what, createdAt, completedAt } = row;
    const open = and(isOf(id), isOpen);
    const { rows, objects, requests } = sumsOf(id);
    const next = db.select().from(erasureVisits).where(open).orderBy(asc(sql`rowid`)).limit(maxWaitingShown).all();
    return {
      ...{ id, kind: what, state: completedAt === null ? "running" : "done" },
      ...{
        objects: row.objects + objects,
        rows: row.rows + rows,
        requests: row.requests + requests,
        left: countOf(db, erasureVisits, open),
      },
      waiting: next.map(({ target }) => target.replace(itsEnd, "")),
      unknown: unknownOf[what],
      createdAt: isoTime(createdAt),
      ...(completedAt !== null && { completedAt: isoTime(completedAt) }),
    };
  };

  const get = (id: string): Row => {
    const row = find(id);
    if (row) return row;
    throw new ColloquyError("not_found", "Nothing of this id was erased: begin it with POST /v1/erasures");
  };

  const makeRoom = (): void => {
    if (countOf(db, erasures, isNull(erasures.completedAt)) >= maxErasuresAtOnce) {
      const most = `${maxErasuresAtOnce} erasures are under way (maxErasuresAtOnce)`;
      throw new ColloquyError("limit_reached", `${most}: wait until one of them is done.`);
    }
    if (countOf(db, erasures) < maxErasures) return;
    const isOver = sql`${erasures.completedAt} is not null`;
    const oldest = db.select({ id: erasures.id }).from(erasures).where(isOver).orderBy(asc(erasures.position)).limit(1);
    for (const { id } of oldest.all()) {
      db.delete(erasures).where(eq(erasures.id, id)).run();
      db.delete(erasureVisits).where(isOf(id)).run();
    }
  };

  /** The names of what is erased. Throws where there is no such thing. */
  const namesOf = ({ kind: what, id }: CreateErasure): string[] => {
    const nowhere = new ColloquyError(
      "not_found",
      `There is no such ${what} in this workspace: check its id and kind.`,
    );
    if (what === "workspace" && id !== workspaceId()) throw nowhere;
    if (what === "space" && !spaces.isKnown(id)) throw nowhere;
    if (what === "space" || what === "workspace") return [];
    const entity = directory.find(id);
    const deleted = { action: "agent.deleted", target: id, limit: 1 } as const;
    const wasHere = what === "agent" ? audit.page(deleted).items.length > 0 : directory.wasRemoved(id);
    // The spaces know the names of an entity that was removed.
    if (!entity && wasHere) return [];
    if (!entity) throw nowhere;
    if ((entity.type === "agent") === (what === "agent")) return [entity.name];
    const kindOf = entity.type === "agent" ? "agent" : "person";
    throw new ColloquyError("conflict", `${id} is no ${what}: ask for the erasure of the ${kindOf}.`);
  };

  return {
    view: (id: string): Erasure => view(get(id)),
    find: (id: string): Erasure | undefined => {
      const row = find(id);
      return row && view(row);
    },

    /** In a transaction. The same again is the same erasure. */
    begin(asked: CreateErasure, by: AuditActor): Erasure {
      const { kind: what, id } = asked;
      const known = find(id);
      if (known && known.kind === what) return view(known);
      const names = namesOf(asked);
      // The operator ends a workspace, whatever goes on there.
      if (what !== "workspace") makeRoom();
      const row = db.insert(erasures).values({ id, kind: what, names, createdAt: clock.now() }).returning().get();
      audit.note({ action: "erasure.began", actor: by, target: id, detail: { kind: what } });
      if (directory.find(id)) removed(id, by);
      goOn(id);
      return view(find(id) ?? row);
    },

    page: (request: PageRequest): Page<Erasure> =>
      pageOf(
        request,
        ({ from = Number.MAX_SAFE_INTEGER, limit }) =>
          db
            .select()
            .from(erasures)
            .where(lt(erasures.position, from))
            .orderBy(desc(erasures.position))
            .limit(limit)
            .all(),
        view,
      ),

    /**
     * A space that was being made meanwhile has somebody who was erased, or is of an erased workspace. It is visited
     * too. Agents are visited once more after it, since they may have heard the name there.
     */
    followed({ space, deleted }: IndexDelivery): void {
      if (deleted) return;
      for (const id of [workspaceId(), ...space.members.map((member) => member.id)]) {
        const row = find(id);
        if (!row) continue;
        const name = space.members.find((member) => member.id === id)?.name;
        const names = [...new Set([...row.names, ...(name === undefined ? [] : [name])])];
        db.update(erasures).set({ names, completedAt: null, phase: 0 }).where(eq(erasures.id, id)).run();
        visit(id, [space.id]);
      }
    },

    /** An imported agent is visited by each erasure that may have asked the agents before. */
    imported(agentId: string): void {
      const isUnderWay = and(isNull(erasures.completedAt), gt(erasures.phase, 0));
      for (const { id } of db.select().from(erasures).where(isUnderWay).all()) visit(id, [agentId]);
    },

    /** Throws `gone` where somebody of this id was erased: a repeated request does not bring them back. */
    requireNotErased(id: string): void {
      if (find(id)) throw new ColloquyError("gone", `${id} was erased: send a new Idempotency-Key to make another.`);
    },
    /** How many objects are still to be visited. */
    left: (): number => jobs.keys(kind).length,
  };
};
