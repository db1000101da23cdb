import { DurableObject } from "cloudflare:workers";
import { histories } from "../../migrations/histories.ts";
import type { Env, Served } from "../env/env.ts";
import { reportMetrics } from "../env/report-metrics.ts";
import { usageTimer } from "../env/report-usage.ts";
import { type ChannelOpen, pingText, pongText } from "../protocol/events.ts";
import type { SpaceRpc } from "../protocol/rpc.ts";
import type { Space as SpaceView } from "../protocol/space.ts";
import { createSchema, hasSchema, isMigrated } from "../shared/database.ts";
import { type Outcome, ok, refusalOf, refuse } from "../shared/errors.ts";
import { faultOnceStored } from "../shared/fault.ts";
import { log as logger } from "../shared/log.ts";
import { settledWithin } from "../shared/timeouts.ts";
import { closeBack } from "../sockets/authenticated-sockets.ts";
import { jobsTimer } from "../timers/jobs.ts";
import { indexWaitMs } from "./bounds.ts";
import { noteBudget } from "./budget-notices.ts";
import { receiveFrame } from "./client-frames.ts";
import { connect } from "./connect.ts";
import { deliverTimer } from "./delivery/delivery.ts";
import { erase } from "./erasing.ts";
import {
  addMember,
  createSpace,
  describeSpace,
  type NewSpace,
  proveAgain,
  removeMember,
  removeSpace,
  renameMember,
  setEndpoints,
  setSuspended,
  toldTo,
  updateSpace,
} from "./lifecycle.ts";
import { deleteMessage, editMessage } from "./message-changes.ts";
import { forgetOrigin, handleTold } from "./origin-changes.ts";
import { appendFromAgent, post, requireOwnMind } from "./posting.ts";
import {
  askedOf,
  attend,
  findMessage,
  historyFor,
  latest,
  listMessages,
  markRead,
  markReadByRun,
  messageFor,
  readsOf,
  searchMessages,
  windowFor,
} from "./reading.ts";
import { handleRetention, setRetention } from "./retention.ts";
import { memberIn, spaceIn } from "./rights.ts";
import { routingOf } from "./router/decisions.ts";
import type { SpaceServices } from "./services.ts";
import { createServices } from "./services.ts";
import { socketsTimer } from "./space-sockets.ts";
import { readChannel } from "./streams/channel.ts";
import { noteTold, toldLeft } from "./told-origins.ts";
import { answerToolCall, callsTimer, onCallsTimer, recordToolCall } from "./tool-call-events.ts";

/** The methods that need the space's services and nothing else of the object. */
const answers = {
  describe: describeSpace,
  list: listMessages,
  search: searchMessages,
  asked: askedOf,
  latest,
  attend,
  window: windowFor,
  history: historyFor,
  message: messageFor,
  find: findMessage,
  editMessage,
  deleteMessage,
  forgetOrigin,
  noteTold,
  erase,
  markRead,
  reads: readsOf,
  routing: routingOf,
  noteBudget,
  renameMember,
  setSuspended,
  setRetention,
  setEndpoints,
  toldTo,
  endSession: proveAgain,
  proveAgain,
  answerToolCall: (services, ...given) => {
    const { message, created } = answerToolCall(services, ...given);
    return { message, created };
  },
} satisfies Partial<Served<SpaceRpc, SpaceServices>>;

/** Answered once the workspace's index has heard of it, so that who asks it next finds it there. */
const indexed = { update: updateSpace, remove: removeSpace, addMember, removeMember } satisfies Partial<
  Served<SpaceRpc, SpaceServices>
>;

/** Messages and tool calls of agents. */
const fromAgents = { append: appendFromAgent, recordToolCall } satisfies Partial<Served<SpaceRpc, SpaceServices>>;

const served = { ...answers, ...indexed, ...fromAgents };
type Installed = keyof typeof served;

export interface Space extends Pick<SpaceRpc, Installed> {}

/**
 * A shared timeline with members: the one writer of its log, which is the only way that anything leaves it.
 *
 * Invariants
 * 1. What was never created, or was deleted, answers `not_found` and stores no byte.
 * 2. Every method answers an `Outcome`; a rejection is a bug.
 * 3. Whatever changes the space is one transaction, after which its memory only repeats what SQLite says.
 */
// biome-ignore lint/suspicious/noUnsafeDeclarationMerging: the static block installs every method of `Installed`.
export class Space extends DurableObject<Env> implements Omit<SpaceRpc, Installed> {
  readonly #services: SpaceServices;
  #created: boolean;

