import { DurableObject } from "cloudflare:workers";
import { histories } from "../../migrations/histories.ts";
import type { Env } from "../env/env.ts";
import { reportMetrics } from "../env/report-metrics.ts";
import type { AgentConfig, Agent as AgentView } from "../protocol/agent.ts";
import type { AgentRpc, SealedHook } from "../protocol/agent-rpc.ts";
import type { Delivery, DeliveryText } from "../protocol/rpc.ts";
import { systemClock } from "../shared/clock.ts";
import { createSchema, hasSchema, isMigrated, openDatabase } from "../shared/database.ts";
import { ColloquyError, type Outcome, ok, refusalOf, suspendedError } from "../shared/errors.ts";
import { fault } from "../shared/fault.ts";
import { createIds } from "../shared/ids.ts";
import { ringOf } from "../shared/secret-ring.ts";
import { settledWithin } from "../shared/timeouts.ts";
import { closeBack } from "../sockets/authenticated-sockets.ts";
import type { AgentRuntime, Area } from "./api/agent-runtime.ts";
import { blocksArea } from "./api/blocks.ts";
import {
  beginCompartment,
  compartmentsArea,
  forgetCompartment,
  isFor,
  isLast,
  removeCompartments,
  requireMind,
} from "./api/compartments.ts";
import { configArea, createAgent, usableConfig } from "./api/config.ts";
import { guestsArea } from "./api/guests.ts";
import { createImportSession, exportArea, importMethods } from "./api/import-session.ts";
import { hooksArea, inboxArea } from "./api/inbox.ts";
import { knowledgeArea } from "./api/knowledge.ts";
import { memoryArea } from "./api/memory.ts";
import { relatedArea } from "./api/related.ts";
import { runsArea } from "./api/runs.ts";
import { takingBackArea } from "./api/taking-back.ts";
import { mindAnswerMs } from "./bounds.ts";
import { accept } from "./inbox/deliver.ts";
import { createRuntime } from "./runtime.ts";

/** The methods that need the agent's runtime and nothing else of the object. */
const areas = {
  ...configArea,
  ...compartmentsArea,
  ...inboxArea,
  ...runsArea,
  ...memoryArea,
  ...hooksArea,
  ...guestsArea,
  ...blocksArea,
  ...exportArea,
  ...knowledgeArea,
  ...relatedArea,
  ...takingBackArea,
};

type Installed = keyof typeof areas | (typeof importMethods)[number];
/** They need no runtime, end it, or read the workspace from the call. */
type Own = Omit<AgentRpc, Installed>;

export interface Agent extends Pick<AgentRpc, Installed> {}

/** One agent. It binds and delegates; the areas are in `api/`. */
// biome-ignore lint/suspicious/noUnsafeDeclarationMerging: the static block installs every method of `Installed`.
export class Agent extends DurableObject<Env> implements Own {
  #runtime: AgentRuntime | undefined;
  #ending: Promise<void> | undefined;
  /** It becomes a compartment. */
  #beginning: Promise<Outcome<void>> | undefined;
  readonly #import: ReturnType<typeof createImportSession>;

