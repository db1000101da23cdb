import type { Heartbeat } from "../../protocol/agent.ts";
import type { Timers } from "../../timers/timers.ts";
import { nextHeartbeat } from "./heartbeat.ts";

/** The timer whose due time is the agent's next heartbeat: nothing else of it is stored. */
export const heartbeatTimer = "heartbeat";

/** From now on beats come as `heartbeat` says, or none if it is left out. */
export const startHeartbeat = (timers: Timers, heartbeat: Heartbeat | undefined, now: number): void => {
  if (heartbeat) timers.set(heartbeatTimer, nextHeartbeat(heartbeat, now, now));
  else if (timers.dueAt(heartbeatTimer) !== undefined) timers.clear(heartbeatTimer);
};

/** The timer fired: hands the beat that is due to `enter`, then sets the timer for the next. In a transaction. */
export const beat = (
  timers: Timers,
  heartbeat: Heartbeat | undefined,
  now: number,
  enter: (dueAt: number) => void,
): void => {
  const dueAt = timers.dueAt(heartbeatTimer);
  if (!heartbeat || dueAt === undefined) return;
  enter(dueAt);
  timers.set(heartbeatTimer, nextHeartbeat(heartbeat, dueAt, now));
};
