import type { Env } from "../../env.ts";
import type { Agent as AgentView } from "../../protocol/agent.ts";
import type { ExportedHead, ImportReport } from "../../protocol/exported-agent.ts";
import type { ImportedRow, ImportName } from "../../protocol/transfer-rpc.ts";
import { ColloquyError, unwrap } from "../../shared/errors.ts";
import { log } from "../../shared/log.ts";
import { withTimeout } from "../../shared/timeouts.ts";
import { directoryAnswerMs } from "../bounds.ts";
import { startHeartbeat } from "../plans/beats.ts";
import { exportPage } from "../transfer/export.ts";
import { type ImportRow, importTimer, StagedImport, underWay } from "../transfer/staged-import.ts";
import type { AgentRuntime, Area } from "./agent-runtime.ts";
import { agentView } from "./config.ts";

/** The runtime of one object. `open` makes it with its tables, `end` deletes all that the object stores. */
type Life = {
  current(): AgentRuntime | undefined;
  open(): Promise<AgentRuntime>;
  end(): Promise<void>;
};

const stagedIn = ({ db, services, timers }: AgentRuntime): StagedImport =>
  new StagedImport({ db, timers, ...services });

const gone = (): ColloquyError => new ColloquyError("gone", "this import was given up: send the document again");

/**
 * The import of an agent, from its first row until the workspace's directory knows the agent.
 *
 * Invariants
 * 1. One thing at a time is done to an import: while one is deleted, no other begins.
 */
export class ImportSession {
  readonly #env: Env;
  readonly #life: Life;
  #turn: Promise<unknown> = Promise.resolve();

  constructor(env: Env, life: Life) {
    this.#env = env;
    this.#life = life;
  }

  begin(id: string, name: ImportName): Promise<"begun" | "there"> {
    return this.#inTurn(async () => {
      const before = this.#life.current();
      if (before) {
        if (stagedIn(before).isLively()) throw underWay();
        await this.#settle();
      }
      const runtime = await this.#life.open();
      const there = runtime.services.identity.find();
      if (there && there.workspaceId !== name.workspaceId)
        throw new ColloquyError("not_found", "there is no such agent");
      if (there) return "there";
      stagedIn(runtime).begin(id, name);
      return "begun";
    });
  }

  add(name: ImportName, rows: ImportedRow[]): Promise<null> {
    return this.#staging((staged) => staged.add(name, rows));
  }

  prepare(name: ImportName, head: ExportedHead): Promise<null> {
    return this.#staging((staged) => staged.prepare(name, head));
  }

  complete(workspaceId: string): Promise<{ agent: AgentView; report: ImportReport }> {
    return this.#inTurn(async () => {
      const { runtime, row } = this.#current() ?? {};
      if (!runtime || row?.workspaceId !== workspaceId) throw gone();
      await this.#complete(runtime, row);
      const { report } = stagedIn(runtime).find() ?? {};
      if (!report) throw gone();
      return { agent: agentView(runtime), report };
    });
  }

  drop({ workspaceId, token }: ImportName): Promise<null> {
    return this.#inTurn(async () => {
      const { row } = this.#current() ?? {};
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
    await runtime?.timers.fire((name) => (name === importTimer ? stagedIn(runtime).postpone() : runtime.due(name)));
  }

  #current(): { runtime: AgentRuntime; row: ImportRow } | undefined {
    const runtime = this.#life.current();
    const row = runtime && stagedIn(runtime).find();
    return row && { runtime, row };
  }

  /**
   * Nobody goes on with an import. One that the directory knows is completed, any other is deleted. The directory is
   * asked again where it cannot be reached.
   */
  async #settle(): Promise<void> {
    const { runtime, row } = this.#current() ?? {};
    if (!runtime || !row || row.completedAt !== null) return;
    try {
      if (row.head === null || !(await this.#isInDirectory(row))) return await this.#life.end();
      await this.#complete(runtime, row);
    } catch (error) {
      log.warn("import.unsettled", { agentId: row.agentId, reason: String(error) });
      stagedIn(runtime).postpone();
    }
  }

  async #isInDirectory({ workspaceId, agentId }: ImportRow): Promise<boolean> {
    const found = await withTimeout(directoryAnswerMs, this.#env.WORKSPACE.getByName(workspaceId).entity(agentId));
    if (!found.ok && found.problem.code !== "not_found") unwrap(found);
    return found.ok;
  }

  /** Makes the agent, if it is not there yet: with its config, its secrets, and its plans due as they were. */
  async #complete(runtime: AgentRuntime, { head, workspaceId }: ImportRow): Promise<void> {
    if (!head) return;
    const asked = this.#env.WORKSPACE.getByName(workspaceId).sealedSecrets();
    const secrets = unwrap(await withTimeout(directoryAnswerMs, asked));
    const { services, timers } = runtime;
    const staged = stagedIn(runtime);
    // The import wrote the tables itself.
    services.forget();
    services.transaction(() => {
      const row = staged.find();
      if (!row?.head) return;
      const { config, activeSpaceId, correction } = row.head;
      services.identity.create(row.agentId, row.workspaceId, config);
      services.identity.update({
        activeSpaceId,
        secrets,
        ...(correction ? { correction: correction.ratio, correctionModel: correction.modelId } : {}),
      });
      staged.complete();
      startHeartbeat(timers, config.heartbeat, services.clock.now());
      services.plans.resume();
      services.mcp.configured();
    });
  }

  #staging(work: (staged: StagedImport) => void | Promise<void>): Promise<null> {
    return this.#inTurn(async () => {
      const runtime = this.#life.current();
      if (!runtime) throw gone();
      await work(stagedIn(runtime));
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
