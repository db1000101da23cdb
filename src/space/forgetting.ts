import * as z from "zod";
import type { Env } from "../env/env.ts";
import { DurableEvent } from "../protocol/events.ts";
import type { Redaction } from "../protocol/message-change.ts";
import type { Clock } from "../shared/clock.ts";
import { unwrap } from "../shared/errors.ts";
import { type Crashable, faultOnceStored } from "../shared/fault.ts";
import { withTimeout } from "../shared/timeouts.ts";
import type { Jobs } from "../timers/jobs.ts";
import { deliverTimeoutMs, forgetAgainMs, maxForgottenCharacters, maxForgottenEvents } from "./bounds.ts";
import type { Subscribers } from "./delivery/subscribers.ts";
import type { Log } from "./log/log.ts";
import { fromOf, wasOf } from "./message-words.ts";
import type { Settings } from "./settings.ts";

/**
 * The end of a deleted space: each agent that ever was in it is told, part by part, which words to forget. Then the
 * space keeps its tombstone alone.
 *
 * Invariants
 * 1. An agent has a job from the delivery of the deletion on, until it has forgotten all. A part that it forgot is told again
 *    after a crash, which changes nothing.
 * 2. The log is kept until the last agent has forgotten. A compartment of the space is ended as a whole, and has no job.
 * 3. An agent's open mind is told no words of a confidential space that it did not hear or say.
 */
const kind = "forget-space";
const atOnce = 10;
/** Clocks of objects differ by less. */
const clockSlackMs = 10 * 60_000;

const Payload = z.object({ after: z.number() });

type Around = {
  env: Pick<Env, "AGENT">;
  clock: Clock;
  jobs: Jobs;
  log: Log;
  settings: Settings;
  subscribers: Subscribers;
  /** Deletes all but the tombstone. */
  forgetAll: () => void;
  object: Crashable;
};

export const createForgetting = ({ env, clock, jobs, log, settings, subscribers, forgetAll, object }: Around) => {
  /** Agents that have forgotten all, whose jobs end. */
  const finished = new Set<string>();

  const endWhereOver = (): void => {
    if (forgetting.isOver()) forgetAll();
  };

  /** The next words that an agent is to forget, and where they end in the log; undefined where there are none. */
  const partAfter = (after: number, agentId: string): { upTo: number; redaction: Redaction } | undefined => {
    const space = settings.find();
    if (!space) return undefined;
    /** Each with when it was first said; of names of the space it is not known. */
    const words = new Map<string, number>();
    const names = new Set([space.name]);
    const rows = log.after(after, maxForgottenEvents);
    let [upTo, length] = [after, 0];
    // Agents keep what they had before the space said it: nobody removes it by saying it and deleting the space.
    let since = after === 0 ? space.createdAt : clock.now();
    for (const row of rows) {
      if (length > maxForgottenCharacters) break;
      upTo = row.seq;
      const event = DurableEvent.parse(JSON.parse(row.frame));
      // The row of an edit or a deletion tells the words that it took away, as of the place where they were said.
      const { wasAt, by } =
        "message" in event && row.was === null
          ? fromOf(row, event.message)
          : { wasAt: row.changedSeq ?? row.seq, by: row.entityId };
      // Its name is told outside too. It is not known since when.
      if (event.type === "space.updated" && !names.has(event.space.name)) {
        names.add(event.space.name);
        since = space.createdAt;
      }
      if (wasAt > (space.confidentialFrom ?? wasAt) && by !== agentId) continue;
      if (!("message" in event)) continue;
      const createdAt = Date.parse(event.message.createdAt);
      // The row of an edited message has its new text, and when each part of it was said.
      const said = row.type === "message.updated" ? [] : wasOf(event.message, row);
      for (const each of [...said, ...(row.was ?? [])]) {
        const [word, at] = typeof each === "string" ? [each, createdAt] : each;
        words.set(word, Math.min(words.get(word) ?? at, at));
        since = Math.min(since, createdAt, at);
        length += word.length;
      }
    }
    if (upTo === after) return undefined;
    for (const name of names) words.set(name, since);
    const redaction = {
      id: `${space.id} ${upTo}`,
      words: [...words.keys()],
      since: since - clockSlackMs,
      saidAt: [...words.values()].map((at) => at - clockSlackMs),
      senderName: space.name,
      spaceId: space.id,
    };
    return { upTo, redaction };
  };

  jobs.handle(kind, {
    atOnce,
    async run({ key: agentId, payload }) {
      const space = settings.find();
      if (!space) return undefined;
      const { after } = Payload.parse(payload);
      const part = partAfter(after, agentId);
      const asked = env.AGENT.getByName(agentId).forgetSpace(space.workspaceId, space.id, part?.redaction ?? null);
      const told = await withTimeout(deliverTimeoutMs, asked);
      await faultOnceStored("space.after-deliver", object);
      const isGone = !told.ok && told.problem.code === "not_found";
      if (!isGone && !unwrap(told).isDone) return clock.now() + forgetAgainMs;
      if (part && !isGone) {
        jobs.set({ kind, key: agentId, payload: { after: part.upTo } });
        return undefined;
      }
      finished.add(agentId);
      endWhereOver();
      return undefined;
    },
  });

  const forgetting = {
    /** An agent knows of the deletion. In the transaction that notes it. */
    begin: (agentId: string): void => jobs.set({ kind, key: agentId, payload: { after: 0 } }),
    /** How many agents have not forgotten all. */
    left: (): number => jobs.keys(kind).filter((key) => !finished.has(key)).length,
    /** Whether all know of the end, and have forgotten. */
    isOver(): boolean {
      return !subscribers.any() && this.left() === 0;
    },
    endWhereOver,
  };
  return forgetting;
};
