import type { ActorNamespace } from "../../env/env.ts";
import type { Notice } from "../../protocol/line.ts";
import type { PersonDelivery, PersonRpc } from "../../protocol/person-rpc.ts";
import { unwrap } from "../../shared/errors.ts";
import { withTimeout } from "../../shared/timeouts.ts";
import { deliverTimeoutMs } from "../bounds.ts";
import { type LogRow, messageIn } from "../log/log.ts";
import { isChange } from "../log/row-kinds.ts";
import type { Members } from "../members.ts";
import { concernedBy, noticesOf } from "../people/notices.ts";
import { type Around as OfStanding, standingFor } from "../people/standing.ts";
import type { Batch, Follower, Place } from "./follower.ts";

type PersonBatch = Batch & { notices: Notice[]; changed: string[]; gone: string[] };

type Around = OfStanding & { people: ActorNamespace<Pick<PersonRpc, "hear">>; members: Members };

/**
 * People, while they look or can be reached. They are told how the space stands now, and one by one what concerns them.
 *
 * Invariants
 * 1. A person is told at most once in `listenIntervalMs`.
 * 2. What they answer says how much they are told from then on, unless they have asked for more meanwhile.
 */
export const createPersonFollower = (around: Around): Follower<PersonBatch> & { asked(personId: string): void } => {
  const { people, members, settings, log } = around;
  /** How often each has asked to be told. */
  const asked = new Map<string, number>();
  const known = { log, nameOf: (id: string) => members.find(id)?.name };

  /** All but what the router decided, and how far others have read, unless a run failed at what this person said. */
  const concerns = (id: string, row: LogRow): boolean =>
    row.type === "member.read"
      ? row.entityId === id || noticesOf(row, id, known).length > 0
      : row.type !== "message.routed";

  return {
    concerns: ({ id }, row) => concerns(id, row),
    isOnlyHeard: () => true,
    endFor: (_, head) => head,

    batch({ id, cursor }: Place, rows) {
      const pending = rows.some((row) => concerns(id, row));
      return {
        ...{ cursor: rows.at(-1)?.seq ?? cursor, inside: true, left: false, pending, isPaced: true },
        notices: rows.flatMap((row) => noticesOf(row, id, known)),
        changed: rows.filter(isChange).map((row) => messageIn(row).id),
        gone: rows.flatMap(({ type, entityId }) => (type === "member.left" && entityId ? [entityId] : [])),
      };
    },

    waitsItsTurn: () => false,

    async send({ id }, { batch, deleted }) {
      const space = settings.find();
      if (!space) throw new Error("delivery: the space has no settings");
      const member = deleted ? undefined : members.find(id);
      const { cursor, notices, changed, gone: left } = batch;
      const delivery: PersonDelivery = {
        ...{ workspaceId: space.workspaceId, spaceId: space.id, changed, left },
        ...(space.confidentialFrom !== null && { confidential: true as const }),
        ...(member && { standing: standingFor(around, member), readSeq: member.readSeq, notices }),
      };
      const before = asked.get(id);
      const heard = unwrap(await withTimeout(deliverTimeoutMs, people.getByName(id).hear(delivery)));
      if (heard.follows !== "all") around.addressed.forget(id);
      const now = members.find(id);
      if (now && asked.get(id) === before && now.follows !== heard.follows)
        members.change(now, { follows: heard.follows });
      return cursor;
    },

    concerned: (rows) => {
      const reachable = members.all().filter(({ follows }) => follows === "mine");
      return reachable.length === 0 ? [] : rows.flatMap((row) => concernedBy(row, reachable, known));
    },

    isOver: ({ id }) => members.find(id)?.follows !== "all",
    ended: () => undefined,

    asked: (personId) => void asked.set(personId, (asked.get(personId) ?? 0) + 1),
  };
};
