import type { AgentToolCall } from "../../protocol/rpc.ts";
import type { AwaitedAnswer } from "../../protocol/tool-call.ts";
import { backoff } from "../../shared/backoff.ts";
import { isoTime } from "../../shared/clock.ts";
import { ColloquyError, type Outcome } from "../../shared/errors.ts";
import { faultOnceStored } from "../../shared/fault.ts";
import { log } from "../../shared/log.ts";
import { callBackoffMs, longestCallBackoffMs, maxErrands, spaceAnswerMs } from "../bounds.ts";
import { callWithRetry } from "../call-with-retry.ts";
import type { CallOutcome } from "../records.ts";
import type { CallRow } from "../schema.ts";
import { mayRepeat } from "../tools/call-mode.ts";
import { interruptedCall, unknownInWords } from "../tools/unknown-outcome.ts";
import { type CallServices, loggedCall } from "./calls.ts";
import { type Errand, errandOf, isSlow, shouldBeListed, statusOf } from "./due.ts";
import { waitingCall } from "./for-servers.ts";
import { failed } from "./outcome.ts";
import { perform } from "./perform.ts";
import { push } from "./push.ts";

/**
 * Does what calls ask for beside their runs: tells spaces, executes what no run waits for, sends to servers, hands
 * results to the inbox.
 *
 * Invariants
 * 1. What is to be done follows from the rows alone; a crash anywhere is followed by the timer `calls` (R1).
 * 2. One errand of a call at a time. One that fails backs off and delays no other's; those that ask servers hold up
 *    none that does not.
 * 3. What was begun and cut is done again only if its tool is idempotent; else its outcome is unknown (R3).
 * 4. What a server is asked for a call whose outcome is known is asked no longer: its run was cut (R5), or the server
 *    has answered without waiting for its turn to.
 */
export class CallWork {
  readonly #services: CallServices;
  readonly #background: (work: Promise<unknown>) => void;
  /** Something came of a call that a run may wait for, or the inbox has got a result. */
  readonly #wakeLoop: () => void;
  /** Puts a call's result into the inbox, within a transaction. Throws while the inbox is full. */
  readonly #handOver: (row: CallRow) => void;
  /** `slow`: it may take as long as a server takes. */
  readonly #live = new Map<string, { slow: boolean; work: Promise<void>; over: AbortController }>();
  readonly #stopped = new AbortController();

  constructor(
    services: CallServices,
    around: { background: (work: Promise<unknown>) => void; wakeLoop: () => void; handOver: (row: CallRow) => void },
  ) {
    this.#services = services;
    this.#background = around.background;
    this.#wakeLoop = around.wakeLoop;
    this.#handOver = around.handOver;
  }

