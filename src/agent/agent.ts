import migrations from "../../migrations/agent/migrations.js";
import { AgentConfig, type Agent as AgentView, type UpdateAgent } from "../protocol/agent.ts";
import type { Goal, Memory, PutGoal } from "../protocol/mind.ts";
import type { Plan, PutPlan } from "../protocol/plan.ts";
import type { AgentRpc, Delivery, DeliveryText, Page, PageRequest } from "../protocol/rpc.ts";
import type { ContextView, Run, RunStatus } from "../protocol/run.ts";
import type { AnsweredToolCall, ClaimToolCall, ToolAnswer, WaitingToolCall } from "../protocol/tool-call.ts";
import { createSchema, hasSchema, openDatabase } from "../shared/database.ts";
import type { Env } from "../shared/env.ts";
import { ColloquyError, type Outcome, ok, refusalOf } from "../shared/errors.ts";
import { fault, faultOnceStored } from "../shared/fault.ts";
import { changedConfig, configure, usableConfig } from "./api/configure.ts";
import { contextView } from "./api/context-view.ts";
import type { InMind } from "./api/hooked-agent.ts";
import { cursorOf, page } from "./api/page.ts";
import { PortableAgent } from "./api/portable-agent.ts";
import { runView, runWithInputs } from "./api/run-view.ts";
import { agentView } from "./api/views.ts";
import { answerCall, claimCall } from "./calls/for-servers.ts";
import { accept } from "./inbox/deliver.ts";
import { startHeartbeat } from "./plans/beats.ts";
import { type Mind, openMind, reconsider, stopMind } from "./runtime.ts";

