import type { Env } from "../env/env.ts";
import type { MessageChange } from "../protocol/rpc.ts";
import { unwrap } from "../shared/errors.ts";
import { compartmentId, type Ids } from "../shared/ids.ts";
import { withTimeout } from "../shared/timeouts.ts";
import type { Jobs } from "../timers/jobs.ts";
import { deliverTimeoutMs } from "./bounds.ts";
import type { Log } from "./log/log.ts";
import type { Members } from "./members.ts";
import type { Settings } from "./settings.ts";

/**
 * Agents that left the space and may have a message that is edited or deleted: each is told by a job, until it has heard. Members
 * hear by their deliveries; one that is an object of the last release does not (L14), and is told by a job too.
 */
const kind = "forget";
const atOnce = 10;

type Around = { env: Env; ids: Ids; jobs: Jobs; log: Log; members: Members; settings: Settings };

export const createFormerAgents = ({ env, ids, jobs, log, members, settings }: Around) => {
  jobs.handle(kind, {
    atOnce,
    async run({ payload }) {
      const { mindId, change } = payload as { mindId: string; change: MessageChange };
      const workspaceId = settings.find()?.workspaceId ?? "";
      const told = await withTimeout(
        deliverTimeoutMs,
        env.AGENT.getByName(mindId).forgetMessages(workspaceId, [change]),
      );
      // One that is no more has forgotten it.
      if (told.ok || told.problem.code !== "not_found") unwrap(told);
      return undefined;
    },
  });

  /** The same change to the same mind again changes nothing. */
  const tellMind = (mindId: string, change: MessageChange): void =>
    jobs.set({ kind, key: `${change.seq} ${mindId}`, payload: { mindId, change } });

  /**
   * Has them told. In the transaction of the change. `wasAt`: the place where its `was` was told; `by`: the agent whose open
   * mind said the message, and has it where it hears nothing (C17).
   */
  const tell = (change: MessageChange, { wasAt, by }: { wasAt: number; by: string | null }): void => {
    const space = settings.find();
    for (const agentId of log.agents(wasAt)) {
      if (members.find(agentId)) continue;
      const heard = wasAt <= (space?.confidentialFrom ?? wasAt) || by === agentId;
      const minds = heard ? [agentId] : [];
      if (space && space.confidentialFrom !== null) minds.push(compartmentId(ids, agentId, space.id));
      for (const mindId of minds) tellMind(mindId, change);
    }
  };

  return { tell, tellMind };
};
