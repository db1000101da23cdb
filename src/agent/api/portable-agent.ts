import type { Agent as AgentView } from "../../protocol/agent.ts";
import type {
  CarryRpc,
  ExportBounds,
  ExportHead,
  ExportPage,
  ExportPlace,
  ImportName,
} from "../../protocol/carry-rpc.ts";
import type { CarriedHead, CarriedItems, ExportEnvelope, ImportReport } from "../../protocol/exported-agent.ts";
import { openDatabase } from "../../shared/database.ts";
import { ColloquyError, type Outcome, ok, refusalOf, unwrap } from "../../shared/errors.ts";
import { log } from "../../shared/log.ts";
import { inTime } from "../../shared/within.ts";
import { directoryAnswerMs } from "../bounds.ts";
import { startHeartbeat } from "../plans/beats.ts";
import type { Mind } from "../runtime.ts";
import { exportHead, exportPage } from "../transfer/export-agent.ts";
import { Imports, importTimer, underWay } from "../transfer/imports.ts";
import { BlockAgent } from "./block-agent.ts";
import { agentView } from "./views.ts";

/**
 * What of an agent answers for its being carried elsewhere, and for its having come from there.
 *
 * Invariants
 * 1. One thing at a time is done to an import: while one is put away, no other begins.
 */
export abstract class PortableAgent extends BlockAgent implements CarryRpc {
  /** The mind of this object, which is made with its tables where it has none; and its end with all that it holds. */
  protected abstract readonly openMind: () => Promise<Mind>;
  protected abstract readonly endMind: () => Promise<void>;
  protected abstract readonly mindIfAny: () => Mind | undefined;

  #turn: Promise<unknown> = Promise.resolve();

  #importsOf({ parts, timers }: Mind): Imports {
    const { clock, ids, transaction } = parts;
    return new Imports({ db: openDatabase(this.ctx.storage), clock, ids, transaction, timers });
  }

  exportHead(workspaceId: string): Promise<Outcome<ExportHead>> {
    return this.inMind(workspaceId, ({ parts }) => exportHead(openDatabase(this.ctx.storage), parts));
  }

  exportPage(workspaceId: string, bounds: ExportBounds, from: ExportPlace | null): Promise<Outcome<ExportPage>> {
    return this.inMind(workspaceId, ({ parts }) => exportPage(openDatabase(this.ctx.storage), parts, bounds, from));
  }

  async beginImport(id: string, name: ImportName): Promise<Outcome<"begun" | "there">> {
    return this.#answer(async () => {
      const before = this.mindIfAny();
      if (before) {
        if (this.#importsOf(before).isLively()) throw underWay();
        await this.#settleImport();
      }
      const mind = await this.openMind();
      const there = mind.parts.identity.find();
      if (there && there.workspaceId !== name.workspaceId)
        throw new ColloquyError("not_found", "there is no such agent");
      if (there) return "there";
      this.#importsOf(mind).begin(id, name);
      return "begun";
    });
  }

  importItems(name: ImportName, items: CarriedItems): Promise<Outcome<null>> {
    return this.#importing((imports) => {
      imports.take(name, items);
      return null;
    });
  }

  prepareImport(name: ImportName, envelope: ExportEnvelope, head: CarriedHead): Promise<Outcome<null>> {
    return this.#importing(async (imports) => {
      await imports.prepare(name, envelope, head);
      return null;
    });
  }

  completeImport(workspaceId: string): Promise<Outcome<{ agent: AgentView; report: ImportReport }>> {
    return this.#answer(async () => {
      const mind = this.mindIfAny();
      const row = mind && this.#importsOf(mind).find();
      if (!mind || row?.workspaceId !== workspaceId) throw new ColloquyError("gone", "this import was given up");
      await this.#complete(mind);
      const { report } = this.#importsOf(mind).find() ?? {};
      if (!report) throw new ColloquyError("gone", "this import was given up");
      return { agent: agentView(mind.parts.identity.get(), mind), report };
    });
  }

  dropImport({ workspaceId, token }: ImportName): Promise<Outcome<null>> {
    return this.#answer(async () => {
      const mind = this.mindIfAny();
      const row = mind && this.#importsOf(mind).find();
      const isMine = row?.token === token && row.workspaceId === workspaceId;
      // Once it was found to fit together, the directory decides.
      if (isMine) await this.#settleImport();
      return null;
    });
  }

  /**
   * Nobody goes on with an import: the directory says whether it counts. What it knows is completed, anything else put
   * away. Where it cannot be asked, it is asked again.
   */
  async #settleImport(): Promise<void> {
    const mind = this.mindIfAny();
    const row = mind && this.#importsOf(mind).find();
    if (!mind || !row || row.completedAt !== null) return;
    try {
      if (row.head === null || !(await this.#isInDirectory(row))) return await this.endMind();
      await this.#complete(mind);
    } catch (error) {
      log.warn("import.unsettled", { agentId: row.agentId, reason: String(error) });
      this.#importsOf(mind).postpone();
    }
  }

  override async alarm(): Promise<void> {
    const before = this.mindIfAny();
    const dueAt = before?.timers.dueAt(importTimer);
    if (before && dueAt !== undefined && dueAt <= before.parts.clock.now())
      await this.#inTurn(() => this.#settleImport());
    const mind = this.mindIfAny();
    // What is settled by itself must not be forgotten as one that was handled.
    await mind?.timers.fire((name) => (name === importTimer ? this.#importsOf(mind).postpone() : mind.due(name)));
  }

  async #isInDirectory({ workspaceId, agentId }: { workspaceId: string; agentId: string }): Promise<boolean> {
    const found = await inTime(directoryAnswerMs, this.env.WORKSPACE.getByName(workspaceId).entity(agentId));
    if (!found.ok && found.problem.code !== "not_found") unwrap(found);
    return found.ok;
  }

  /** Makes the agent, if it is not there yet: with its config, its secrets, and its plans due as they were. */
  async #complete(mind: Mind): Promise<void> {
    const imports = this.#importsOf(mind);
    const { head, workspaceId } = imports.find() ?? {};
    if (!head || workspaceId === undefined) return;
    const asked = this.env.WORKSPACE.getByName(workspaceId).sealedSecrets();
    const sealed = unwrap(await inTime(directoryAnswerMs, asked));
    const { parts, timers } = mind;
    parts.transaction(() => {
      const row = imports.find();
      if (!row?.head) return;
      const { config, activeSpaceId, correction } = row.head;
      parts.identity.create(row.agentId, row.workspaceId, config);
      parts.identity.update({
        activeSpaceId,
        secrets: sealed,
        ...(correction ? { correction: correction.ratio, correctionModel: correction.modelId } : {}),
      });
      imports.complete();
      startHeartbeat(timers, config.heartbeat, parts.clock.now());
      parts.plans.resume();
      parts.mcp.configured();
    });
  }

  async #importing<T>(work: (imports: Imports) => T | Promise<T>): Promise<Outcome<T>> {
    return this.#answer(() => {
      const mind = this.mindIfAny();
      if (!mind) throw new ColloquyError("gone", "this import was given up: send the document again");
      return work(this.#importsOf(mind));
    });
  }

  /** Once all that was asked before is done. */
  #inTurn<T>(work: () => T | Promise<T>): Promise<T> {
    const turn = this.#turn.then(work);
    this.#turn = turn.then(
      () => undefined,
      () => undefined,
    );
    return turn;
  }

  async #answer<T>(work: () => T | Promise<T>): Promise<Outcome<T>> {
    try {
      return ok(await this.#inTurn(work));
    } catch (error) {
      return refusalOf(error);
    }
  }
}
