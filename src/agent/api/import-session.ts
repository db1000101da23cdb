import { eq, sql } from "drizzle-orm";
import type { Env } from "../../env/env.ts";
import type { AgentRpc, ImportName } from "../../protocol/agent-rpc.ts";
import type { ExportedHead, ImportReport, RowKind } from "../../protocol/exported-agent.ts";
import { systemClock } from "../../shared/clock.ts";
import { ColloquyError, type Outcome, unwrap } from "../../shared/errors.ts";
import { log } from "../../shared/log.ts";
import { withTimeout } from "../../shared/timeouts.ts";
import { directoryAnswerMs, importAbandonedMs, importIdleMs } from "../bounds.ts";
import { blockVersions } from "../memory/blocks/schema.ts";
import { archival } from "../schema.ts";
import { checkBlocks, checkHistory, linkRuns, unfit } from "../transfer/check-import.ts";
import { exportPage } from "../transfer/export.ts";
import { type KindStore, kindStores } from "../transfer/kinds.ts";
import { imports } from "../transfer/schema.ts";
import type { AgentRuntime, Area } from "./agent-runtime.ts";
import { agentView, createAgent } from "./config.ts";

/** The runtime of one object. `open` makes it with its tables, `end` deletes all that the object stores. */
type Life = {
  current(): AgentRuntime | undefined;
  open(): Promise<AgentRuntime>;
  end(): Promise<void>;
};

type ImportRow = typeof imports.$inferSelect;
type Import = { runtime: AgentRuntime; row: ImportRow };

/** The methods of the object that import an agent into it. */
export const importMethods = [
  "beginImport",
  "importRows",
  "prepareImport",
  "completeImport",
  "dropImport",
  "isImporting",
] as const satisfies (keyof AgentRpc)[];
type ImportMethods = {
  [Name in (typeof importMethods)[number]]: AgentRpc[Name] extends (
    ...args: infer Args
  ) => Promise<Outcome<infer Value>>
    ? (...args: Args) => Promise<Value>
    : never;
};

const importTimer = "import";

/** Two tries at a time would mix their rows. */
const underWay = (): ColloquyError =>
  new ColloquyError("idempotency_in_progress", "The first request with this key is under way: try again soon.");

const gone = (how: string): ColloquyError =>
  new ColloquyError("gone", `this import was ${how}: send the document again`);

/** Looks at the import again after this time, if nobody goes on with it. */
const wakeIn = ({ timers, services }: AgentRuntime, milliseconds: number): void =>
  timers.set(importTimer, services.clock.now() + milliseconds);

/** Somebody goes on with the import. */
const touch = (runtime: AgentRuntime, changed: Partial<ImportRow> = {}): void => {
  const touchedAt = runtime.services.clock.now();
  runtime.db
    .update(imports)
    .set({ ...changed, touchedAt })
    .run();
  wakeIn(runtime, importAbandonedMs);
};

/** Makes this agent the author of what the old one wrote and archived. Answers the report. */
const adopt = ({ runtime: { db }, row }: Import, { exportedAt, agent }: ExportedHead): ImportReport => {
  db.update(blockVersions)
    .set({ author: `agent:${row.agentId}` })
    .where(eq(blockVersions.author, `agent:${agent.id}`))
    .run();
  db.update(archival)
    .set({ source: sql`json_set(${archival.source}, '$.authorId', ${row.agentId})` })
    .where(sql`json_extract(${archival.source}, '$.authorId') = ${agent.id}`)
    .run();
  const counts = db.get<ImportReport["counts"]>(sql`select
    (select count(*) from memories) as memories, (select count(*) from goals) as goals,
    (select count(*) from plans) as plans, (select count(*) from runs) as runs,
    (select count(*) from blocks) as blocks, (select count(*) from archival) as archival`);
  return { from: { agentId: agent.id, exportedAt }, counts, left: agent.left, shares: row.shares };
};

/**
 * The import of an agent, staged in the object of the agent that it makes. It lasts from its first row until the
 * workspace's directory knows the agent.
 *
 * Invariants
 * 1. Until it is complete the table `agent` is empty: the object is no agent, whatever else it holds.
 * 2. The timer `import` is set from the first row on until the import is complete or deleted.
 * 3. Only the try that began it last adds to it; nothing is added once it was found to fit together.
 * 4. One thing at a time is done to an import: while one is deleted, no other begins.
 */
