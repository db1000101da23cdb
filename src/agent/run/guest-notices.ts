import { withTimeout } from "../../shared/timeouts.ts";
import { endWaitMs, maxBatchEvents } from "../bounds.ts";
import { homeOf } from "../inbox/batch.ts";
import { Channel } from "./channel.ts";
import type { RunServices } from "./run-services.ts";

/**
 * Tells spaces that no program of a guest is there, and how many of their events wait for one. They show it as they show
 * who tries again later; it is memory there, and here.
 */
export const createGuestNotices = (services: RunServices, background: (work: Promise<unknown>) => void) => {
  /** How many events each space was told of. Undefined: it is not known what was told before the object slept. */
  let told: Map<string, number> | undefined;

  const waiting = (): Map<string, number> => {
    const rows = services.inbox.page(0, maxBatchEvents, "pending").filter(({ wakes }) => wakes);
    const homes = rows.flatMap(({ data }) => homeOf(data) ?? []).filter((id) => services.spaces.isMember(id));
    return new Map([...Map.groupBy(homes, (id) => id)].map(([id, events]) => [id, events.length]));
  };

  const tellOne = (spaceId: string, events: number): Promise<unknown> => {
    const { id: agentId, workspaceId, compartmentId } = services.identity.get();
    const runId = services.ids.deriveOwned("run", services.identity.mindId(), "away");
    const open = { workspaceId, agentId, mindId: compartmentId ?? undefined, runId };
    const channel = new Channel(services.env.SPACE.getByName(spaceId), open);
    channel.send({ type: "active" });
    return withTimeout(2 * endWaitMs, channel.end(events > 0 ? "guest_away" : undefined, endWaitMs, events));
  };

  return {
    /** What waits now may have been told before the object slept. */
    look(): void {
      told ??= new Map([...waiting().keys()].map((id) => [id, Number.NaN]));
    },

    /** The loop rests, `isAway` without a claim. Spaces are told once no program was there for a while; answers when that is due. */
    atRest(isAway: boolean): number | undefined {
      const goneAt = services.guests.goneAt();
      const isLate = goneAt <= services.clock.now();
      this.tell(isAway && isLate);
      return isAway && !isLate && services.inbox.nextWaking() ? goneAt : undefined;
    },

    /** `isAway`: no program is there. Else who was told so is told that one is. */
    tell(isAway: boolean): void {
      this.look();
      const now = isAway ? waiting() : new Map<string, number>();
      for (const spaceId of new Set([...(told?.keys() ?? []), ...now.keys()])) {
        const events = now.get(spaceId) ?? 0;
        if (told?.get(spaceId) === events) continue;
        if (events === 0) told?.delete(spaceId);
        else told?.set(spaceId, events);
        background(tellOne(spaceId, events).catch(() => undefined));
      }
    },
  };
};
