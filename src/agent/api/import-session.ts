import type { Agent as AgentView } from "../../protocol/agent.ts";
import type { ImportName } from "../../protocol/transfer-rpc.ts";
import type { CarriedHead, CarriedItems, ExportEnvelope, ImportReport } from "../../protocol/exported-agent.ts";
import type { Env } from "../../shared/env.ts";
import { ColloquyError, unwrap } from "../../shared/errors.ts";
import { log } from "../../shared/log.ts";
import { withTimeout } from "../../shared/timeouts.ts";
import { directoryAnswerMs } from "../bounds.ts";
import { startHeartbeat } from "../plans/beats.ts";
import { Imports, importTimer, underWay } from "../transfer/staged-import.ts";
import type { AgentRuntime } from "./agent-runtime.ts";
import { agentView } from "./config.ts";

/** The runtime of one object: made with its tables where it has none, and ended with all that it holds. */
type Life = {
  current(): AgentRuntime | undefined;
  open(): Promise<AgentRuntime>;
  end(): Promise<void>;
};

const importsOf = ({ db, services, timers }: AgentRuntime): Imports => new Imports({ db, timers, ...services });

/**
 * An agent that comes from an export, from its first item until the workspace's directory knows it.
 *
 * Invariants
 * 1. One thing at a time is done to an import: while one is put away, no other begins.
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
        if (importsOf(before).isLively()) throw underWay();
        await this.#settle();
      }
      const runtime = await this.#life.open();
      const there = runtime.services.identity.find();
      if (there && there.workspaceId !== name.workspaceId)
        throw new ColloquyError("not_found", "there is no such agent");
      if (there) return "there";
      importsOf(runtime).begin(id, name);
      return "begun";
    });
  }

  take(name: ImportName, items: CarriedItems): Promise<null> {
    return this.#importing((imports) => {
      imports.take(name, items);
      return null;
    });
  }

  prepare(name: ImportName, envelope: ExportEnvelope, head: CarriedHead): Promise<null> {
    return this.#importing(async (imports) => {
      await imports.prepare(name, envelope, head);
      return null;
    });
  }

  complete(workspaceId: string): Promise<{ agent: AgentView; report: ImportReport }> {
    return this.#inTurn(async () => {
      const runtime = this.#life.current();
      const row = runtime && importsOf(runtime).find();
      if (!runtime || row?.workspaceId !== workspaceId) throw new ColloquyError("gone", "this import was given up");
      await this.#complete(runtime);
      const { report } = importsOf(runtime).find() ?? {};
      if (!report) throw new ColloquyError("gone", "this import was given up");
      return { agent: agentView(runtime), report };
    });
  }

  drop({ workspaceId, token }: ImportName): Promise<null> {
    return this.#inTurn(async () => {
      const runtime = this.#life.current();
      const row = runtime && importsOf(runtime).find();
      const isMine = row?.token === token && row.workspaceId === workspaceId;
      // An import that was found to fit together is the directory's to decide.
      if (isMine) await this.#settle();
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
    await runtime?.timers.fire((name) => (name === importTimer ? importsOf(runtime).postpone() : runtime.due(name)));
  }

  /**
   * Nobody goes on with an import: the directory says whether it counts. One that the directory knows is completed, any
   * other is put away. It is asked again where it cannot be reached.
   */
  async #settle(): Promise<void> {
    const runtime = this.#life.current();
    const row = runtime && importsOf(runtime).find();
    if (!runtime || !row || row.completedAt !== null) return;
    try {
      if (row.head === null || !(await this.#isInDirectory(row))) return await this.#life.end();
      await this.#complete(runtime);
    } catch (error) {
      log.warn("import.unsettled", { agentId: row.agentId, reason: String(error) });
      importsOf(runtime).postpone();
    }
  }

  async #isInDirectory({ workspaceId, agentId }: { workspaceId: string; agentId: string }): Promise<boolean> {
    const found = await withTimeout(directoryAnswerMs, this.#env.WORKSPACE.getByName(workspaceId).entity(agentId));
    if (!found.ok && found.problem.code !== "not_found") unwrap(found);
    return found.ok;
  }

  /** Makes the agent, if it is not there yet: with its config, its secrets, and its plans due as they were. */
  async #complete(runtime: AgentRuntime): Promise<void> {
    const imports = importsOf(runtime);
    const { head, workspaceId } = imports.find() ?? {};
    if (!head || workspaceId === undefined) return;
    const asked = this.#env.WORKSPACE.getByName(workspaceId).sealedSecrets();
    const sealed = unwrap(await withTimeout(directoryAnswerMs, asked));
    const { services, timers } = runtime;
    // The import wrote the tables itself.
    services.forget();
    services.transaction(() => {
      const row = imports.find();
      if (!row?.head) return;
      const { config, activeSpaceId, correction } = row.head;
      services.identity.create(row.agentId, row.workspaceId, config);
      services.identity.update({
        activeSpaceId,
        secrets: sealed,
        ...(correction ? { correction: correction.ratio, correctionModel: correction.modelId } : {}),
      });
      imports.complete();
      startHeartbeat(timers, config.heartbeat, services.clock.now());
      services.plans.resume();
      services.mcp.configured();
    });
  }

  #importing<T>(work: (imports: Imports) => T | Promise<T>): Promise<T> {
    return this.#inTurn(() => {
      const runtime = this.#life.current();
      if (!runtime) throw new ColloquyError("gone", "this import was given up: send the document again");
      return work(importsOf(runtime));
    });
  }

  /** Runs `work` after everything that was asked before. */
  #inTurn<T>(work: () => T | Promise<T>): Promise<T> {
    const turn = this.#turn.then(work);
    this.#turn = turn.then(
      () => undefined,
      () => undefined,
    );
    return turn;
  }
}
