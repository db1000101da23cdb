import type { Clock } from "./clock.ts";
import { ColloquyError } from "./errors.ts";

/**
 * An agent's word to another actor counts while it waits for the answer, which is `until`, in milliseconds since the
 * epoch: its run may have been canceled since (R5), or have gone on. Throws `unavailable`.
 */
export const requireAwaited = ({ clock }: { clock: Clock }, { until }: { until?: number | undefined }): void => {
  if (until === undefined || until > clock.now()) return;
  throw new ColloquyError("unavailable", "This came when its agent had stopped waiting for it: say it again");
};
