import type { AgentToolCall } from "../../protocol/rpc.ts";
import type { ToolConfig } from "../../protocol/tool.ts";
import { backoff } from "../../shared/backoff.ts";
import { isoTime } from "../../shared/clock.ts";
import { ColloquyError, unwrap } from "../../shared/errors.ts";
import { faultOnceStored } from "../../shared/fault.ts";
import { log } from "../../shared/log.ts";
import { sameJson } from "../../shared/same-json.ts";
import { withTimeout } from "../../shared/timeouts.ts";
import { callBackoffMs, longestCallBackoffMs, maxCallActions, mindAnswerMs, spaceAnswerMs } from "../bounds.ts";
import { callWithRetry } from "../call-with-retry.ts";
import type { CallOutcome } from "../records.ts";
import type { CallRow } from "../schema.ts";
import { mayRepeat } from "../tools/call-mode.ts";
import { shownRequest } from "../tools/configured/shown-request.ts";
import { changedSinceApproval, failed, unknownInWords } from "../tools/outcome.ts";
import { type CallServices, loggedCall } from "./calls.ts";
import { actionOf, type CallAction, isSlow, shouldBeListed, statusOf } from "./due.ts";
import { builtinTarget, perform } from "./perform.ts";
import { readsFor } from "./reads.ts";
import { push, waitingCall } from "./server-calls.ts";

/**
 * Does what calls ask for beside their runs: tells spaces, executes what no run waits for, sends to servers, hands
 * results to the inbox.
 *
 * Invariants
 * 1. What is to be done follows from the rows alone; a crash anywhere is followed by the timer `calls` (R1).
 * 2. One action of a call at a time. A failed action backs off and delays no other call. Actions that ask servers take
 *    no place from the others.
 * 3. What was begun and cut is done again only if its tool is idempotent; else its outcome is unknown (R3).
 * 4. No server is asked, no tool executed and none too late while the workspace is suspended. What is under way then ends.
 * 5. A server request is aborted once its call's outcome is known: the run was cut (R5), or the server answered in
 *    another way.
 */
export type CallWork = ReturnType<typeof createCallWork>;

type Around = {
  background: (work: Promise<unknown>) => void;
  /** Something came of a call that a run may wait for, or the inbox has got a result. */
  wakeLoop: () => void;
  /** Puts a call's result into the inbox, within a transaction. Throws while the inbox is full. */
  handOver: (row: CallRow) => void;
};

