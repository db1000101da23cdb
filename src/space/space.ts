import { DurableObject } from "cloudflare:workers";
import migrations from "../../migrations/space/migrations.js";
import type { Env } from "../env.ts";
import type { ChannelOpen } from "../protocol/channel.ts";
import type { Member } from "../protocol/entity.ts";
import { pingText, pongText } from "../protocol/events.ts";
import type { Message, MessageRouting, PostMessage, ReadReceipt } from "../protocol/message.ts";
import type { Principal } from "../protocol/principal.ts";
import type {
  AgentMessage,
  AgentToolCall,
  EntityRef,
  Page,
  SpaceHistory,
  SpaceRpc,
  SpaceWindow,
} from "../protocol/rpc.ts";
import type { Space as SpaceView, UpdateSpace } from "../protocol/space.ts";
import type { ToolAnswer } from "../protocol/tool-call.ts";
import { createSchema, hasSchema } from "../shared/database.ts";
import { ColloquyError, type Outcome, ok, refusalOf, refuse } from "../shared/errors.ts";
import { faultOnceStored } from "../shared/fault.ts";
import { log as logger } from "../shared/log.ts";
import { closeBack } from "../sockets/authenticated-sockets.ts";
import { jobsTimer } from "../timers/jobs.ts";
import { answerToolCall } from "./answer-tool-call.ts";
import { receiveFrame } from "./client-frames.ts";
import { connect } from "./connect.ts";
import { deliverTimer } from "./delivery/delivery.ts";
import { createSpace, describeSpace, type NewSpace, removeSpace, updateSpace } from "./lifecycle.ts";
import { addMember, removeMember, renameMember } from "./membership.ts";
import { appendFromAgent, post } from "./posting.ts";
import { markRead, markReadByRun, readsOf } from "./read-marks.ts";
import { historyFor, latest, listMessages, type MessagePage, windowFor } from "./reading.ts";
import { recordToolCall } from "./record-tool-call.ts";
import { spaceIn } from "./rights.ts";
import { routingOf } from "./router/decisions.ts";
import type { SpaceServices } from "./services.ts";
import { createServices } from "./services.ts";
import { socketsTimer } from "./sockets/space-sockets.ts";
import { readChannel } from "./streams/channel.ts";
import { callsTimer, onCallsTimer } from "./tool-call-expiry.ts";

/**
 * A shared timeline with members: the one writer of its log, which is the only way that anything leaves it.
 *
 * Invariants
 * 1. What was never created, or was deleted, answers `not_found` and stores no byte.
 * 2. Every method answers an `Outcome`; a rejection is a bug.
 * 3. Whatever changes the space is one transaction, after which its memory only repeats what SQLite says.
 */
export class Space extends DurableObject<Env> implements SpaceRpc {
  readonly #services: SpaceServices;
  #created: boolean;