export const createImportSession = (env: Env, life: Life): ImportMethods & { alarm(): Promise<void> } => {
  let turn: Promise<unknown> = Promise.resolve();

  /** Runs `work` after everything that was asked before. */
  const inTurn = <T>(work: () => T | Promise<T>): Promise<T> => {
    const mine = turn.then(work);
    turn = mine.catch(() => undefined);
    return mine;
  };

  const current = (): Import | undefined => {
    const runtime = life.current();
    const row = runtime?.db.select().from(imports).get();
    return runtime && row && { runtime, row };
  };

  /** Makes the agent, if it is not there yet: with its config, its secrets, and its plans due as they were. */
  const complete = async ({ runtime, row: { head, agentId, workspaceId } }: Import): Promise<void> => {
    if (!head) return;
    const asked = env.WORKSPACE.getByName(workspaceId).sealedSecrets();
    const secrets = unwrap(await withTimeout(directoryAnswerMs, asked));
    const { db, services, timers } = runtime;
    const { config, activeSpaceId, correction } = head;
    // The import wrote the tables past the services.
    db.epoch += 1;
    services.transaction(() => {
      createAgent(runtime, { id: agentId, workspaceId, config });
      services.identity.update({
        activeSpaceId,
        secrets,
        ...(correction ? { correction: correction.ratio, correctionModel: correction.modelId } : {}),
      });
      db.update(imports).set({ head: null, completedAt: services.clock.now() }).run();
      timers.clear(importTimer);
      services.plans.resume();
    });
  };

  /**
   * Nobody goes on with an import. One that the directory knows is completed, any other is deleted. The directory is
   * asked again where it cannot be reached.
   */
  const settle = async (): Promise<void> => {
    const found = current();
    if (!found || found.row.completedAt !== null) return;
    const { workspaceId, agentId, head } = found.row;
    try {
      const directory = env.WORKSPACE.getByName(workspaceId);
      const known = head && (await withTimeout(directoryAnswerMs, directory.entity(agentId)));
      if (known && !known.ok && known.problem.code !== "not_found") unwrap(known);
      await (known?.ok ? complete(found) : life.end());
    } catch (error) {
      log.warn("import.unsettled", { agentId, reason: String(error) });
      wakeIn(found.runtime, importIdleMs);
    }
  };

  /** Goes on with an import under way, in the name of the try that began it last. */
  const staging = ({ workspaceId, token }: ImportName, work: (found: Import) => void | Promise<void>): Promise<null> =>
    inTurn(async () => {
      const found = current();
      if (!found) throw gone(life.current() ? "given up, or begun anew" : "given up");
      const { row } = found;
      const isOpen = row.head === null && row.completedAt === null;
      if (!isOpen || row.token !== token || row.workspaceId !== workspaceId) throw gone("given up, or begun anew");
      await work(found);
      return null;
    });

  return {
    beginImport: (agentId, { workspaceId, token }) =>
      inTurn(async () => {
        const before = current();
        const isLively = before?.row.completedAt === null && before.row.touchedAt + importIdleMs > systemClock.now();
        if (isLively) throw underWay();
        await settle();
        const runtime = await life.open();
        const { db, services } = runtime;
        const there = services.identity.find();
        if (there?.workspaceId === workspaceId) return "there";
        if (there) throw new ColloquyError("not_found", "there is no such agent");
        // Another import still holds the runtime: settling it has failed.
        if (current()) throw underWay();
        services.transaction(() => {
          db.insert(imports).values({ id: 1, workspaceId, agentId, token, touchedAt: systemClock.now() }).run();
          wakeIn(runtime, importAbandonedMs);
        });
        return "begun";
      }),

    /** Stores all of these rows or none. Throws `invalid_request` for a row that is there already. */
    importRows: (name, rows) =>
      staging(name, ({ runtime, row: { agentId, shares } }) => {
        const { db, services } = runtime;
        services.transaction(() => {
          for (const { kind, row, at } of rows) {
            // The kind of a row says which store takes it.
            const store: KindStore<RowKind> = kindStores[kind];
            const isNew = store.insert(db, row, { ids: services.ids, agentId });
            if (!isNew) throw unfit(at, `repeats a row of the kind ${kind}`);
          }
          touch(runtime, { shares: shares + rows.filter(({ kind }) => kind === "share").length });
        });
      }),

    /** Checks that all rows fit together. From here on the directory decides. */
    prepareImport: (name, head) =>
      staging(name, async (found) => {
        const { runtime } = found;
        const { db, services } = runtime;
        touch(runtime);
        checkHistory(db, services.clock.now());
        await checkBlocks(db);
        services.transaction(() => {
          linkRuns(db);
          const report = adopt(found, head);
          const { to } = db.get<{ to: number }>(sql`select coalesce(max(seq), 0) as "to" from journal`);
          touch(runtime, { head: head.agent, report, journalUpTo: to });
        });
      }),

    completeImport: (workspaceId) =>
      inTurn(async () => {
        const found = current();
        if (found?.row.workspaceId !== workspaceId) throw gone("given up");
        await complete(found);
        const report = current()?.row.report;
        if (!report) throw gone("given up");
        return { agent: agentView(found.runtime), report };
      }),

    dropImport: ({ workspaceId, token }) =>
      inTurn(async () => {
        const row = current()?.row;
        // The directory decides about an import that was found to fit together.
        if (row?.token === token && row.workspaceId === workspaceId) await settle();
        return null;
      }),

    isImporting: () => inTurn(() => current()?.row.completedAt === null),

    /** The object's alarm went off: settles an import that nobody goes on with, then fires the other timers. */
    async alarm() {
      const before = life.current();
      const dueAt = before?.timers.dueAt(importTimer);
      if (before && dueAt !== undefined && dueAt <= before.services.clock.now()) await inTurn(settle);
      const runtime = life.current();
      // A timer that the import set for itself must not be cleared as one that was handled.
      await runtime?.timers.fire((name) => (name === importTimer ? wakeIn(runtime, importIdleMs) : runtime.due(name)));
    },
  };
};

/** The agent as lines that another workspace can import. */
export const exportArea: Area<"exportPage"> = {
  exportPage: ({ db, services }, from) => exportPage(db, services, from),
};