  /** Something may be to do. */
  wake(): void {
    if (this.#stopped.signal.aborted) return;
    for (const [callId, { over }] of this.#live) {
      if (this.#services.calls.get(callId)?.outcome) over.abort(new ColloquyError("run_canceled", "the call is over"));
    }
    for (const slow of [false, true]) {
      const live = [...this.#live.values()].filter((each) => each.slow === slow).length;
      const free = maxErrands - live;
      if (free <= 0) continue;
      const due = this.#services.calls.due(slow, free + live).filter(({ callId }) => !this.#live.has(callId));
      for (const { callId } of due.slice(0, free)) this.#background(this.#begin(callId, slow));
    }
  }

  /** The timer `calls` went off: what was cut is begun again. */
  fired(): void {
    this.wake();
    this.#services.calls.rearm();
  }

  /** Tells the space of a call now. Throws what it refuses, or `unavailable`. */
  async tell(callId: string): Promise<void> {
    await this.#live.get(callId)?.work;
    const row = this.#services.calls.get(callId);
    if (row && errandOf(row, this.#services.clock.now()) === "tell") await this.#tell(row);
  }

  /** The agent is being deleted. */
  async stop(): Promise<void> {
    this.#stopped.abort(new ColloquyError("run_canceled", "the agent was deleted"));
    await Promise.allSettled([...this.#live.values()].map(({ work }) => work));
  }

  #begin(callId: string, slow: boolean): Promise<void> {
    const over = new AbortController();
    const work = this.#goOn(callId, slow, over.signal).finally(() => {
      this.#live.delete(callId);
      if (this.#stopped.signal.aborted) return;
      this.#services.calls.rearm();
      this.wake();
    });
    this.#live.set(callId, { slow, work, over });
    return work;
  }

  /** All errands of one call, until it asks for none. */
  async #goOn(callId: string, slow: boolean, over: AbortSignal): Promise<void> {
    const ended = AbortSignal.any([this.#stopped.signal, over]);
    for (;;) {
      const row = this.#services.calls.get(callId);
      const errand = this.#errand(row);
      if (!row || !errand || this.#stopped.signal.aborted) return;
      if (isSlow(errand) && !slow) return;
      try {
        await this.#do(errand, row, ended);
      } catch (error) {
        if (this.#stopped.signal.aborted) return;
        // It is over meanwhile: what is to be told of that does not wait for another try of what is not asked any more.
        if (isSlow(errand) && this.#errand(this.#services.calls.get(callId)) !== errand) continue;
        const pause = backoff(row.failures, { firstMs: callBackoffMs, longestMs: longestCallBackoffMs });
        const reason = error instanceof Error ? error.message : String(error);
        log.warn("call.errand_failed", {
          ...loggedCall(this.#services, row),
          errand,
          failures: row.failures + 1,
          reason,
        });
        this.#services.calls.postpone(row, this.#services.clock.now() + pause);
        return;
      }
    }
  }

  #errand(row: CallRow | undefined): Errand | null {
    return row ? errandOf(row, this.#services.clock.now()) : null;
  }

  async #do(errand: Errand, row: CallRow, ended: AbortSignal): Promise<void> {
    const { calls } = this.#services;
    switch (errand) {
      case "tell":
        return this.#tell(row).catch((error: unknown) => {
          if (error instanceof ColloquyError && !error.retryable) return;
          throw error;
        });
      case "execute":
        return this.#execute(row, ended);
      case "push": {
        // Counted before it is sent: a crash would forget that its server may have it.
        if (!mayRepeat(row.tool)) calls.change(row.callId, { failures: row.failures + 1 });
        const outcome = await push(this.#services, row, ended);
        calls.change(row.callId, { pushed: true, failures: 0 });
        if (outcome) this.#settle(row.callId, outcome);
        return;
      }
      case "list":
        return this.#list(row);
      case "expire": {
        const message = "no server answered in time";
        this.#settle(row.callId, failed("expired", "gone", mayRepeat(row.tool) ? message : unknownInWords(message)));
        // Its run was told so long ago.
        if (row.phase === "late") calls.change(row.callId, { phase: "done", keptUntil: 0 });
        return;
      }
      case "hand_over":
        this.#services.transaction(() => {
          this.#handOver(row);
          calls.handedOver(row.callId);
        });
        await faultOnceStored("call.after-hand-over", this.#services.object);
        return this.#wakeLoop();
      case "forget":
        return calls.forget(row.callId);
    }
  }

  async #tell(row: CallRow): Promise<void> {
    const { calls, env, clock } = this.#services;
    const { spaceId } = row;
    if (spaceId === null) return;
    let status = statusOf(row);
    const ask = () => {
      // Its run may have ended since the try before.
      const current = calls.get(row.callId) ?? row;
      status = statusOf(current);
      const until = clock.now() + spaceAnswerMs;
      return env.SPACE.getByName(spaceId).recordToolCall({ ...shownCall(this.#services, current, spaceId), until });
    };
    const told: Outcome<unknown> = await callWithRetry(ask, this.#stopped.signal);
    if (told.ok) {
      await faultOnceStored("call.after-tell", this.#services.object);
      calls.change(row.callId, { told: status, failures: 0 });
      return;
    }
    // A space that refuses for good is asked no more; what it was to show cannot be done unseen.
    const { code, detail } = told.problem;
    const refused = new ColloquyError(code, detail);
    if (refused.retryable) throw refused;
    const outcome = row.outcome ?? failed("error", code, detail);
    const settled = row.outcome === null ? calls.settle(row.callId, outcome) : row;
    if (settled) calls.change(row.callId, { told: outcome.status });
    this.#wakeLoop();
    throw refused;
  }

  async #execute(row: CallRow, ended: AbortSignal): Promise<void> {
    // One errand of a call goes on at a time, so what runs already was cut.
    if (row.phase === "running" && !mayRepeat(row.tool)) {
      this.#settle(row.callId, failed("error", "outcome_unknown", interruptedCall));
      return;
    }
    const begun = this.#services.calls.beginExecution(row);
    if (begun.phase !== "running") return;
    await faultOnceStored("call.after-begin", this.#services.object);
    const outcome = await perform(this.#services, begun, ended);
    await faultOnceStored("call.after-perform", this.#services.object);
    this.#settle(row.callId, outcome);
  }

  async #list(row: CallRow): Promise<void> {
    const { identity, env, calls } = this.#services;
    const { id: agentId, workspaceId } = identity.get();
    const listed = shouldBeListed(row);
    const ask = () => env.WORKSPACE.getByName(workspaceId).noteToolCall(waitingCall(agentId, row), listed);
    const noted = await callWithRetry(ask, this.#stopped.signal, "the workspace");
    if (!noted.ok) throw new ColloquyError(noted.problem.code, noted.problem.detail);
    calls.change(row.callId, { listed, failures: 0 });
  }

  #settle(callId: string, outcome: CallOutcome): void {
    if (this.#services.calls.settle(callId, outcome)) this.#wakeLoop();
  }
}

const minute = 60_000;

/** Whom a call asks, and until when; undefined for one that asks nobody. */
const awaitsOf = ({ tool, createdAt }: CallRow): Omit<AwaitedAnswer, "answers"> | undefined => {
  const expiresAt = (minutes: number): string => isoTime(createdAt + minutes * minute);
  if (tool.executionType === "space") {
    const { by: approvers, schema, expiresInMinutes } = tool.answer;
    const asked = { kind: "answer" as const, quorum: 1, expiresAt: expiresAt(expiresInMinutes) };
    return { ...asked, ...(approvers && { approvers }), ...(schema && { schema }) };
  }
  if (!tool.approval?.required) return undefined;
  const { approvers, quorum, expiresInMinutes } = tool.approval;
  const asked = { kind: "approval" as const, quorum, expiresAt: expiresAt(expiresInMinutes) };
  return { ...asked, ...(approvers && { approvers }) };
};

/** The call as its space is to show it now. */
const shownCall = (services: Pick<CallServices, "identity" | "ids">, row: CallRow, spaceId: string): AgentToolCall => {
  const { id: agentId, workspaceId } = services.identity.get();
  const { outcome } = row;
  return {
    workspaceId,
    agentId,
    runId: services.ids.deriveOwned("run", agentId, row.runOrdinal),
    messageId: services.ids.deriveOwned("msg", spaceId, row.callId),
    toolCallId: row.callId,
    name: row.tool.name,
    input: row.input,
    status: statusOf(row),
    ...(outcome?.status === "complete" ? { output: outcome.value } : {}),
    ...(outcome?.error === undefined ? {} : { error: outcome.error }),
    awaits: awaitsOf(row),
    root: row.root,
    streamId: row.streamId ?? undefined,
    origin: row.origin ?? undefined,
  };
};
