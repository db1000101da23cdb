import type { TriggerAgent } from "../../protocol/agent.ts";
import type { AgentRpc, InboxRequest, Page } from "../../protocol/rpc.ts";
import type { InboxItem } from "../../protocol/run.ts";
import type { Outcome } from "../../shared/errors.ts";
import { acceptTrigger } from "../inbox/deliver.ts";
import { HookedAgent } from "./hooked-agent.ts";
import { cursorOf, page } from "./page.ts";
import { inboxView } from "./views.ts";

type InboxRpc = Pick<AgentRpc, "trigger" | "inbox" | "retryEvent" | "retryDeadEvents" | "discardEvent">;

/** What of an agent answers for its inbox: a service's way into it, what waits there, and what becomes of the dead. */
export abstract class InboxAgent extends HookedAgent implements InboxRpc {
  trigger(workspaceId: string, event: TriggerAgent, idempotencyKey?: string): Promise<Outcome<{ eventId: string }>> {
    return this.inMind(workspaceId, ({ parts, loop }) => {
      const accepted = acceptTrigger(parts, event, idempotencyKey, () => loop.arm());
      loop.wake();
      return accepted;
    });
  }

  inbox(workspaceId: string, { limit, cursor, status }: InboxRequest): Promise<Outcome<Page<InboxItem>>> {
    return this.inMind(workspaceId, ({ parts }) =>
      page(parts.inbox.page(cursorOf(cursor) ?? 0, limit + 1, status), limit, (row) => row.seq, inboxView),
    );
  }

  retryEvent(workspaceId: string, eventId: string): Promise<Outcome<InboxItem>> {
    return this.inMind(workspaceId, ({ parts, loop }) => {
      const row = parts.deadEvents.retry(eventId);
      loop.arm();
      loop.wake();
      return inboxView(row);
    });
  }

  retryDeadEvents(workspaceId: string): Promise<Outcome<{ retried: number }>> {
    return this.inMind(workspaceId, ({ parts, loop }) => {
      const retried = parts.deadEvents.retryAll();
      if (retried > 0) {
        loop.arm();
        loop.wake();
      }
      return { retried };
    });
  }

  discardEvent(workspaceId: string, eventId: string): Promise<Outcome<null>> {
    return this.inMind(workspaceId, ({ parts }) => {
      parts.transaction(() => parts.deadEvents.discard(eventId));
      return null;
    });
  }
}