  constructor(ctx: DurableObjectState, env: Env) {
    super(ctx, env);
    this.#services = createServices(ctx, env);
    this.#created = hasSchema(ctx.storage);
    if (!this.#created) return;
    ctx.setWebSocketAutoResponse(new WebSocketRequestResponsePair(pingText, pongText));
    void ctx.blockConcurrencyWhile(() => createSchema(this.#services.db, migrations));
  }

  async create(input: NewSpace): Promise<Outcome<SpaceView>> {
    if (!this.#created) await createSchema(this.#services.db, migrations);
    this.#created = true;
    this.ctx.setWebSocketAutoResponse(new WebSocketRequestResponsePair(pingText, pongText));
    return this.#indexed(() => createSpace(this.#services, input));
  }

  async describe(principal: Principal): Promise<Outcome<SpaceView>> {
    return this.#answer(() => describeSpace(this.#services, principal));
  }

  update(principal: Principal, changes: UpdateSpace): Promise<Outcome<SpaceView>> {
    return this.#indexed(() => updateSpace(this.#services, principal, changes));
  }

  remove(principal: Principal): Promise<Outcome<null>> {
    return this.#indexed(() => removeSpace(this.#services, principal));
  }

  addMember(principal: Principal, entity: EntityRef): Promise<Outcome<Member>> {
    return this.#indexed(() => addMember(this.#services, principal, entity));
  }

  removeMember(principal: Principal, entityId: string): Promise<Outcome<null>> {
    return this.#indexed(() => removeMember(this.#services, principal, entityId));
  }

  async renameMember(workspaceId: string, entityId: string, name: string): Promise<Outcome<null>> {
    return this.#answer(() => renameMember(this.#services, workspaceId, entityId, name));
  }

  async post(principal: Principal, input: PostMessage): Promise<Outcome<{ message: Message; created: boolean }>> {
    return this.#services.groupCommit.join(() => this.#answer(() => post(this.#services, principal, input)));
  }

  async list(principal: Principal, page: MessagePage): Promise<Outcome<Page<Message>>> {
    return this.#answer(() => listMessages(this.#services, principal, page));
  }

  async markRead(principal: Principal, messageId: string): Promise<Outcome<null>> {
    return this.#answer(() => markRead(this.#services, principal, messageId));
  }

  async reads(principal: Principal, messageId: string): Promise<Outcome<ReadReceipt[]>> {
    return this.#answer(() => readsOf(this.#services, principal, messageId));
  }

  async routing(principal: Principal, messageId: string): Promise<Outcome<MessageRouting>> {
    return this.#answer(() => routingOf(this.#services, principal, messageId));
  }

  async answerToolCall(
    principal: Principal,
    toolCallId: string,
    answer: ToolAnswer,
  ): Promise<Outcome<{ message: Message; created: boolean }>> {
    return this.#answer(() => {
      const { message, created } = answerToolCall(this.#services, principal, toolCallId, answer);
      return { message, created };
    });
  }

  async latest(principal: Principal): Promise<Outcome<{ lastMessage?: Message; unreadCount?: number }>> {
    return this.#answer(() => latest(this.#services, principal));
  }

  async window(
    workspaceId: string,
    agentId: string,
    page: { limit: number; offset: number },
  ): Promise<Outcome<SpaceWindow>> {
    return this.#answer(() => windowFor(this.#services, workspaceId, agentId, page));
  }

  async history(
    workspaceId: string,
    agentId: string,
    page: { after: number; limit: number },
  ): Promise<Outcome<SpaceHistory>> {
    return this.#answer(() => historyFor(this.#services, workspaceId, agentId, page));
  }

  async append(message: AgentMessage): Promise<Outcome<Message>> {
    const answered = this.#answer(() => appendFromAgent(this.#services, message));
    await faultOnceStored("space.before-answer", this.ctx);
    return answered;
  }

  async recordToolCall(call: AgentToolCall): Promise<Outcome<Message>> {
    const answered = this.#answer(() => recordToolCall(this.#services, call));
    await faultOnceStored("space.before-answer", this.ctx);
    return answered;
  }

  async speak(open: ChannelOpen, frames: ReadableStream<Uint8Array>): Promise<Outcome<null>> {
    const admitted = this.#answer(() => {
      spaceIn(this.#services, open.workspaceId);
      if (this.#services.members.find(open.agentId)) return null;
      throw new ColloquyError("not_a_member", `${open.agentId} is not in this space`);
    });
    if (!admitted.ok) await frames.cancel();
    if (!admitted.ok) return admitted;
    return readChannel(this.#services.live, open, frames, (mark) => markReadByRun(this.#services, open, mark));
  }

  /** The upgrade to a WebSocket; a refusal is a problem document. */
  override async fetch(request: Request): Promise<Response> {
    const answered = this.#answer(() => connect(this.#services, request));
    if (answered.ok) return answered.value;
    const headers = { "content-type": "application/problem+json" };
    return new Response(JSON.stringify(answered.problem), { status: answered.problem.status, headers });
  }

  override async webSocketMessage(socket: WebSocket, data: string | ArrayBuffer): Promise<void> {
    const session = this.#services.sockets.of(socket);
    if (session) receiveFrame(this.#services, session, data);
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
    await this.#services.timers.fire((name) => {
      if (name === deliverTimer) this.#services.delivery.onTimer();
      else if (name === jobsTimer) this.#services.jobs.onTimer();
      else if (name === callsTimer) onCallsTimer(this.#services);
      else if (name === socketsTimer) this.#services.sockets.onTimer();
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

  /** Answers once the workspace's index has heard of it, so that who asks it next finds it there. */
  async #indexed<T>(act: () => T): Promise<Outcome<T>> {
    const answered = this.#answer(act);
    if (answered.ok) await this.#services.delivery.indexed();
    return answered;
  }
}
