import { rootSealer } from "../auth/root-header.ts";
import { endpointSecretName, unseal } from "../auth/sealing.ts";
import type { Env } from "../env/env.ts";
import type { EndpointConfig, ToldEvent, ToldEvents } from "../protocol/endpoint-rpc.ts";
import type { Clock } from "../shared/clock.ts";
import type { Database } from "../shared/database.ts";
import { type Outcome, unwrap } from "../shared/errors.ts";
import { type Crashable, faultOnceStored } from "../shared/fault.ts";
import { pause, withTimeout } from "../shared/timeouts.ts";
import type { Jobs } from "../timers/jobs.ts";
import { maxSourcesAtOnce, sourceTimeoutMs, storeSentMs } from "./bounds.ts";
import type { Deliveries } from "./deliveries.ts";
import { type Envelope, envelopesOf, retryAt, type Sent, send } from "./send.ts";
import type { Sources } from "./sources.ts";

/**
 * Sends what sources have to tell to the endpoint's server: a job for each source.
 *
 * Invariants
 * 1. The events of a source go out one after another, in its order. The next goes once the server took the one before.
 * 2. Events are read from their source just before they go out, also when they are tried again. So they are told as they are now.
 *    The next ones are read while these go out, and anew once their source has told of a change.
 * 3. A delivery counts once its 2xx has come, and is stored `storeSentMs` later: what a crash cuts is sent again, under the
 *    same id.
 * 4. A source that fails delays itself alone. An endpoint that rests sends nothing.
 */
const kind = "send";

type Around = {
  env: Env;
  db: Database;
  clock: Clock;
  jobs: Jobs;
  self: () => EndpointConfig | undefined;
  sources: Sources;
  deliveries: Deliveries;
  /** Its server has had its time. */
  giveUp: (config: EndpointConfig, detail: string) => void;
  /** Tries were stored. */
  stored: () => void;
  waitUntil: (work: Promise<void>) => void;
  object: Crashable;
};

