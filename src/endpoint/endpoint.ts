import { DurableObject } from "cloudflare:workers";
import { histories } from "../../migrations/histories.ts";
import type { Env } from "../env/env.ts";
import { reportMetrics } from "../env/report-metrics.ts";
import type { EndpointDelivery } from "../protocol/endpoint.ts";
import type { EndpointConfig, EndpointNews } from "../protocol/endpoint-rpc.ts";
import type { EndpointRpc, Page, PageRequest } from "../protocol/rpc.ts";
import { createSchema, hasSchema, isMigrated } from "../shared/database.ts";
import { ColloquyError, type Outcome, ok, refusalOf } from "../shared/errors.ts";
import { faultOnceStored } from "../shared/fault.ts";
import { jobsTimer } from "../timers/jobs.ts";
import { createServices, type EndpointServices, pruneTimer } from "./services.ts";

const nowhere = (): ColloquyError => new ColloquyError("not_found", "There is no such endpoint: check its id.");

/**
 * One outgoing webhook: it follows spaces and the workspace, and tells a server what happened there.
 *
 * Invariants
 * 1. What its workspace never made, or has deleted, answers `not_found` and stores no byte.
 * 2. It keeps places, ids and numbers: no word that was said, and no name. Answers of its server may repeat some, and are
 *    forgotten with them.
 */
export class Endpoint extends DurableObject<Env> implements EndpointRpc {
  readonly #services: EndpointServices;

  constructor(ctx: DurableObjectState, env: Env) {
    super(ctx, env);
    this.#services = createServices(ctx, env);
    if (!hasSchema(ctx.storage) || isMigrated(ctx.storage, histories.endpoint)) return;
    void ctx.blockConcurrencyWhile(() => createSchema(this.#services.db, histories.endpoint));
  }

  async configure(config: EndpointConfig): Promise<Outcome<null>> {
    const { db, self, setConfig, sources, sending } = this.#services;
    if (!hasSchema(this.ctx.storage)) {
      await this.ctx.blockConcurrencyWhile(() => createSchema(db, histories.endpoint));
    }
    return this.#outcome(() => {
      const before = self();
      if (before && before.version > config.version) return null;
      setConfig(config);
      const isSame = before?.url === config.url && before.rests === config.rests;
      if (!isSame && !config.rests) for (const id of sources.refresh()) sending.begin(id);
      return null;
    });
  }

  async remove(workspaceId: string): Promise<Outcome<null>> {
    const removed = this.#answer(workspaceId, () => null);
    if (!removed.ok) return removed;
    this.#services.jobs.stop();
    await this.ctx.storage.deleteAlarm();
    await this.ctx.storage.deleteAll();
    this.#services.forget();
    return removed;
  }

  async deliver(news: EndpointNews): Promise<Outcome<{ cursor: number }>> {
    const { sources, deliveries, sending } = this.#services;
    const taken = this.#answer(news.workspaceId, () => {
      const { sourceId, cursor, changed, over } = news;
      if (changed || over) deliveries.forgetAnswers(sourceId);
      if (changed || over) sources.outdate(sourceId);
      if (over) sources.drop(sourceId);
      else sources.told(news);
      sending.begin(sourceId);
      return { cursor };
    });
    await faultOnceStored("endpoint.after-deliver", this.ctx);
    return taken;
  }

  async forgetAnswers(workspaceId: string): Promise<Outcome<number>> {
    const { sources, deliveries } = this.#services;
    return this.#answer(workspaceId, () => {
      sources.outdateAll();
      return deliveries.forgetAnswers();
    });
  }

  async deliveries(workspaceId: string, page: PageRequest): Promise<Outcome<Page<EndpointDelivery>>> {
    return this.#asked(workspaceId, () => this.#services.deliveries.page(page));
  }

  async redeliver(workspaceId: string, from: number): Promise<Outcome<number>> {
    const { sources, deliveries, sending } = this.#services;
    return this.#asked(workspaceId, () => {
      const again = deliveries.firstSince(from).filter(({ sourceId, seq }) => sources.rewind(sourceId, seq - 1));
      for (const id of sources.refresh()) sending.begin(id);
      return again.length;
    });
  }

  override async alarm(): Promise<void> {
    const { self, timers, jobs, clock, prune } = this.#services;
    if (!self()) return;
    this.ctx.waitUntil(reportMetrics(this.env, clock.now()));
    await timers.fire((name) => {
      if (name === jobsTimer) jobs.onTimer();
      if (name === pruneTimer) prune();
    });
  }

  #answer<T>(workspaceId: string, act: () => T): Outcome<T> {
    return this.#services.self()?.workspaceId === workspaceId ? this.#outcome(act) : refusalOf(nowhere());
  }

  /** The answer to what may be refused: a refusal takes back nothing that was sent. */
  #asked<T>(workspaceId: string, act: () => T): Outcome<T> {
    if (this.#services.self()?.workspaceId === workspaceId) this.#services.sending.store();
    return this.#answer(workspaceId, act);
  }

  /** Runs `act` in one transaction. */
  #outcome<T>(act: () => T): Outcome<T> {
    try {
      return ok(this.#services.db.transaction(act));
    } catch (error) {
      return refusalOf(error);
    }
  }
}