export const createCallWork = (services: CallServices, { background, wakeLoop, handOver }: Around) => {
  const { calls, clock, env, identity } = services;
  /** `slow`: it may take as long as a server takes. */
  const live = new Map<string, { slow: boolean; work: Promise<void>; over: AbortController }>();
  const stopped = new AbortController();

  const next = (row: CallRow | undefined): CallAction | null => (row ? actionOf(row, clock.now()) : null);

  const settle = (callId: string, outcome: CallOutcome): void => {
    if (calls.settle(callId, outcome)) wakeLoop();
  };

  /** Tells the call's space how it stands. Throws what the space refuses, or `unavailable`. */
  const tell = async (row: CallRow): Promise<void> => {
    const { callId, spaceId } = row;
    if (spaceId === null) return;
    let status = statusOf(row);
    const ask = () => {
      // Its run may have ended since the try before.
      const current = calls.get(callId) ?? row;
      status = statusOf(current);
      const until = clock.now() + spaceAnswerMs;
      return env.SPACE.getByName(spaceId).recordToolCall({ ...shownCall(services, current, spaceId), until });
    };
    const told = await callWithRetry<unknown>(ask, stopped.signal);
    if (told.ok) {
      await faultOnceStored("call.after-tell", services.object);
      calls.change(callId, { told: status, failures: 0 });
      return;
    }
    // A space that refuses for good is not asked again. A call that it had to show cannot run unseen.
    const { code, detail } = told.problem;
    const refused = new ColloquyError(code, detail);
    if (refused.retryable) throw refused;
    if (row.outcome) calls.change(callId, { told: row.outcome.status });
    else calls.settle(callId, failed("error", code, detail), "error");
    wakeLoop();
    throw refused;
  };

  const run = async (action: CallAction, row: CallRow, ended: AbortSignal): Promise<void> => {
    const { callId, tool } = row;
    switch (action) {
      case "tell":
        return tell(row).catch((error: unknown) => {
          if (!(error instanceof ColloquyError) || error.retryable) throw error;
        });
      case "execute": {
        // One action of a call goes on at a time, so what runs already was cut.
        const isCut = row.phase === "running";
        const begun = isCut ? row : calls.beginExecution(row);
        if (begun.phase === "running") await perform(services, begun, isCut, ended);
        return;
      }
      case "push": {
        // Counted before it is sent: a crash would forget that its server may have it.
        calls.change(callId, { failures: row.failures + 1 });
        const outcome = await push(services, row, ended);
        calls.change(callId, { pushed: true, failures: 0 });
        if (outcome) settle(callId, outcome);
        return;
      }
      case "list": {
        const { id, workspaceId } = identity.get();
        const changed = shouldBeListed(row) ? changedSinceApproval(row, row.lease !== null) : undefined;
        const listed = shouldBeListed(row) && !changed;
        const ask = () => env.WORKSPACE.getByName(workspaceId).noteToolCall(waitingCall(id, row), listed);
        unwrap(await callWithRetry<unknown>(ask, stopped.signal, "the workspace"));
        // Words may have gone from it meanwhile: then it is listed once more, without them.
        calls.change(callId, { listed: listed && sameJson(calls.get(callId)?.input, row.input), failures: 0 });
        return changed && settle(callId, changed);
      }
      case "expire": {
        const message = "no server answered in time";
        settle(callId, failed("expired", "gone", mayRepeat(tool) ? message : unknownInWords(message)));
        // Its run was told so long ago.
        if (row.phase === "late") calls.change(callId, { phase: "done", keptUntil: 0 });
        return;
      }
      case "hand_over":
        services.transaction(() => {
          handOver(row);
          calls.handedOver(row);
        });
        await faultOnceStored("call.after-hand-over", services.object);
        return wakeLoop();
      case "forget":
        return calls.forget(callId);
    }
  };

  /** All actions of one call, until it asks for none. */
  const goOn = async (callId: string, slow: boolean, over: AbortSignal): Promise<void> => {
    const ended = AbortSignal.any([stopped.signal, over]);
    for (;;) {
      const row = calls.get(callId);
      const action = next(row);
      if (!row || !action || stopped.signal.aborted) return;
      if (isSlow(action) && !slow) return;
      if (services.isSuspended() && (isSlow(action) || action === "expire")) return;
      try {
        await run(action, row, ended);
      } catch (error) {
        if (stopped.signal.aborted) return;
        // The call ended during the action. Its next action does not wait for the pause of this one.
        if (isSlow(action) && next(calls.get(callId)) !== action) continue;
        const pause = backoff(row.failures, { firstMs: callBackoffMs, longestMs: longestCallBackoffMs });
        const reason = error instanceof Error ? error.message : String(error);
        const failures = row.failures + 1;
        log.warn("call.action_failed", { ...loggedCall(services, row), action, failures, reason });
        calls.change(callId, { failures, lookAt: clock.now() + pause });
        return;
      }
    }
  };

  const begin = (callId: string, slow: boolean): void => {
    const over = new AbortController();
    const work = goOn(callId, slow, over.signal).finally(() => {
      live.delete(callId);
      if (stopped.signal.aborted) return;
      calls.rearm();
      wake();
    });
    live.set(callId, { slow, work, over });
    background(work);
  };

  /** Something may be to do. */
  const wake = (): void => {
    if (stopped.signal.aborted) return;
    for (const [callId, { over }] of live) {
      if (calls.get(callId)?.outcome) over.abort(new ColloquyError("run_canceled", "the call is over"));
    }
    for (const slow of [false, true]) {
      const busy = [...live.values()].filter((each) => each.slow === slow).length;
      if (busy >= maxCallActions || (slow && services.isSuspended())) continue;
      const due = calls.due(slow, maxCallActions, [...live.keys()]).filter(({ callId }) => !live.has(callId));
      for (const { callId } of due.slice(0, maxCallActions - busy)) begin(callId, slow);
    }
  };

  return {
    wake,

    /** The timer `calls` went off: what was cut is begun again. */
    fired(): void {
      wake();
      calls.rearm();
    },

    /** Tells the space of a call now. Throws what it refuses, or `unavailable`. */
    async tell(callId: string): Promise<void> {
      await live.get(callId)?.work;
      const row = calls.get(callId);
      if (row && next(row) === "tell") await tell(row);
    },

    /** The mind is being deleted: no list names its calls any more. Throws where the workspace cannot be told. */
    async stop(): Promise<void> {
      stopped.abort(new ColloquyError("run_canceled", "the agent was deleted"));
      await Promise.allSettled([...live.values()].map(({ work }) => work));
      for (const row of calls.listed()) {
        const { id, workspaceId } = identity.get();
        const workspace = env.WORKSPACE.getByName(workspaceId);
        const told = await withTimeout(mindAnswerMs, workspace.noteToolCall(waitingCall(id, row), false));
        if (told.ok || told.problem.code !== "not_found") unwrap(told);
      }
    },
  };
};

