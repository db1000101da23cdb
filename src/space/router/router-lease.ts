import type { Env } from "../../env/env.ts";
import type { TokensAsked } from "../../protocol/limits.ts";
import type { Clock } from "../../shared/clock.ts";
import { ColloquyError, isLacking, type Outcome, unwrap } from "../../shared/errors.ts";
import { withTimeout } from "../../shared/timeouts.ts";
import { routerLeaseAgainMs, routerLeaseWaitMs } from "../bounds.ts";
import type { Settings } from "../settings.ts";
import { dayOf, type RouterLedger } from "./router-ledger.ts";

type Around = { env: Pick<Env, "WORKSPACE">; clock: Clock; settings: Settings; ledger: RouterLedger };

/**
 * L10: the router's tokens are leased from its workspace's day, as agents' are.
 *
 * Invariants
 * 1. A call is reserved in the ledger only once so much is leased. Questions are asked one by one, and each says what
 *    the ledger has. If a crash came between lease and reservation, the next question gives the lease back.
 * 2. A lease is of what the call needs and no more: nothing waits to be given back.
 */
export const createRouterLease = ({ env, clock, settings, ledger }: Around) => {
  let [seq, freeUntil] = [0, Number.NEGATIVE_INFINITY];
  let asking: Promise<unknown> = Promise.resolve();

  const ask = async (tokens: number): Promise<void> => {
    const { id: agentId, workspaceId } = settings.find() ?? {};
    if (agentId === undefined || workspaceId === undefined || freeUntil > clock.now()) return;
    const now = clock.now();
    const booked = ledger.spent(now);
    // The clock numbers them, so that a question of before a crash is older.
    seq = Math.max(seq + 1, now);
    const question: TokensAsked = { agentId, day: dayOf(now), seq, held: booked, booked, need: booked + tokens };
    const asked = env.WORKSPACE.getByName(workspaceId).leaseOfDay({ ...question, exact: true });
    const answer = await withTimeout(routerLeaseWaitMs, asked).catch((error: unknown): Outcome<null> => {
      // A workspace of the last release has no such limit.
      if (isLacking(error)) return { ok: true, value: null };
      throw error;
    });
    if (!answer.ok && answer.problem.code === "not_found") return;
    const lease = unwrap(answer);
    if (lease === null || lease.isFree) freeUntil = clock.now() + routerLeaseAgainMs;
    else if (lease.leased === null) {
      ({ seq } = lease);
      throw new ColloquyError("unavailable", "The question for the workspace's tokens was overtaken");
    } else if (lease.is === "booked") {
      throw new ColloquyError("unavailable", "Others have leased what is left of the workspace's tokens of today");
    } else if (lease.is === "spent") {
      throw new ColloquyError(
        "budget_exhausted",
        "The workspace's tokens of today are spent (maxTokensPerDay, set by the operator); the day ends at 00:00 UTC",
      );
    }
  };

  /** Leases what a call may cost, and then reserves it at once. */
  return <T>(tokens: number, reserve: () => T): Promise<T> => {
    const leased = asking.then(() => ask(tokens)).then(reserve);
    asking = leased.catch(() => undefined);
    return leased;
  };
};