  static {
    for (const [name, work] of Object.entries(served)) {
      const value = async function (this: Space, ...args: unknown[]): Promise<Outcome<unknown>> {
        const isEnd = name === "remove" || (name === "erase" && args[1] === null);
        if (isEnd) await settledWithin(indexWaitMs, this.#services.usage.tellLast());
        const answered = this.#answer(() => Reflect.apply(work, undefined, [this.#services, ...args]) ?? null);
        // The workspace was told that nothing is stored here, which is wrong now.
        if (isEnd && this.#created && !answered.ok) this.#services.usage.noted();
        if (name in indexed && answered.ok) await this.#services.delivery.indexed();
        if (name in fromAgents) await faultOnceStored("space.before-answer", this.ctx);
        return answered;
      };
      Object.defineProperty(Space.prototype, name, { value, configurable: true, writable: true });
    }
  }

  constructor(ctx: DurableObjectState, env: Env) {
    super(ctx, env);
    this.#services = createServices(ctx, env);
    handleRetention(this.#services);
    handleTold(this.#services, env);
    this.#created = hasSchema(ctx.storage);
    if (!this.#created) return;
    ctx.setWebSocketAutoResponse(new WebSocketRequestResponsePair(pingText, pongText));
    if (isMigrated(ctx.storage, histories.space)) return;
    void ctx.blockConcurrencyWhile(() => createSchema(this.#services.db, histories.space));
    // A migration may have set jobs that note what was told.
    void ctx.blockConcurrencyWhile(async () => toldLeft(this.#services) > 0 && this.#services.jobs.onTimer());
  }

  async create(input: NewSpace): Promise<Outcome<SpaceView>> {
    if (!this.#created) await createSchema(this.#services.db, histories.space);
    this.#created = true;
    this.ctx.setWebSocketAutoResponse(new WebSocketRequestResponsePair(pingText, pongText));
    const answered = this.#answer(() => createSpace(this.#services, input));
    if (answered.ok) await this.#services.delivery.indexed();
    return answered;
  }

  post(...given: Parameters<SpaceRpc["post"]>): ReturnType<SpaceRpc["post"]> {
    return this.#services.groupCommit.join(() => this.#answer(() => post(this.#services, ...given)));
  }

  async speak(open: ChannelOpen, frames: ReadableStream<Uint8Array>): Promise<Outcome<null>> {
    const admitted = this.#answer(() => {
      spaceIn(this.#services, open.workspaceId);
      requireOwnMind(this.#services, open);
      memberIn(this.#services, open.agentId);
    });
    if (admitted.ok) {
      return readChannel(this.#services.live, open, frames, (mark) => markReadByRun(this.#services, open, mark));
    }
    await frames.cancel();
    return admitted;
  }

  /** The upgrade to a WebSocket; a refusal is a problem document. */
  override async fetch(request: Request): Promise<Response> {
    this.ctx.waitUntil(reportMetrics(this.env, this.#services.clock.now()));
    const answered = this.#answer(() => connect(this.#services, request));
    if (answered.ok) return answered.value;
    const headers = { "content-type": "application/problem+json" };
    return new Response(JSON.stringify(answered.problem), { status: answered.problem.status, headers });
  }

  override async webSocketMessage(socket: WebSocket, data: string | ArrayBuffer): Promise<void> {
    const session = this.#services.sockets.of(socket);
    if (session) await receiveFrame(this.#services, session, data);
  }

  override async webSocketClose(socket: WebSocket, code: number): Promise<void> {
    this.#services.sockets.forget(socket);
    closeBack(socket, code);
  }

  override async webSocketError(socket: WebSocket, error: unknown): Promise<void> {
    logger.warn("socket.failed", { reason: error instanceof Error ? error.message : String(error) });
    this.#services.sockets.forget(socket);
  }

  override async alarm(): Promise<void> {
    if (!this.#created) return;
    const { timers, delivery, jobs, sockets, clock, usage } = this.#services;
    this.ctx.waitUntil(reportMetrics(this.env, clock.now()));
    await timers.fire((name) => {
      if (name === deliverTimer) delivery.onTimer();
      else if (name === jobsTimer) jobs.onTimer();
      else if (name === usageTimer) return usage.onTimer();
      else if (name === callsTimer) onCallsTimer(this.#services);
      else if (name === socketsTimer) sockets.onTimer();
    });
  }

  #answer<T>(act: () => T): Outcome<T> {
    if (!this.#created) return refuse("not_found", "There is no such space: check its id");
    try {
      return ok(act());
    } catch (error) {
      return refusalOf(error);
    }
  }
}
