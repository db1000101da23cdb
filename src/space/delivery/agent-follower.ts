import type { ActorNamespace } from "../../env/env.ts";
import type { AgentRpc } from "../../protocol/agent-rpc.ts";
import type { MessageChange } from "../../protocol/message-change.ts";
import type { Delivery as AgentDelivery } from "../../protocol/rpc.ts";
import { ColloquyError } from "../../shared/errors.ts";
import { withTimeout } from "../../shared/timeouts.ts";
import { deliverTimeoutMs } from "../bounds.ts";
import type { Members } from "../members.ts";
import type { Decisions } from "../router/decisions.ts";
import type { Settings } from "../settings.ts";
import { type AgentBatch, batchFor, concerns, hears, isOnlyHeard, waitsItsTurn } from "./agent-batch.ts";
import { type Follower, spaceIn } from "./follower.ts";
import { memberOf } from "./subscribers.ts";

type Around = {
  agents: ActorNamespace<Pick<AgentRpc, "deliver">>;
  members: Members;
  settings: Settings;
  decisions: Decisions;
  /** The space was deleted: an agent that has heard of it has words to forget. */
  forgetting: { begin(agentId: string): void };
  /** Has a job tell a mind of a change. */
  tellMind(mindId: string, changes: MessageChange[]): void;
};

/**
 * The minds of agents.
 *
 * Invariants
 * 1. They get nothing from the first message on that the space's router has not decided about: so the order holds.
 * 2. What is said in a confidential space gives an agent's open mind no delivery, and delays, wakes and joins none (C17).
 */
export const createAgentFollower = (around: Around): Follower<AgentBatch> => {
  const { agents, members, settings, decisions, forgetting, tellMind } = around;
  /** The place in the log after which it is confidential. */
  const openUpTo = (): number => settings.find()?.confidentialFrom ?? Number.POSITIVE_INFINITY;

  return {
    concerns: (subscriber, row) => concerns(subscriber, row, openUpTo()),
    isOnlyHeard: (subscriber, row) => isOnlyHeard(subscriber, row, openUpTo()),

    endFor(subscriber, head) {
      const undecided = decisions.pending().find((seq) => hears(subscriber, seq, openUpTo()));
      return Math.min(head, (undecided ?? head + 1) - 1);
    },

    batch: (place, rows) => batchFor(place, rows, decisions.chosen(rows), openUpTo()),
    waitsItsTurn,

    async send(subscriber, pending) {
      const row = settings.find();
      if (!row) throw new Error("delivery: the space has no settings");
      const { batch, after, deleted } = pending;
      const { cursor, messages, left } = batch;
      const answers = batch.answers.length > 0 ? { answers: batch.answers } : {};
      const changes = batch.changes.length > 0 ? { changes: batch.changes } : {};
      const member = memberOf(subscriber);
      // One that was outside keeps what it knew of the space.
      const outside = deleted && !members.find(member);
      const space = outside ? spaceIn(pending, { ...row, name: "" }, []) : spaceIn(pending, row, members.all());
      const mind =
        subscriber.compartmentOf === null
          ? { openUpTo: row.confidentialFrom ?? undefined }
          : { compartment: { mindId: subscriber.id, agentId: member } };
      const told: AgentDelivery = { space, messages, ...answers, ...changes, after, cursor, left, ...mind };
      const deliver = agents.getByName(subscriber.id).deliver(JSON.stringify(told));
      const delivered = await withTimeout(deliverTimeoutMs, deliver);
      if (delivered.ok) {
        // One of the last release takes none, and its cursor passes them.
        if (!delivered.value.changes) tellMind(subscriber.id, batch.changes);
        return delivered.value.cursor;
      }
      // An agent that is gone for good need not be told that it left.
      const over = left || row.deletedSeq !== null || !members.find(member);
      if (over && delivered.problem.code === "not_found") return cursor;
      throw new ColloquyError(delivered.problem.code, delivered.problem.detail);
    },

    isOver: (place) => !place.inside && !members.find(memberOf(place)),

    ended(subscriber) {
      // A compartment of the space ends as it hears of it.
      if (subscriber.compartmentOf === null) forgetting.begin(subscriber.id);
    },
  };
};
