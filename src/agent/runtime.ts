import type { Env } from "../env/env.ts";
import { systemClock } from "../shared/clock.ts";
import { openDatabase } from "../shared/database.ts";
import { faultOnceStored } from "../shared/fault.ts";
import { createTimers } from "../timers/timers.ts";
import type { AgentRuntime } from "./api/agent-runtime.ts";
import { type CallWork, createCallWork } from "./calls/call-work.ts";
import { callsTimer } from "./calls/calls.ts";
import { acceptHeartbeat, acceptPlan, acceptToolResult } from "./inbox/deliver.ts";
import { subscriptionsTimer } from "./memory/blocks/block-subscriptions.ts";
import { searchTimer } from "./memory/search/search.ts";
import { beat, heartbeatTimer } from "./plans/beats.ts";
import { plansTimer } from "./plans/plans.ts";
import { Loop, loopTimer } from "./run/loop.ts";
import { createServices } from "./services.ts";
import { SummaryWork, summariesTimer } from "./summaries/summary-work.ts";
import { mcpTimer } from "./tools/mcp/mcp.ts";

/** The runtime of an agent that was created. */
export const createRuntime = (ctx: DurableObjectState, env: Env): AgentRuntime => {
  const db = openDatabase(ctx.storage);
  const timers = createTimers(db, ctx.storage, systemClock, () => ({ agentId: services.identity.find()?.id }));
  const background = (work: Promise<unknown>): void => ctx.waitUntil(work);
  const services = createServices(db, ctx, env, systemClock, timers, {
    armLoop: () => loop.arm(),
    stopRun: (runId, why) => loop.abort(runId, why),
    tellCall: (callId) => callWork.tell(callId),
    wakeCalls: () => callWork.wake(),
    wantSummary: (subject, messages) => summaryWork.want(subject, messages),
    background,
  });
  const loop: Loop = new Loop(services, timers, background);
  const callWork: CallWork = createCallWork(services, {
    background,
    wakeLoop: () => loop.wake(),
    handOver: (row) => acceptToolResult(services, row),
  });
  const summaryWork: SummaryWork = new SummaryWork(services, timers, background);
  const due = async (name: string): Promise<void> => {
    if (name === loopTimer) return loop.fired();
    if (name === callsTimer) return callWork.fired();
    if (name === summariesTimer) return summaryWork.fired();
    // A server may take its time, and other timers do not wait for it.
    if (name === mcpTimer) return ctx.waitUntil(services.mcp.fetchDue());
    if (name === subscriptionsTimer) return services.subscriptions.onTimer();
    if (name === searchTimer) return ctx.waitUntil(services.search.work());
    if (name === plansTimer) services.plans.fire((plan, dueAt) => acceptPlan(services, plan, dueAt));
    if (name === heartbeatTimer) {
      const { heartbeat } = services.identity.get().config;
      const now = services.clock.now();
      services.transaction(() => beat(timers, heartbeat, now, (dueAt) => acceptHeartbeat(services, dueAt)));
    }
    await faultOnceStored("plan.after-fire", ctx);
    loop.wake();
  };
  return {
    db,
    services,
    timers,
    loop,
    due,
    reconsider: () => {
      loop.reconsider();
      summaryWork.reconsider();
    },
    stop: async () => {
      summaryWork.stop();
      await Promise.all([loop.stop(), callWork.stop()]);
      services.mcp.stop();
      services.subscriptions.closeAll();
      services.search.stop();
    },
  };
};
