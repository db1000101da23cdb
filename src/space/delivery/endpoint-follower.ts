import type { ActorNamespace } from "../../env/env.ts";
import { isMeant, type runEvents } from "../../protocol/endpoint.ts";
import type {
  AskedEvents,
  FollowingEndpoint,
  FollowingEndpoints,
  ToldEvent,
  ToldEvents,
} from "../../protocol/endpoint-rpc.ts";
import type { EndpointRpc } from "../../protocol/rpc.ts";
import { isoTime } from "../../shared/clock.ts";
import { ColloquyError } from "../../shared/errors.ts";
import { withTimeout } from "../../shared/timeouts.ts";
import { deliverTimeoutMs, maxBatchEvents, maxBatchLength, maxToldPages } from "../bounds.ts";
import { heardOf, type Log, type LogRow, messageIn } from "../log/log.ts";
import { isChange } from "../log/row-kinds.ts";
import type { LateRead } from "../schema.ts";
import type { Settings } from "../settings.ts";
import type { Batch, Follower, Place, Subscriber } from "./follower.ts";
import type { Subscribers } from "./subscribers.ts";

/**
 * Endpoints. An endpoint is told that there is something, and asks for it when it sends (`toldTo`): so it keeps no words.
 *
 * Invariants
 * 1. Of what is said in a confidential space only an endpoint is told that names the space (C19).
 * 2. It hears of every edit and deletion, whatever events it names: what it keeps of its server's answers goes then.
 */
type EndpointBatch = Batch & { changed: boolean };

/** The ends of runs that a read mark tells, of earlier ones too that ended late. */
const runsIn = ({ type, frame, read }: LogRow): LateRead["run"][] => {
  if (type !== "member.read" && type !== "member.left") return [];
  const { runId: id, outcome, reason, reads } = JSON.parse(frame);
  // Who leaves is told with the last mark, as one of the late ones: its own row told it.
  const isOld = (each: LateRead): boolean => type === "member.left" && each.seq === read?.seq && each.at === read.at;
  const late = (read?.late ?? []).flatMap((each) => (isOld(each) ? [] : each.run));
  // A mark that is told again was told by its own row.
  const isNew = id !== undefined && outcome !== undefined && !read?.again;
  return isNew ? [...late, { id, outcome, reason, reads }] : late;
};

const eventOf = ({ outcome }: LateRead["run"]): (typeof runEvents)[number] =>
  outcome === "failed" ? "run.failed" : "run.completed";

const names = ({ endpoint }: Subscriber, event: string): boolean => isMeant(endpoint?.types ?? [], event);

/** Whether the endpoint is told of this event. Pure. */
export const isTold = (subscriber: Subscriber, row: LogRow, openUpTo: number): boolean => {
  if (row.seq > openUpTo && !subscriber.endpoint?.isNamed) return false;
  return names(subscriber, row.type) || runsIn(row).some((run) => names(subscriber, eventOf(run)));
};

/** What an endpoint tells of a row: ids are the same whenever it is told, the words are those of now. Pure. */
export const eventsOf = (subscriber: Subscriber, spaceId: string, row: LogRow, openUpTo: number): ToldEvent[] => {
  if (!isTold(subscriber, row, openUpTo)) return [];
  const { seq, type, read } = row;
  const { type: _, ...frame } = JSON.parse(row.frame);
  // A named endpoint hears all. Another one is told no text that was written since the space is confidential.
  const upTo = subscriber.endpoint?.isNamed ? Number.POSITIVE_INFINITY : openUpTo;
  // Parsed where its words may have to go: that takes as long as all the rest.
  const isNewer = frame.message && (row.changedSeq ?? 0) > upTo;
  const message = isNewer ? heardOf(messageIn(row), row.changedSeq, upTo) : frame.message;
  const data = { spaceId, ...frame, ...(message && { message }) };
  const at = message?.createdAt ?? (read ? isoTime(read.at) : undefined);
  const own = {
    id: `${spaceId}_${seq}`,
    seq,
    type,
    timestamp: isChange(row) ? undefined : at,
    data: JSON.stringify(data),
    // What began in a confidential space is named nowhere else.
    ...(seq <= openUpTo && message && row.routing && { root: row.routing.root }),
  };
  const runs = runsIn(row).map(({ id: runId, outcome, reason, reads }): ToldEvent => {
    const event = eventOf({ id: runId, outcome });
    const ended = { spaceId, runId, entityId: row.entityId, outcome, reason, reads };
    return { id: `${runId}_${spaceId}`, seq, type: event, timestamp: at, data: JSON.stringify(ended) };
  });
  return [...runs, own].filter((event) => names(subscriber, event.type));
};