  /** Areas become methods of the prototype: a call is one round trip, and tests find them there. */
  static {
    type Method = (this: Agent, ...args: unknown[]) => Promise<Outcome<unknown>>;
    const install = (name: string, value: Method) =>
      Object.defineProperty(Agent.prototype, name, { value, configurable: true, writable: true });
    for (const [name, work] of Object.entries(areas satisfies Area<keyof typeof areas>)) {
      install(name, function (workspaceId, ...args) {
        const answer = () =>
          this.#with(String(workspaceId), (runtime) => {
            requireMind(name, runtime);
            return Reflect.apply(work, undefined, [runtime, ...args]);
          });
        return this.#afterBeginning(answer);
      });
    }
    for (const name of importMethods) {
      install(name, function (...args) {
        return this.#answer(() => Reflect.apply(this.#import[name], undefined, args));
      });
    }
  }

  constructor(ctx: DurableObjectState, env: Env) {
    super(ctx, env);
    this.#import = createImportSession(env, {
      current: () => this.#runtime,
      open: () => this.#open(),
      end: () => this.#end(),
    });
    if (!hasSchema(ctx.storage)) return;
    if (isMigrated(ctx.storage, histories.agent)) this.#runtime = this.#create();
    else void ctx.blockConcurrencyWhile(async () => void (await this.#open()));
  }

  /** The runtime of this object, made with its tables where it has none. */
  async #open(): Promise<AgentRuntime> {
    // An end that is under way would take what is made meanwhile.
    await this.#ending?.catch(() => undefined);
    if (!this.#runtime) await createSchema(openDatabase(this.ctx.storage), histories.agent);
    // Another call may have made it meanwhile, and there is one loop only.
    this.#runtime ??= this.#create();
    return this.#runtime;
  }

  #create(): AgentRuntime {
    return createRuntime(this.ctx, this.env, () => this.#end());
  }

  /** Ends the runtime and deletes all that the object stores, after the work `before`. Callers side by side share one end. */
  #end(before?: () => Promise<void>): Promise<void> {
    const end = async (): Promise<void> => {
      await before?.();
      await settledWithin(mindAnswerMs, this.#runtime?.services.usage.tellLast() ?? Promise.resolve());
      await this.#runtime?.stop();
      this.#runtime = undefined;
      await this.ctx.storage.deleteAlarm();
      await this.ctx.storage.deleteAll();
    };
    this.#ending ??= end().finally(() => {
      this.#ending = undefined;
    });
    return this.#ending;
  }

  /** Asks once this object has become a compartment, where it does so now. */
  #afterBeginning<T>(ask: () => Promise<T>): Promise<T> {
    return this.#beginning?.then(ask, ask) ?? ask();
  }

  /** Runs `work` where there is an agent and, if the caller knows its workspace, it is this agent's. */
  #with<T>(workspaceId: string | undefined, work: (runtime: AgentRuntime) => T | Promise<T>): Promise<Outcome<T>> {
    return this.#answer(() => {
      const runtime = this.#runtime;
      const own = runtime?.services.identity.find()?.workspaceId;
      if (!runtime || own === undefined || own !== (workspaceId ?? own)) {
        throw new ColloquyError("not_found", "there is no such agent");
      }
      return work(runtime);
    });
  }

  async #answer<T>(work: () => T | Promise<T>): Promise<Outcome<T>> {
    try {
      return ok(await work());
    } catch (error) {
      return refusalOf(error);
    }
  }

  check(config: AgentConfig): Promise<Outcome<null>> {
    return this.#answer(() => {
      usableConfig(config, this.env);
      return null;
    });
  }

  async create(input: { id: string; workspaceId: string; config: AgentConfig }): Promise<Outcome<AgentView>> {
    const made = await this.#answer(async () => {
      usableConfig(input.config, this.env);
      createAgent(await this.#open(), input);
    });
    return made.ok ? this.describe(input.workspaceId) : made;
  }

  remove(workspaceId: string): Promise<Outcome<null>> {
    const end = () =>
      this.#with(workspaceId, async (runtime) => {
        await this.#end(() => removeCompartments(runtime, workspaceId));
        return null;
      });
    return this.#afterBeginning(end);
  }

  async deliver(text: DeliveryText): Promise<Outcome<{ cursor: number; changes?: true }>> {
    const delivery: Delivery = JSON.parse(text);
    this.ctx.waitUntil(reportMetrics(this.env, systemClock.now()));
    const begun = delivery.compartment && (await this.#begin(delivery));
    if (begun && !begun.ok) return begun;
    return this.#with(delivery.space.workspaceId, async ({ db, services, loop }) => {
      if (!isFor(delivery, services.identity.get())) throw new ColloquyError("not_found", "there is no such agent");
      if (isLast(delivery)) {
        await this.#end();
        return { cursor: delivery.cursor, changes: true };
      }
      forgetCompartment(db, delivery);
      const { cursor, asksForRun } = accept(services, delivery);
      services.armCuts();
      fault("agent.after-deliver", this.ctx);
      if (asksForRun) loop.wake();
      if (delivery.answers || delivery.left || delivery.openUpTo !== undefined) services.wakeCalls();
      // The agent may have come back: what was planned there goes on.
      if (delivery.compartment && !services.isClosed()) services.plans.resume();
      return { cursor, changes: true };
    });
  }

  /** Makes this object the compartment that a delivery is for, unless it is one. Deliveries side by side share the beginning. */
  #begin(delivery: Delivery): Promise<Outcome<void>> | undefined {
    if (this.#runtime?.services.identity.find()) return undefined;
    const around = { env: this.env, ids: createIds(ringOf(this.env).ids.secret), open: () => this.#open() };
    this.#beginning ??= this.#answer(() => beginCompartment(around, delivery)).finally(() => {
      this.#beginning = undefined;
    });
    return this.#beginning;
  }

  sealedHook(id: string): Promise<Outcome<SealedHook>> {
    return this.#with(undefined, ({ services }) => {
      const { id: agentId, workspaceId } = services.identity.get();
      return { workspaceId, agentId, ...services.hooks.sealed(id) };
    });
  }

  override alarm(): Promise<void> {
    this.ctx.waitUntil(reportMetrics(this.env, systemClock.now()));
    return this.#import.alarm();
  }

  /** Opens a socket that follows a block. */
  override async fetch(request: Request): Promise<Response> {
    const opened = await this.#with(undefined, ({ services: { subscriptions, identity, blocks, isSuspended } }) => {
      if (isSuspended()) throw suspendedError();
      return subscriptions.open(request, identity, blocks);
    });
    return opened.ok ? opened.value : Response.json(opened.problem, { status: opened.problem.status });
  }

  override async webSocketMessage(socket: WebSocket): Promise<void> {
    await this.#with(undefined, ({ services }) => services.subscriptions.received(socket));
  }

  override async webSocketClose(socket: WebSocket, code: number): Promise<void> {
    await this.#with(undefined, ({ services }) => services.subscriptions.forget(socket));
    closeBack(socket, code);
  }

  override async webSocketError(socket: WebSocket): Promise<void> {
    await this.#with(undefined, ({ services }) => services.subscriptions.forget(socket));
  }
}
