import type { ToolConfig, ToolRule } from "../../protocol/tool.ts";
import { ColloquyError, type ErrorCode, ok, unwrap } from "../../shared/errors.ts";
import { faultOnceStored } from "../../shared/fault.ts";
import { log } from "../../shared/log.ts";
import { absentIn, mentionsIn } from "../../shared/mentions.ts";
import { maxWaitingRuns, spaceAnswerMs, stallMs } from "../bounds.ts";
import { orUnknown, reach } from "../call-with-retry.ts";
import { callBlocks } from "../calls/call-blocks.ts";
import { consentedTool } from "../calls/consented.ts";
import { ruleLine } from "../context/rule-line.ts";
import { placeWait, takeBackWait } from "../inbox/deliver.ts";
import type { CallRequest } from "../records.ts";
import type { RunRow } from "../runs.ts";
import { handlingOf, needsRow } from "../tools/handling.ts";
import { openSecret } from "../tools/open-secret.ts";
import { brokenRule } from "../tools/rules.ts";
import type { CallPlans, Tool, ToolContext, ToolOutput } from "../tools/tool.ts";
import { interruptedCall } from "../tools/unknown-outcome.ts";
import { loggedRun } from "../tracing/logged-run.ts";
import { callConfigured } from "./configured-call.ts";
import { pastCalls } from "./enforce-tool-rules.ts";
import type { Execution } from "./execution.ts";
import { kindOf, rulesOf } from "./kind.ts";
import { ownRuns } from "./own-runs.ts";
import type { Parts } from "./parts.ts";
import { type Result, recordResult } from "./result.ts";
import { seenIn } from "./seen-in.ts";
import { openCalls } from "./side-effects.ts";
import { sourceOf } from "./source-of.ts";
import { roomOf } from "./token-budget.ts";
import { originFor, rootOfRun } from "./utterance.ts";

const failure = (code: ErrorCode, message: string): Result => ({
  value: { success: false, error: { code, message } },
  error: true,
});

const requireRoomToWait = (parts: Parts, run: RunRow): void => {
  if (parts.waits.runsBeside(run.ordinal) < maxWaitingRuns) return;
  throw new ColloquyError(
    "limit_reached",
    `maxWaitingRuns (${maxWaitingRuns}) of your runs wait for answers; stop one, or say it without wait`,
  );
};

const contextOf = (parts: Parts, execution: Execution): ToolContext => {
  const { run, call, started, activeSpaceId, speech, signal } = execution;
  const { id: agentId, workspaceId } = parts.identity.get();
  return {
    replayed: started,
    activeSpaceId,
    isMember: (spaceId) => parts.spaces.isMember(spaceId),
    window: (spaceId, page) =>
      reach(() => parts.env.SPACE.getByName(spaceId).window(workspaceId, agentId, page), signal),
    roomTokens: () => roomOf(parts, run),
    seenIn: run.continuity === "timeline" ? (spaceId) => seenIn(parts, spaceId) : null,
    mentioned: (spaceId, text) => {
      const others = (parts.spaces.get(spaceId)?.snapshot.members ?? []).filter(({ id }) => id !== agentId);
      const ids = new Set(mentionsIn(text, others));
      return others.filter(({ id }) => ids.has(id)).map(({ id, name }) => ({ id, name }));
    },
    absent: (spaceId, text) => (text.includes("@") ? absentIn(parts.spaces.mine(), spaceId, text) : []),
    say: async (spaceId, text, how = {}) => {
      const awaits = how.awaits ?? [];
      const message = {
        workspaceId,
        agentId,
        runId: run.id,
        messageId: parts.ids.deriveOwned("msg", spaceId, call.callId),
        text,
        root: rootOfRun(parts, run),
        streamId: speech?.streamOf(call.index),
        origin: originFor(parts, run, spaceId),
        replyTo: how.replyTo,
        expectsReply: awaits.length > 0,
      };
      // A living agent does not wait: the answers come as ordinary events. A run that waits does so before it asks.
      const waits = awaits.length > 0 && run.continuity === "timeline";
      if (waits) {
        requireRoomToWait(parts, run);
        parts.waits.open({ callId: call.callId, runOrdinal: run.ordinal, spaceId, text }, awaits);
      }
      try {
        const append = () =>
          parts.env.SPACE.getByName(spaceId).append({ ...message, until: parts.clock.now() + spaceAnswerMs });
        const said = unwrap(await orUnknown(reach(append, signal)));
        if (waits) placeWait(parts, run.ordinal, call.callId, said.seq);
        return ok(said);
      } catch (error) {
        // What was cut is asked again by a replay; anything else was not asked, as far as the run knows.
        if (waits && !signal.aborted) takeBackWait(parts, run.ordinal, call.callId);
        throw error;
      }
    },
    memories: parts.memories,
    goals: parts.goals,
    plans: callPlans(parts, run, call),
    archival: {
      insert: (content, metadata) => {
        const id = parts.ids.deriveOwned("arch", agentId, call.callId);
        return parts.archival.insert({ id, content, metadata, source: sourceOf(parts, run, activeSpaceId) });
      },
      delete: (id) => parts.archival.delete(id),
    },
    search: (query) => parts.search.search(query),
    blocks: callBlocks(parts, { callId: call.callId, replayed: started, consented: false, signal }),
    runs: ownRuns(parts, run),
    outside: {
      callId: call.callId,
      openSecret: (name) => openSecret(parts, name),
      fetch: (input, init) => globalThis.fetch(input, init),
      signal,
      allowLoopback: parts.env.ENVIRONMENT === "development",
    },
  };
};