type Around = {
  endpoints: ActorNamespace<Pick<EndpointRpc, "deliver">>;
  settings: Settings;
  subscribers: Subscribers;
  log: Log;
  /** Somebody has begun to follow from a place of before. In its transaction. */
  begun(): void;
  transaction<T>(work: () => T): T;
};

export const createEndpointFollower = ({ endpoints, settings, subscribers, log, begun, transaction }: Around) => {
  /** The newest list that was heard. */
  let version = 0;
  /** The place in the log after which it is confidential. */
  const openUpTo = (): number => settings.find()?.confidentialFrom ?? Number.POSITIVE_INFINITY;

  const concerns = (subscriber: Subscriber, row: LogRow): boolean =>
    isChange(row) || isTold(subscriber, row, openUpTo());

  const follower: Follower<EndpointBatch> = {
    concerns,
    isOnlyHeard: () => true,
    endFor: (_, head) => head,
    batch(place: Place, rows): EndpointBatch {
      const told = rows.filter((row) => concerns(place, row));
      const said = told.find(({ type }) => type === "space.message");
      const end = {
        cursor: rows.at(-1)?.seq ?? place.cursor,
        inside: true,
        left: false,
        isPaced: true,
        pending: told.length > 0,
      };
      return { ...end, changed: told.some(isChange), ...(said && { saidAt: messageIn(said).createdAt }) };
    },
    waitsItsTurn: () => false,

    async send({ id }, { batch, after, deleted: over }) {
      const row = settings.find();
      if (!row) throw new Error("delivery: the space has no settings");
      const { cursor, changed } = batch;
      const news = { workspaceId: row.workspaceId, sourceId: row.id, after, cursor, changed, over };
      const told = await withTimeout(deliverTimeoutMs, endpoints.getByName(id).deliver(news));
      if (told.ok) return told.value.cursor;
      // One that is gone need not be told of the end.
      if (over && told.problem.code === "not_found") return cursor;
      throw new ColloquyError(told.problem.code, told.problem.detail);
    },

    isOver: () => false,
    ended: () => undefined,
  };

  return {
    follower,

    /** These follow the space, and no others. New ones are told from the log's beginning, or of what comes. */
    follow(following: FollowingEndpoints, isFromFirst: boolean): void {
      if (following.version < version) return;
      version = following.version;
      const wanted = new Map(following.endpoints.map((each) => [each.id, each]));
      const known = subscribers.endpoints();
      const isSame = ({ id, endpoint }: { id: string; endpoint: Omit<FollowingEndpoint, "id"> | null }): boolean => {
        const { types, isNamed } = wanted.get(id) ?? {};
        return endpoint?.isNamed === isNamed && endpoint?.types.join() === types?.join();
      };
      if (known.length === wanted.size && known.every(isSame)) return;
      transaction(() => {
        for (const { id } of known) if (!wanted.has(id)) subscribers.remove(id);
        for (const { id, ...endpoint } of wanted.values()) {
          if (subscribers.find(id)) subscribers.setEndpoint(id, endpoint);
          const from = { cursor: isFromFirst ? 0 : log.head().seq, inside: true };
          subscribers.insert({ id, kind: "endpoint", endpoint, ...from });
        }
        if (isFromFirst) begun();
      });
    },

    /** The next events after a place that the endpoint is told of, as they are now. There may be none up to where it came. */
    toldTo({ endpointId, after, types }: AskedEvents): ToldEvents {
      const row = settings.find();
      const subscriber = subscribers.find(endpointId);
      if (!row || subscriber?.kind !== "endpoint" || !subscriber.endpoint) {
        throw new ColloquyError("not_found", "This endpoint does not follow the space");
      }
      const asking = { ...subscriber, endpoint: { ...subscriber.endpoint, types } };
      const told: ToldEvents = { events: [], cursor: after };
      let length = 0;
      for (let page = 0; page < maxToldPages; page += 1) {
        const rows = log.after(told.cursor, maxBatchEvents);
        for (const each of rows) {
          const events = eventsOf(asking, row.id, each, openUpTo());
          told.events.push(...events);
          told.cursor = each.seq;
          length += events.reduce((sum, { data }) => sum + data.length, 0);
          if (told.events.length >= maxBatchEvents || length > maxBatchLength) return told;
        }
        if (rows.length < maxBatchEvents || told.events.length > 0) break;
      }
      return told;
    },
  };
};
