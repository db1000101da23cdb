import type { Clock } from "./clock.ts";
import { ColloquyError } from "./errors.ts";

/**
 * Refuses a call whose agent has stopped waiting: its run may be canceled (R5), or have gone on. `until` is in
 * milliseconds since the epoch. Throws `unavailable`.
 */
export const requireAwaited = ({ clock }: { clock: Clock }, { until }: { until?: number | undefined }): void => {
  if (until === undefined || until > clock.now()) return;
  throw new ColloquyError("unavailable", "This came when its agent had stopped waiting for it: say it again");
};
