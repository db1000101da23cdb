import { DurableObject } from "cloudflare:workers";
import { histories } from "../../migrations/histories.ts";
import type { Env } from "../env/env.ts";
import { reportMetrics } from "../env/report-metrics.ts";
import { closeCodes, pingText, pongText } from "../protocol/events.ts";
import type { LineEvent } from "../protocol/line.ts";
import type { ChangeSettings } from "../protocol/notifications.ts";
import type { AddedDevice, PersonDelivery, PersonRpc, Self } from "../protocol/person-rpc.ts";
import type { Principal } from "../protocol/principal.ts";
import { createSchema, hasSchema, isMigrated } from "../shared/database.ts";
import { ColloquyError, type Outcome, ok, refusalOf } from "../shared/errors.ts";
import { faultOnceStored } from "../shared/fault.ts";
import { log } from "../shared/log.ts";
import { closeBack } from "../sockets/authenticated-sockets.ts";
import { jobsTimer } from "../timers/jobs.ts";
import { receiveFrame } from "./client-frames.ts";
import { connect } from "./connect.ts";
import { followsNow, forgetAll, hear } from "./hearing.ts";
import { handleAsking, joined, renew, requirePerson } from "./looking.ts";
import { createServices, linesTimer, type PersonServices, readsConfidential } from "./services.ts";
import { changedSettings } from "./settings.ts";

/**
 * One person, over all their spaces: one line for each of their pages and devices.
 *
 * Invariants
 * 1. While nobody looks and no device is to be told, spaces tell it nothing: it keeps who they are and what they set. A person
 *    who never looked and set nothing stores no byte.
 * 2. A space's words are here only while that space tells of their deletion: how it stands while it tells all, and what
 *    concerns the person while it tells at least that.
 * 3. A space's own rules decide what of it a line carries: this object asks it with the line's credentials.
 */
export class Person extends DurableObject<Env> implements PersonRpc {
  readonly #services: PersonServices;
  #created: boolean;

  constructor(ctx: DurableObjectState, env: Env) {
    super(ctx, env);
    this.#services = createServices(ctx, env, () => this.#lessens());
    handleAsking(this.#services);
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
      if (follows === null) this.#lessens();
      else hear(this.#services, delivery, follows);
      await faultOnceStored("person.after-hear", this.ctx);
      return ok({ follows });
    } catch (error) {
      return refusalOf(error);
    }
  }

  async joined(_workspaceId: string, spaceId: string): Promise<Outcome<null>> {
    if (this.#created && followsNow(this.#services) !== null) joined(this.#services, spaceId);
    return ok(null);
  }

  async proveAgain(_workspaceId: string, subject: string): Promise<Outcome<null>> {
    if (!this.#created) return ok(null);
    this.#services.sockets.proveAgain(subject);
    this.#services.pushing.proveAgain(subject);
    return ok(null);
  }

  async settings(): ReturnType<PersonRpc["settings"]> {
    return ok(this.#services.people.settings());
  }

  async changeSettings(self: Self, changes: ChangeSettings): ReturnType<PersonRpc["changeSettings"]> {
    return this.#set(self, ({ people, sockets }) => {
      const settings = changedSettings(people.settings(), changes);
      people.keep(self, { settings });
      const event: LineEvent = { type: "settings", settings };
      sockets.broadcast(JSON.stringify(event));
      return settings;
    });
  }

  async devices(): ReturnType<PersonRpc["devices"]> {
    return ok(this.#created ? this.#services.devices.list() : []);
  }

  async addDevice(self: Self, added: AddedDevice, principal: Principal): ReturnType<PersonRpc["addDevice"]> {
    return this.#set(self, (services) => {
      const { people, devices, pushing } = services;
      people.keep(self);
      const before = devices.find(added.id);
      // The pushes that wait for this device may quote confidential spaces (C19).
      if (before && readsConfidential(before.principal) && !readsConfidential(principal)) devices.forget(added.id);
      const device = devices.add(added, principal);
      pushing.outdate(added.id);
      if (device.isNew) renew(services);
      return device;
    });
  }

  async removeDevice(_self: Self, deviceId: string): Promise<Outcome<null>> {
    if (this.#created && this.#services.pushing.forget(deviceId)) return ok(null);
    return refusalOf(new ColloquyError("not_found", "You have no such device: check its id"));
  }

  async setSuspended(_workspaceId: string, suspended: boolean): Promise<Outcome<null>> {
    if (!this.#created) return ok(null);
    const { sockets, people, pushing } = this.#services;
    if (suspended) sockets.closeWhere(() => true, closeCodes.suspended, "the workspace is suspended");
    const self = people.self();
    if (self) people.keep(self, { rests: suspended });
    if (!suspended) {
      renew(this.#services);
      pushing.begin();
    }
    return ok(null);
  }

  async remove(): Promise<Outcome<null>> {
    if (!this.#created) return ok(null);
    const { db, sockets, people, devices } = this.#services;
    sockets.closeWhere(() => true, closeCodes.removed, "the person is no more");
    db.transaction(() => {
      for (const { id } of devices.all()) devices.forget(id);
      people.remove();
      forgetAll(this.#services);
    });
    return ok(null);
  }

  /** The upgrade to a WebSocket; a refusal is a problem document. */
  override async fetch(request: Request): Promise<Response> {
    this.ctx.waitUntil(reportMetrics(this.env, this.#services.clock.now()));
    const opening = Symbol("line");
    this.#services.opening.add(opening);
    try {
      await this.#create();
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
    const { timers, jobs, sockets } = this.#services;
    await timers.fire((name) => {
      if (name === linesTimer) sockets.onTimer();
      if (name === jobsTimer) jobs.onTimer();
    });
  }

  async #create(): Promise<void> {
    if (!this.#created) await createSchema(this.#services.db, histories.person);
    this.#created = true;
    this.ctx.setWebSocketAutoResponse(new WebSocketRequestResponsePair(pingText, pongText));
  }

  /** Does what the person asks for, in a transaction, once their workspace has said that they may. */
  async #set<T>(self: Self, act: (services: PersonServices) => T): Promise<Outcome<T>> {
    try {
      await requirePerson(this.#services, self);
      await this.#create();
      return ok(this.#services.db.transaction(() => act(this.#services)));
    } catch (error) {
      return refusalOf(error);
    }
  }

  /** Where nobody can be reached any more, nothing is kept of what was told. */
  #lessens(): void {
    if (followsNow(this.#services) === null) this.#services.db.transaction(() => forgetAll(this.#services));
  }

  #end(socket: WebSocket): void {
    this.#services.sockets.forget(socket);
    this.#services.subscriptions.end(socket);
  }
}
