import { systemClock } from "../shared/clock.ts";
import { openDatabase } from "../shared/database.ts";
import type { Env } from "../shared/env.ts";
import { faultOnceStored } from "../shared/fault.ts";
import { Timers } from "../timers/timers.ts";
import { CallWork } from "./calls/call-work.ts";
import { callsTimer } from "./calls/calls.ts";
import { acceptHeartbeat, acceptPlan } from "./inbox/deliver.ts";
import { watchersTimer } from "./memory/blocks/watchers.ts";
import { searchTimer } from "./memory/search/search.ts";
import { beat, heartbeatTimer } from "./plans/beats.ts";
import { plansTimer } from "./plans/plans.ts";
import { Loop, loopTimer } from "./run/loop.ts";
import type { Parts } from "./run/parts.ts";
import { assemble } from "./services.ts";
import { SummaryWork, summariesTimer } from "./summaries/summary-work.ts";
import { mcpTimer } from "./tools/mcp/mcp.ts";

/** An agent that was created, awake: its parts, and what works on them. */
export type Mind = {
  parts: Parts;
  timers: Timers;
  loop: Loop;
  callWork: CallWork;
  summaryWork: SummaryWork;
  /** The timer `name` is due. */
  due(name: string): Promise<void>;
};

export const openMind = (ctx: DurableObjectState, env: Env): Mind => {
  const db = openDatabase(ctx.storage);
  const timers = new Timers(db, ctx.storage, systemClock, () => ({ agentId: parts.identity.find()?.id }));
  const background = (work: Promise<unknown>): void => ctx.waitUntil(work);
  const arm = (): void => loop.arm();
  const parts = assemble(db, ctx, env, systemClock, timers, {
    stopThink: (runId, why) => loop.abort(runId, why),
    tellCall: (callId) => callWork.tell(callId),
    wakeCalls: () => callWork.wake(),
    wantSummary: (subject, messages) => summaryWork.want(subject, messages),
    background,
  });
  const loop: Loop = new Loop(parts, timers, background);
  const callWork: CallWork = new CallWork(parts, { background, wakeLoop: () => loop.wake(), armLoop: arm });
  const summaryWork: SummaryWork = new SummaryWork(parts, timers, background);
  const due = async (name: string): Promise<void> => {
    if (name === loopTimer) return loop.fired();
    if (name === callsTimer) return callWork.fired();
    if (name === summariesTimer) return summaryWork.fired();
    // A server may take its time, and other timers do not wait for it.
    if (name === mcpTimer) return ctx.waitUntil(parts.mcp.fetchDue());
    if (name === watchersTimer) return ctx.waitUntil(parts.watchers.prove());
    if (name === searchTimer) return ctx.waitUntil(parts.search.work());
    if (name === plansTimer) parts.plans.fire((plan, dueAt) => acceptPlan(parts, plan, dueAt, arm));
    if (name === heartbeatTimer) {
      const { heartbeat } = parts.identity.get().config;
      const now = parts.clock.now();
      parts.transaction(() => beat(timers, heartbeat, now, (dueAt) => acceptHeartbeat(parts, dueAt, arm)));
    }
    await faultOnceStored("plan.after-fire", ctx);
    loop.wake();
  };
  return { parts, timers, loop, callWork, summaryWork, due };
};

/** Its config or a secret changed: what failed or waits may go on now. */
export const reconsider = ({ loop, summaryWork }: Mind): void => {
  loop.reconsider();
  summaryWork.reconsider();
};

/** It is being deleted: ends what it does; resolves when nothing more of it can appear. */
export const stopMind = async ({ parts, loop, callWork, summaryWork }: Mind): Promise<void> => {
  summaryWork.stop();
  await Promise.all([loop.stop(), callWork.stop()]);
  parts.mcp.stop();
  parts.watchers.closeAll();
  parts.search.stop();
};