const minute = 60_000;

/** The people that a call asks, and until when; undefined if it asks nobody. */
const awaitsOf = ({ tool, createdAt }: CallRow): AgentToolCall["awaits"] => {
  const expiring = (minutes: number) => ({ expiresAt: isoTime(createdAt + minutes * minute) });
  if (tool.executionType === "space") {
    const { by: approvers, schema, expiresInMinutes } = tool.answer;
    const among = { ...(approvers && { approvers }), ...(schema && { schema }) };
    return { kind: "answer", quorum: 1, ...expiring(expiresInMinutes), ...among };
  }
  if (!tool.approval?.required) return undefined;
  const { approvers, quorum, expiresInMinutes } = tool.approval;
  return { kind: "approval", quorum, ...expiring(expiresInMinutes), ...(approvers && { approvers }) };
};

/** Where a call goes, for those who approve it. */
const targetOf = (tool: ToolConfig): string | undefined => {
  if (tool.executionType === "internal") return builtinTarget(tool);
  if (tool.executionType === "space") return undefined;
  if (!tool.execution) return "a server that asks this workspace for calls";
  const { url } = tool.execution;
  const method = tool.executionType === "gateway" ? tool.execution.method : "POST";
  return `${method} ${URL.canParse(url) ? new URL(url).origin : "an address that cannot be used"}`;
};

/** The model is told the id of the space that it may speak in. People read its name alone, and are there. */
const asPeopleRead = ({ code, message }: NonNullable<CallOutcome["error"]>, spaceId: string) => ({
  code,
  message: message.replaceAll(` (${spaceId})`, ""),
});

/** The call as its space is to show it now. */
const shownCall = (services: CallServices, row: CallRow, spaceId: string): AgentToolCall => {
  const { id: agentId, workspaceId, compartmentId } = services.identity.get();
  const { outcome } = row;
  const run = services.runs.at(row.runOrdinal);
  return {
    workspaceId,
    agentId,
    mindId: compartmentId ?? undefined,
    runId: services.ids.deriveOwned("run", services.identity.mindId(), row.runOrdinal),
    messageId: services.ids.deriveOwned("msg", spaceId, row.callId),
    toolCallId: row.callId,
    name: row.tool.name,
    input: row.input,
    status: statusOf(row),
    ...(outcome?.status === "complete" ? { output: outcome.value } : {}),
    ...(outcome?.error && { error: asPeopleRead(outcome.error, spaceId) }),
    awaits: awaitsOf(row),
    target: targetOf(row.tool),
    release: row.release ?? undefined,
    request: shownRequest(row.tool),
    root: row.root,
    streamId: row.streamId ?? undefined,
    origin: row.origin ?? undefined,
    ...(run && { ...readsFor(services, run, spaceId), writtenAt: services.journal.writtenAt(run, row.callId) }),
  };
};