/** Times count from when the call was first begun, however late it is replayed. */
const callPlans = (parts: Parts, run: RunRow, { callId }: CallRequest): CallPlans => ({
  list: () => parts.plans.list(),
  delete: (ids) => void parts.plans.delete(ids),
  set: (plans) => {
    const { id: agentId } = parts.identity.get();
    const at = parts.journal.startOf(run, callId) ?? parts.clock.now();
    const named = plans.map(({ id, ...plan }, index) => ({
      id: id ?? parts.ids.deriveOwned("pln", agentId, callId, index),
      ...plan,
    }));
    return parts.plans.setAll(named, { setBy: "agent", root: rootOfRun(parts, run), callId, at });
  },
});

/** The rule that a call would break, if it were begun now. */
const brokenBy = (parts: Parts, run: RunRow, { toolName }: CallRequest): ToolRule | undefined => {
  const rules = rulesOf(parts, run);
  if (rules.length === 0) return undefined;
  return brokenRule(rules, toolName, pastCalls(parts.journal.ofRun(run)));
};

/** A built-in tool that people must agree to first is called as one that an owner configured so. */
const consentFor = async (
  parts: Parts,
  { call, signal, started }: Execution,
  tool: Tool,
): Promise<ToolConfig | undefined> => {
  if (!tool.consent) return undefined;
  const known = parts.calls.get(call.callId)?.tool;
  if (known || started) return known;
  const blocks = callBlocks(parts, { callId: call.callId, replayed: false, consented: false, signal });
  const approval = await tool.consent.approval(call.input, blocks);
  return approval && consentedTool(tool.name, approval);
};

const attempt = async (parts: Parts, execution: Execution): Promise<Result | "waiting"> => {
  const { call, started, run } = execution;
  if (call.invalid) return failure(call.invalid.code, call.invalid.message);
  const tool = parts.tools.find(call.toolName, kindOf(parts, run));
  if (!tool) return failure("tool_unknown", `there is no tool named ${call.toolName}`);
  const broken = started ? undefined : brokenBy(parts, run, call);
  if (broken) {
    return { ...failure("tool_rule_broken", `not executed, it breaks a rule: ${ruleLine(broken)}`), refused: true };
  }
  try {
    tool.check(call.input);
  } catch (error) {
    if (error instanceof ColloquyError) return failure(error.code, error.message);
    throw error;
  }
  const alive = tool.config || tool.isTimed ? setInterval(execution.progressed, stallMs / 3) : undefined;
  try {
    const asking = await consentFor(parts, execution, tool);
    if (asking) return await callConfigured(parts, execution, asking);
    const { config } = tool;
    if (config && needsRow(config, handlingOf(config, run.continuity))) {
      return await callConfigured(parts, execution, config);
    }
    return await callHere(parts, execution, tool);
  } catch (error) {
    execution.signal.throwIfAborted();
    if (error instanceof ColloquyError) return failure(error.code, error.message);
    log.error("tool.failed", error, { ...loggedRun(parts, run), callId: call.callId, tool: call.toolName });
    return failure("tool_failed", "the tool failed; try something else");
  } finally {
    clearInterval(alive);
  }
};

/** A call that is a step of its run and nothing more. */
const callHere = async (parts: Parts, execution: Execution, tool: Tool): Promise<Result> => {
  const { call, started, run, step } = execution;
  if (started && !tool.idempotent) {
    return failure("outcome_unknown", interruptedCall);
  }
  if (!started) {
    parts.journal.append({
      runOrdinal: run.ordinal,
      step,
      kind: "call",
      content: { callId: call.callId, toolName: call.toolName },
    });
  }
  await faultOnceStored("agent.after-call", parts.object);
  // Another run may have ended this one a moment ago: no effect begins after that (R5).
  execution.signal.throwIfAborted();
  const output: ToolOutput = await tool.execute(call.input, contextOf(parts, execution));
  return { ...output, error: false };
};

const isOpen = (parts: Parts, { run, call }: Execution): boolean =>
  openCalls(parts.journal.ofRun(run)).some((open) => open.call.callId === call.callId);

/**
 * Executes one call: a `call` row before its effect, a `result` row after (R2, R3). Whatever the tool does, the
 * call gets its result, which the model reads, at once or when somebody has answered. Answers the space that the call
 * entered, if it did.
 */
export const execute = async (parts: Parts, execution: Execution): Promise<string | null> => {
  const { run, step, call, speech } = execution;
  const result = await attempt(parts, execution);
  if (result === "waiting") return null;
  await faultOnceStored("agent.after-effect", parts.object);
  // Whoever ended the run has told of it.
  if (execution.signal.aborted && !isOpen(parts, execution)) return null;
  parts.transaction(() => {
    recordResult(parts, run, step, call, result);
    parts.calls.given(call.callId);
  });
  parts.wakeCalls();
  if (result.error) {
    const code = call.invalid?.code ?? "tool_failed";
    speech?.drop(call.index, code, "the message was not sent");
  } else {
    speech?.said(call.index);
  }
  return result.activeSpaceId ?? null;
};