export const createSending = (around: Around) => {
  const { env, db, clock, jobs, self, sources, deliveries, giveUp, stored, waitUntil, object } = around;
  /** Opened secrets, by what is stored of them. */
  const opened = new Map<string, Promise<string>>();
  let isStoring = false;

  const secretsOf = ({ id, workspaceId, secrets }: EndpointConfig): Promise<string[]> => {
    const living = secrets.filter(({ until }) => until === undefined || until > clock.now());
    if (opened.size > secrets.length) opened.clear();
    const open = ({ sealed }: { sealed: string }): Promise<string> => {
      const secret = opened.get(sealed) ?? unseal(env, workspaceId, endpointSecretName(id), sealed);
      opened.set(sealed, secret);
      return secret;
    };
    return Promise.all(living.map(open));
  };

  /** Adds the sealed root of a message, which the server may pass on. The same event always has the same text. */
  const withRoot = (seal: ReturnType<typeof rootSealer>, { root, ...event }: ToldEvent): ToldEvent => {
    if (!root || event.timestamp === undefined) return event;
    const sealed = JSON.stringify(seal(root, Date.parse(event.timestamp)));
    return { ...event, data: `${event.data.slice(0, -1)},"root":${sealed}}` };
  };

  /** The next events of a source; undefined where it has none for this endpoint any more. */
  const read = async (config: EndpointConfig, sourceId: string, after: number): Promise<ToldEvents | undefined> => {
    const { workspaceId, id: endpointId, types } = config;
    const source = sourceId === workspaceId ? env.WORKSPACE.getByName(sourceId) : env.SPACE.getByName(sourceId);
    const asked: Promise<Outcome<ToldEvents>> = source.toldTo(workspaceId, { endpointId, after, types });
    const told = await withTimeout(sourceTimeoutMs, asked);
    if (!told.ok && told.problem.code === "not_found") return undefined;
    const { events, cursor } = unwrap(told);
    const seal = rootSealer(env, workspaceId);
    return { events: events.map((event) => withRoot(seal, event)), cursor };
  };

  const store = (): void => {
    db.transaction(() => {
      sources.store();
      deliveries.store();
      stored();
    });
  };

  const storeSoon = (): void => {
    if (isStoring) return;
    isStoring = true;
    waitUntil(
      pause(storeSentMs).then(() => {
        isStoring = false;
        if (self()) store();
      }),
    );
  };

  /** An answer to words that are outdated by now may repeat them: it is not kept. */
  const note = (
    sourceId: string,
    { id: webhookId, type, events }: Envelope,
    { at, generation, ...sent }: Sent & { at: number; generation: number },
  ): void => {
    const { isDelivered, ms, status = null, error = null } = sent;
    const answer = sources.generation(sourceId) === generation ? (sent.answer ?? null) : null;
    const attempt = (sources.find(sourceId)?.failures ?? 0) + 1;
    const what = { sourceId, seq: events[0]?.seq ?? 0, webhookId, type, events: events.length };
    deliveries.note({ ...what, at, attempt, isDelivered, status, ms, answer, error });
  };

  /**
   * Sends these in order, as long as they are what the source tells the endpoint as it is now. False where one failed, and waits for
   * its next try. True: all went out, or they are to be read anew.
   */
  const sendAll = async (
    config: EndpointConfig,
    sourceId: string,
    told: ToldEvents,
    generation: number,
  ): Promise<boolean> => {
    for (const envelope of envelopesOf(told.events, config.batch)) {
      const target = {
        url: config.url,
        secrets: await secretsOf(config),
        allowLoopback: env.ENVIRONMENT === "development",
      };
      if (self() !== config || sources.generation(sourceId) !== generation) return true;
      const at = clock.now();
      const sent = await send(envelope, target, { clock, fetch: (...request) => globalThis.fetch(...request) });
      await faultOnceStored("endpoint.after-send", object);
      note(sourceId, envelope, { ...sent, at, generation });
      // An event that has others of the same place behind it is not the last of its place.
      const last = envelope.events.at(-1);
      const next = told.events[told.events.findIndex(({ id }) => id === last?.id) + 1];
      if (sent.isDelivered && last) {
        sources.come(sourceId, next?.seq === last.seq ? last.seq - 1 : last.seq, generation);
        storeSoon();
        continue;
      }
      const { failures, since } = sources.failed(sourceId, clock.now());
      const again = retryAt(failures, since, clock.now());
      if (again === undefined && self()?.version === config.version) giveUp(config, sent.error ?? "");
      // Newer events wait for the next try too. An endpoint that was changed during its last try gets one more try.
      else jobs.set({ kind, key: sourceId, dueAt: again ?? clock.now() });
      store();
      return false;
    }
    if (sources.generation(sourceId) === generation) sources.come(sourceId, told.cursor, generation);
    return true;
  };

  jobs.handle(kind, {
    atOnce: maxSourcesAtOnce,
    async run({ key: sourceId }) {
      let ahead: { for: EndpointConfig; generation: number; after: number; told: ReturnType<typeof read> } | undefined;
      const readAt = (config: EndpointConfig, generation: number, after: number): ReturnType<typeof read> => {
        const isRead = ahead?.for === config && ahead.generation === generation && ahead.after === after;
        return isRead && ahead ? ahead.told : read(config, sourceId, after);
      };
      for (;;) {
        const config = self();
        const source = sources.find(sourceId);
        if (!config || config.rests || !source || source.cursor >= source.head) break;
        const generation = sources.generation(sourceId);
        const told = await readAt(config, generation, source.cursor);
        ahead = undefined;
        if (!told) sources.drop(sourceId);
        else {
          if (told.cursor < source.head) {
            ahead = { for: config, generation, after: told.cursor, told: read(config, sourceId, told.cursor) };
            // Where these do not go out, nobody asks for the next ones.
            ahead.told.catch(() => undefined);
          }
          if (!(await sendAll(config, sourceId, told, generation))) return undefined;
        }
      }
      if (self()) store();
      return undefined;
    },
  });

  return {
    store,
    /** What a source has to tell goes out, unless it waits for its next try. */
    begin(sourceId: string): void {
      const source = sources.find(sourceId);
      if (source && source.failures === 0 && !self()?.rests) jobs.set({ kind, key: sourceId });
    },
  };
};