/** One agent: the one mind. Binds and delegates; what it does is in the modules beside it. */
export class Agent extends PortableAgent implements AgentRpc {
  #mind: Mind | undefined;
  #ending: Promise<void> | undefined;
  protected readonly inMind: InMind = (workspaceId, work) => this.#with(workspaceId, work);
  protected readonly mindIfAny = (): Mind | undefined => this.#mind;
  protected readonly openMind = async (): Promise<Mind> => {
    // What is ended now would take what is made with it.
    await this.#ending;
    if (!this.#mind) await createSchema(openDatabase(this.ctx.storage), migrations);
    // Another call may have made it meanwhile, and there is one loop only.
    this.#mind ??= openMind(this.ctx, this.env);
    return this.#mind;
  };
  protected readonly endMind = (): Promise<void> => {
    // Two may end it side by side: the later one must not end what is made anew.
    this.#ending ??= this.#end().finally(() => {
      this.#ending = undefined;
    });
    return this.#ending;
  };

  async #end(): Promise<void> {
    if (this.#mind) await stopMind(this.#mind);
    this.#mind = undefined;
    await this.ctx.storage.deleteAlarm();
    await this.ctx.storage.deleteAll();
  }

  constructor(ctx: DurableObjectState, env: Env) {
    super(ctx, env);
    if (!hasSchema(ctx.storage)) return;
    ctx.blockConcurrencyWhile(async () => {
      await createSchema(openDatabase(ctx.storage), migrations);
      this.#mind = openMind(this.ctx, this.env);
    });
  }

  /** Every method but `create`: the caller's workspace, where it knows it, must be this agent's. */
  async #with<T>(workspaceId: string | undefined, work: (mind: Mind) => T | Promise<T>): Promise<Outcome<T>> {
    try {
      const mind = this.#mind;
      const own = mind?.parts.identity.find()?.workspaceId;
      if (!mind || own === undefined || own !== (workspaceId ?? own)) {
        throw new ColloquyError("not_found", "there is no such agent");
      }
      return ok(await work(mind));
    } catch (error) {
      return refusalOf(error);
    }
  }

  async check(config: AgentConfig): Promise<Outcome<null>> {
    try {
      usableConfig(config, this.env);
      return ok(null);
    } catch (error) {
      return refusalOf(error);
    }
  }

  async create(input: { id: string; workspaceId: string; config: AgentConfig }): Promise<Outcome<AgentView>> {
    const checked = await this.check(input.config);
    if (!checked.ok) return checked;
    const { parts, timers } = await this.openMind();
    if (!parts.identity.find()) {
      const { config } = parts.identity.create(input.id, input.workspaceId, AgentConfig.parse(input.config));
      startHeartbeat(timers, config.heartbeat, parts.clock.now());
      parts.mcp.configured();
    }
    return this.describe(input.workspaceId);
  }

  describe(workspaceId: string): Promise<Outcome<AgentView>> {
    return this.#with(workspaceId, (mind) => agentView(mind.parts.identity.get(), mind));
  }

  checkUpdate(workspaceId: string, changes: UpdateAgent): Promise<Outcome<null>> {
    return this.#with(workspaceId, (mind) => {
      changedConfig(mind, changes);
      return null;
    });
  }

  update(workspaceId: string, changes: UpdateAgent): Promise<Outcome<AgentView>> {
    return this.#with(workspaceId, (mind) => {
      configure(mind, changes);
      return agentView(mind.parts.identity.get(), mind);
    });
  }

  remove(workspaceId: string): Promise<Outcome<null>> {
    return this.#with(workspaceId, async () => {
      await this.endMind();
      return null;
    });
  }

  setSecrets(workspaceId: string, sealed: Record<string, string>): Promise<Outcome<null>> {
    return this.#with(workspaceId, (mind) => {
      mind.parts.identity.update({ secrets: sealed });
      mind.parts.mcp.reconsider();
      reconsider(mind);
      return null;
    });
  }

  deliver(text: DeliveryText): Promise<Outcome<{ cursor: number }>> {
    const delivery: Delivery = JSON.parse(text);
    return this.#with(delivery.space.workspaceId, ({ parts, loop }) => {
      const { cursor, asksForRun } = accept(parts, delivery, () => loop.arm());
      fault("agent.after-deliver", this.ctx);
      if (asksForRun) loop.wake();
      if (delivery.answers || delivery.left) parts.wakeCalls();
      return { cursor };
    });
  }

  runs(
    workspaceId: string,
    { limit, cursor, status }: PageRequest & { status?: RunStatus | undefined },
  ): Promise<Outcome<Page<Run>>> {
    return this.#with(workspaceId, ({ parts }) =>
      page(
        parts.runs.page(cursorOf(cursor), limit + 1, status),
        limit,
        (row) => row.ordinal,
        (row) => runView(parts, row),
      ),
    );
  }

  run(workspaceId: string, runId: string, fromStep = 0): Promise<Outcome<Run>> {
    return this.#with(workspaceId, ({ parts }) => {
      const row = parts.runs.get(runId);
      if (!row) throw new ColloquyError("not_found", "there is no such run");
      return runWithInputs(parts, row, fromStep);
    });
  }

  cancelRun(workspaceId: string, runId: string): Promise<Outcome<Run>> {
    return this.#with(workspaceId, async ({ parts, loop }) => {
      const canceled = await loop.cancel(runId);
      await faultOnceStored("agent.after-cancel", this.ctx);
      return runView(parts, canceled);
    });
  }

  context(workspaceId: string): Promise<Outcome<ContextView>> {
    return this.#with(workspaceId, ({ parts }) => contextView(parts));
  }

  memories(workspaceId: string): Promise<Outcome<Memory[]>> {
    return this.#with(workspaceId, ({ parts }) => parts.memories.list());
  }

  putMemory(workspaceId: string, key: string, value: string): Promise<Outcome<Memory>> {
    return this.#with(workspaceId, ({ parts }) => parts.memories.set(key, value));
  }

  deleteMemory(workspaceId: string, key: string): Promise<Outcome<null>> {
    return this.#with(workspaceId, ({ parts }) => {
      if (!parts.memories.delete(key)) throw new ColloquyError("not_found", `there is no memory "${key}"`);
      return null;
    });
  }

  goals(workspaceId: string): Promise<Outcome<Goal[]>> {
    return this.#with(workspaceId, ({ parts }) => parts.goals.list());
  }

  putGoal(workspaceId: string, id: string, goal: PutGoal): Promise<Outcome<Goal>> {
    return this.#with(workspaceId, ({ parts }) => parts.goals.set(id, goal));
  }

  deleteGoal(workspaceId: string, id: string): Promise<Outcome<null>> {
    return this.#with(workspaceId, ({ parts }) => {
      if (!parts.goals.delete(id)) throw new ColloquyError("not_found", `there is no goal "${id}"`);
      return null;
    });
  }

  plans(workspaceId: string): Promise<Outcome<Plan[]>> {
    return this.#with(workspaceId, ({ parts }) => parts.plans.list());
  }

  putPlan(workspaceId: string, id: string, plan: PutPlan): Promise<Outcome<Plan>> {
    return this.#with(workspaceId, ({ parts }) => parts.plans.put(id, plan));
  }

  deletePlan(workspaceId: string, id: string): Promise<Outcome<null>> {
    return this.#with(workspaceId, ({ parts }) => {
      if (parts.plans.delete([id]) === 0) throw new ColloquyError("not_found", `there is no plan "${id}"`);
      return null;
    });
  }

  claimToolCall(workspaceId: string, id: string, claim: ClaimToolCall): Promise<Outcome<WaitingToolCall>> {
    return this.#with(workspaceId, ({ parts }) => {
      const claimed = claimCall(parts, id, claim);
      parts.wakeCalls();
      return claimed;
    });
  }

  answerToolCall(workspaceId: string, id: string, answer: ToolAnswer): Promise<Outcome<AnsweredToolCall>> {
    return this.#with(workspaceId, async ({ parts, loop }) => {
      const answered = await answerCall(parts, id, answer, () => loop.arm());
      loop.wake();
      parts.wakeCalls();
      return answered;
    });
  }
}
