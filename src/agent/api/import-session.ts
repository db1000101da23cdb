import { eq, sql } from "drizzle-orm";
import type { Env } from "../../env/env.ts";
import type { Agent as AgentView } from "../../protocol/agent.ts";
import type { ImportedRow, ImportName } from "../../protocol/agent-rpc.ts";
import type { ExportedHead, ImportReport, RowKind } from "../../protocol/exported-agent.ts";
import { ColloquyError, unwrap } from "../../shared/errors.ts";
import { log } from "../../shared/log.ts";
import { withTimeout } from "../../shared/timeouts.ts";
import { directoryAnswerMs, importAbandonedMs, importIdleMs } from "../bounds.ts";
import { blockVersions } from "../memory/blocks/schema.ts";
import { startHeartbeat } from "../plans/beats.ts";
import { archival } from "../schema.ts";
import { checkBlocks } from "../transfer/check-blocks.ts";
import { checkHistory, linkRuns, unfit } from "../transfer/check-history.ts";
import { exportPage } from "../transfer/export.ts";
import { type KindStore, kindStores } from "../transfer/kinds.ts";
import { imports } from "../transfer/schema.ts";
import type { AgentRuntime, Area } from "./agent-runtime.ts";
import { agentView } from "./config.ts";

/** The runtime of one object. `open` makes it with its tables, `end` deletes all that the object stores. */
type Life = {
  current(): AgentRuntime | undefined;
  open(): Promise<AgentRuntime>;
  end(): Promise<void>;
};

type ImportRow = typeof imports.$inferSelect;
type Import = { runtime: AgentRuntime; row: ImportRow };

const importTimer = "import";

/** Two tries at a time would mix their rows. */
const underWay = (): ColloquyError =>
  new ColloquyError("idempotency_in_progress", "The first request with this key is under way: try again soon.");

const gone = (how: string): ColloquyError =>
  new ColloquyError("gone", `this import was ${how}: send the document again`);

const rowIn = ({ db }: AgentRuntime): ImportRow | undefined => db.select().from(imports).get();

/** Whether a try has added to it lately. */
const isLively = ({ runtime, row }: Import): boolean =>
  row.completedAt === null && row.touchedAt + importIdleMs > runtime.services.clock.now();

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
 * The import of an agent, staged in the object of the agent that it makes, from its first row until the workspace's
 * directory knows the agent.
 *
 * Invariants
 * 1. Until it is complete the table `agent` is empty: the object is no agent, whatever else it holds.
 * 2. The timer `import` is set from the first row on until the import is complete or deleted.
 * 3. Only the try that began it last adds to it; nothing is added once it was found to fit together.
 * 4. One thing at a time is done to an import: while one is deleted, no other begins.
 */
export class ImportSession {
  readonly #env: Env;
  readonly #life: Life;
  #turn: Promise<unknown> = Promise.resolve();

  constructor(env: Env, life: Life) {
    this.#env = env;
    this.#life = life;
  }

