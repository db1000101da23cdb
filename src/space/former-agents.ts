import type { Env } from "../env/env.ts";
import type { MessageChange } from "../protocol/message-change.ts";
import { unwrap } from "../shared/errors.ts";
import { compartmentId, type Ids } from "../shared/ids.ts";
import { jsonArrays } from "../shared/json-arrays.ts";
import { withTimeout } from "../shared/timeouts.ts";
import type { Jobs } from "../timers/jobs.ts";
import { deliverTimeoutMs } from "./bounds.ts";
import type { Log } from "./log/log.ts";
import type { Members } from "./members.ts";
import type { Settings } from "./settings.ts";

/**
 * Agents that left the space and may have a message that is edited or deleted. A job tells each, until it has heard.
 * Members hear by their deliveries; one that is an object of the last release does not (L14), and is told by a job too. So is
 * the compartment whose words were let out into this space from another.
 */
const kind = "forget";
const atOnce = 10;

type Around = { env: Env; ids: Ids; jobs: Jobs; log: Log; members: Members; settings: Settings };

/**
 * A change that they are told of. `wasAt`: the place where its `was` was told; `by`: the agent's open mind, or compartment of
 * another space, that said the message and has it where it hears nothing (C17).
 */
export type Left = { change: MessageChange; from: { wasAt: number; by: string | null } };

export const createFormerAgents = ({ env, ids, jobs, log, members, settings }: Around) => {
  jobs.handle(kind, {
    atOnce,
    async run({ payload }) {
      // A job that an older version set holds one change.
      const given = payload as { mindId: string; change?: MessageChange; changes?: MessageChange[] };
      const { mindId, change, changes = change ? [change] : [] } = given;
      const workspaceId = settings.find()?.workspaceId ?? "";
      const told = await withTimeout(
        deliverTimeoutMs,
        env.AGENT.getByName(mindId).forgetMessages(workspaceId, changes),
      );
      // One that is no more has forgotten it.
      if (told.ok || told.problem.code !== "not_found") unwrap(told);
      return undefined;
    },
  });

  /** The same changes to the same mind again change nothing. A job's row holds some of them. */
  const tellMind = (mindId: string, all: MessageChange[]): void => {
    for (const part of jsonArrays(all)) {
      const changes: MessageChange[] = JSON.parse(part);
      const [change] = changes;
      const payload = changes.length === 1 ? { mindId, change } : { mindId, changes };
      jobs.set({ kind, key: `${change?.seq} ${mindId}`, payload });
    }
  };

  /** Has each told of what it may have. In the transaction of the changes. */
  const tell = (left: Left[]): void => {
    const space = settings.find();
    const told = new Map<string, MessageChange[]>();
    for (const { change, from } of left) {
      const add = (mindId: string): unknown => told.set(mindId, [...(told.get(mindId) ?? []), change]);
      if (from.by !== null && ids.isCompartment(from.by)) add(from.by);
      for (const agentId of log.agents(from.wasAt)) {
        if (members.find(agentId)) continue;
        const heard = from.wasAt <= (space?.confidentialFrom ?? from.wasAt) || from.by === agentId;
        const minds = heard ? [agentId] : [];
        if (space && space.confidentialFrom !== null) minds.push(compartmentId(ids, agentId, space.id));
        for (const mindId of minds) add(mindId);
      }
    }
    for (const [mindId, changes] of told) tellMind(mindId, changes);
  };

  /** `left`: how many have not heard. */
  return { tell, tellMind, left: (): number => jobs.keys(kind).length };
};
