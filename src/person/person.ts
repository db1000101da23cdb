import { DurableObject } from "cloudflare:workers";
import { histories } from "../../migrations/histories.ts";
import type { Env } from "../env/env.ts";
import { reportMetrics } from "../env/report-metrics.ts";
import { closeCodes, pingText, pongText } from "../protocol/events.ts";
import type { PersonDelivery, PersonRpc } from "../protocol/person-rpc.ts";
import { createSchema, hasSchema, isMigrated } from "../shared/database.ts";
import { type Outcome, ok, refusalOf } from "../shared/errors.ts";
import { faultOnceStored } from "../shared/fault.ts";
import { log } from "../shared/log.ts";
import { closeBack } from "../sockets/authenticated-sockets.ts";
import { receiveFrame } from "./client-frames.ts";
import { connect } from "./connect.ts";
import { followsNow, forgetAll, hear } from "./hearing.ts";
import { ask, look, type Self } from "./looking.ts";
import { askTimer, createServices, linesTimer, type PersonServices } from "./services.ts";

/**
 * One person, over all their spaces: one line for each of their pages and devices.
 *
 * Invariants
 * 1. While nobody looks, spaces tell it nothing and it keeps nothing. A person who never looked stores no byte.
 * 2. A space's words are here only while that space tells of their deletion.
 * 3. A space's own rules decide what of it a line carries: this object asks it with the line's credentials.
 */
export class Person extends DurableObject<Env> implements PersonRpc {
  readonly #services: PersonServices;
  #created: boolean;

  constructor(ctx: DurableObjectState, env: Env) {
    super(ctx, env);
    this.#services = createServices(ctx, env);
    this.#created = hasSchema(ctx.storage);
    if (!this.#created) return;
    ctx.setWebSocketAutoResponse(new WebSocketRequestResponsePair(pingText, pongText));
    if (isMigrated(ctx.storage, histories.person)) return;
    void ctx.blockConcurrencyWhile(() => createSchema(this.#services.db, histories.person));
  }

  async hear(delivery: PersonDelivery): ReturnType<PersonRpc["hear"]> {
    try {
      const follows = followsNow(this.#services);
      if (!this.#created) return ok({ follows });
      if (follows === null) forgetAll(this.#services);
      else hear(this.#services, delivery);
      await faultOnceStored("person.after-hear", this.ctx);
      return ok({ follows });
    } catch (error) {
      return refusalOf(error);
    }
  }

  async joined(_workspaceId: string, spaceId: string): Promise<Outcome<null>> {
    const self = this.#self();
    if (self) await ask(this.#services, self, spaceId);
    return ok(null);
  }

  async proveAgain(_workspaceId: string, subject: string): Promise<Outcome<null>> {
    if (this.#created) this.#services.sockets.proveAgain(subject);
    return ok(null);
  }

  async setSuspended(_workspaceId: string, suspended: boolean): Promise<Outcome<null>> {
    if (this.#created && suspended) {
      this.#services.sockets.closeWhere(() => true, closeCodes.suspended, "the workspace is suspended");
    }
    return ok(null);
  }

  async remove(): Promise<Outcome<null>> {
    if (!this.#created) return ok(null);
    this.#services.sockets.closeWhere(() => true, closeCodes.removed, "the person is no more");
    forgetAll(this.#services);
    return ok(null);
  }

  /** The upgrade to a WebSocket; a refusal is a problem document. */
  override async fetch(request: Request): Promise<Response> {
    this.ctx.waitUntil(reportMetrics(this.env, this.#services.clock.now()));
    const opening = Symbol("line");
    this.#services.opening.add(opening);
    try {
      if (!this.#created) await createSchema(this.#services.db, histories.person);
      this.#created = true;
      this.ctx.setWebSocketAutoResponse(new WebSocketRequestResponsePair(pingText, pongText));
      return await connect(this.#services, request);
    } catch (error) {
      const { problem } = refusalOf(error);
      const headers = { "content-type": "application/problem+json" };
      return new Response(JSON.stringify(problem), { status: problem.status, headers });
    } finally {
      this.#services.opening.delete(opening);
    }
  }

  override async webSocketMessage(socket: WebSocket, data: string | ArrayBuffer): Promise<void> {
    await receiveFrame(this.#services, socket, data);
  }

  override async webSocketClose(socket: WebSocket, code: number): Promise<void> {
    this.#end(socket);
    closeBack(socket, code);
  }

  override async webSocketError(socket: WebSocket, error: unknown): Promise<void> {
    log.warn("socket.failed", { reason: error instanceof Error ? error.message : String(error) });
    this.#end(socket);
  }

  override async alarm(): Promise<void> {
    if (!this.#created) return;
    const { timers, sockets } = this.#services;
    await timers.fire(async (name) => {
      if (name === linesTimer) sockets.onTimer();
      const self = this.#self();
      if (name === askTimer && self) await look(this.#services, self);
    });
  }

  /** Undefined where no line is open. */
  #self(): Self | undefined {
    const [session] = this.#services.sockets.all();
    return session && { workspaceId: session.principal.workspaceId, entityId: session.data.entityId };
  }

  #end(socket: WebSocket): void {
    this.#services.sockets.forget(socket);
    this.#services.subscriptions.end(socket);
  }
}