  begin(agentId: string, { workspaceId, token }: ImportName): Promise<"begun" | "there"> {
    return this.#inTurn(async () => {
      const before = this.#current();
      if (before && isLively(before)) throw underWay();
      await this.#settle();
      const runtime = await this.#life.open();
      const there = runtime.services.identity.find();
      if (there && there.workspaceId !== workspaceId) throw new ColloquyError("not_found", "there is no such agent");
      if (there) return "there";
      if (rowIn(runtime)) throw underWay();
      runtime.services.transaction(() => {
        const touchedAt = runtime.services.clock.now();
        runtime.db.insert(imports).values({ id: 1, workspaceId, agentId, token, touchedAt }).run();
        wakeIn(runtime, importAbandonedMs);
      });
      return "begun";
    });
  }

  /** Stores all of these rows or none. Throws `invalid_request` for a row that is there already. */
  add(name: ImportName, rows: ImportedRow[]): Promise<null> {
    return this.#staging(name, ({ runtime, row: { agentId, shares } }) => {
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
    });
  }

  /** Checks that all rows fit together. From here on the directory decides. */
  prepare(name: ImportName, head: ExportedHead): Promise<null> {
    return this.#staging(name, async (found) => {
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
    });
  }

  complete(workspaceId: string): Promise<{ agent: AgentView; report: ImportReport }> {
    return this.#inTurn(async () => {
      const found = this.#current();
      if (found?.row.workspaceId !== workspaceId) throw gone("given up");
      await this.#complete(found);
      const report = rowIn(found.runtime)?.report;
      if (!report) throw gone("given up");
      return { agent: agentView(found.runtime), report };
    });
  }

  drop({ workspaceId, token }: ImportName): Promise<null> {
    return this.#inTurn(async () => {
      const row = this.#current()?.row;
      // The directory decides about an import that was found to fit together.
      if (row?.token === token && row.workspaceId === workspaceId) await this.#settle();
      return null;
    });
  }

  /** The object's alarm went off: settles an import that nobody goes on with, then fires the other timers. */
  async alarm(): Promise<void> {
    const before = this.#life.current();
    const dueAt = before?.timers.dueAt(importTimer);
    if (before && dueAt !== undefined && dueAt <= before.services.clock.now()) await this.#inTurn(() => this.#settle());
    const runtime = this.#life.current();
    // A timer that the import set for itself must not be cleared as one that was handled.
    await runtime?.timers.fire((name) => (name === importTimer ? wakeIn(runtime, importIdleMs) : runtime.due(name)));
  }

  #current(): Import | undefined {
    const runtime = this.#life.current();
    const row = runtime && rowIn(runtime);
    return row && { runtime, row };
  }

  /**
   * Nobody goes on with an import. One that the directory knows is completed, any other is deleted. The directory is
   * asked again where it cannot be reached.
   */
  async #settle(): Promise<void> {
    const found = this.#current();
    if (!found || found.row.completedAt !== null) return;
    const { workspaceId, agentId, head } = found.row;
    try {
      const directory = this.#env.WORKSPACE.getByName(workspaceId);
      const known = head && (await withTimeout(directoryAnswerMs, directory.entity(agentId)));
      if (known && !known.ok && known.problem.code !== "not_found") unwrap(known);
      if (!known?.ok) return await this.#life.end();
      await this.#complete(found);
    } catch (error) {
      log.warn("import.unsettled", { agentId, reason: String(error) });
      wakeIn(found.runtime, importIdleMs);
    }
  }

  /** Makes the agent, if it is not there yet: with its config, its secrets, and its plans due as they were. */
  async #complete({ runtime, row: { head, agentId, workspaceId } }: Import): Promise<void> {
    if (!head) return;
    const asked = this.#env.WORKSPACE.getByName(workspaceId).sealedSecrets();
    const secrets = unwrap(await withTimeout(directoryAnswerMs, asked));
    const { db, services, timers } = runtime;
    const { config, activeSpaceId, correction } = head;
    // The import wrote the tables past the services.
    db.epoch += 1;
    services.transaction(() => {
      services.identity.create(agentId, workspaceId, config);
      services.identity.update({
        activeSpaceId,
        secrets,
        ...(correction ? { correction: correction.ratio, correctionModel: correction.modelId } : {}),
      });
      db.update(imports).set({ head: null, completedAt: services.clock.now() }).run();
      timers.clear(importTimer);
      startHeartbeat(timers, config.heartbeat, services.clock.now());
      services.plans.resume();
      services.mcp.configured();
    });
  }

  /** Goes on with an import under way, in the name of the try that began it last. */
  #staging({ workspaceId, token }: ImportName, work: (found: Import) => void | Promise<void>): Promise<null> {
    return this.#inTurn(async () => {
      if (!this.#life.current()) throw gone("given up");
      const found = this.#current();
      const isOpen = found?.row.head === null && found.row.completedAt === null;
      if (!isOpen || found.row.token !== token || found.row.workspaceId !== workspaceId) {
        throw gone("given up, or begun anew");
      }
      await work(found);
      return null;
    });
  }

  /** Runs `work` after everything that was asked before. */
  #inTurn<T>(work: () => T | Promise<T>): Promise<T> {
    const turn = this.#turn.then(work);
    this.#turn = turn.catch(() => undefined);
    return turn;
  }
}

/** The agent as lines that another workspace can import. */
export const exportArea: Area<"exportPage"> = {
  exportPage: ({ db, services }, from) => exportPage(db, services, from),
};
