import type { ToolConfig, ToolRule } from "../../protocol/tool.ts";
import { ColloquyError, type ErrorCode, ok, unwrap } from "../../shared/errors.ts";
import { faultOnceStored } from "../../shared/fault.ts";
import { log } from "../../shared/log.ts";
import { absentIn, mentionsIn } from "../../shared/mentions.ts";
import { maxWaitingRuns, spaceAnswerMs, stallMs } from "../bounds.ts";
import { callWithRetry } from "../call-with-retry.ts";
import { callBlocks } from "../calls/call-blocks.ts";
import { consentedTool } from "../calls/perform.ts";
import { ruleLine } from "../context/instructions.ts";
import { placeWait, takeBackWait } from "../inbox/deliver.ts";
import type { CallRequest } from "../records.ts";
import { loggedRun, type RunRow } from "../runs.ts";
import { handlingOf, needsRow } from "../tools/handling.ts";
import { findTool } from "../tools/registry.ts";
import { brokenRule } from "../tools/rules.ts";
import type { CallPlans, Tool, ToolContext, ToolOutput } from "../tools/tool.ts";
import { asUnknownOutcome, interruptedCall } from "../tools/unknown-outcome.ts";
import { inputTokensLeft, kindOf, rulesOf } from "./composing.ts";
import { callConfigured, type Execution } from "./configured-call.ts";
import { continuityOf } from "./continuity/continuities.ts";
import { pastCalls } from "./enforce-tool-rules.ts";
import { ownRuns } from "./own-runs.ts";
import { type Result, recordResult } from "./result.ts";
import type { RunServices } from "./run-services.ts";
import { seenIn } from "./seen-in.ts";
import { openCalls } from "./side-effects.ts";
import { originFor, rootOfRun, sourceOf } from "./utterance.ts";

const failure = (code: ErrorCode, message: string): Result => ({
  value: { success: false, error: { code, message } },
  error: true,
});

const requireRoomToWait = (services: RunServices, run: RunRow): void => {
  if (services.waits.runsBeside(run.ordinal) < maxWaitingRuns) return;
  throw new ColloquyError(
    "limit_reached",
    `maxWaitingRuns (${maxWaitingRuns}) of your runs wait for answers; stop one, or say it without wait`,
  );
};

const contextOf = (services: RunServices, execution: Execution): ToolContext => {
  const { run, call, started, activeSpaceId, speech, signal } = execution;
  const continuity = continuityOf(run);
  const { id: agentId, workspaceId } = services.identity.get();
  return {
    replayed: started,
    activeSpaceId,
    isMember: (spaceId) => services.spaces.isMember(spaceId),
    window: (spaceId, page) =>
      callWithRetry(() => services.env.SPACE.getByName(spaceId).window(workspaceId, agentId, page), signal),
    roomTokens: () => inputTokensLeft(services, run),
    seenIn: continuity.marksSeen ? (spaceId) => seenIn(services, spaceId) : null,
    mentioned: (spaceId, text) => {
      const others = (services.spaces.get(spaceId)?.snapshot.members ?? []).filter(({ id }) => id !== agentId);
      const ids = new Set(mentionsIn(text, others));
      return others.filter(({ id }) => ids.has(id)).map(({ id, name }) => ({ id, name }));
    },
    absent: (spaceId, text) => (text.includes("@") ? absentIn(services.spaces.mine(), spaceId, text) : []),
    say: async (spaceId, text, how = {}) => {
      const awaits = how.awaits ?? [];
      const message = {
        workspaceId,
        agentId,
        runId: run.id,
        messageId: services.ids.deriveOwned("msg", spaceId, call.callId),
        text,
        root: rootOfRun(services, run),
        streamId: speech?.streamOf(call.index),
        origin: originFor(services, run, spaceId),
        replyTo: how.replyTo,
        expectsReply: awaits.length > 0,
      };
      // A run that waits opens its wait before it asks.
      const waits = awaits.length > 0 && continuity.waitsForAnswers;
      if (waits) {
        requireRoomToWait(services, run);
        services.waits.open({ callId: call.callId, runOrdinal: run.ordinal, spaceId, text }, awaits);
      }
      try {
        const append = () =>
          services.env.SPACE.getByName(spaceId).append({ ...message, until: services.clock.now() + spaceAnswerMs });
        const said = unwrap(await asUnknownOutcome(callWithRetry(append, signal)));
        if (waits) placeWait(services, run.ordinal, call.callId, said.seq);
        return ok(said);
      } catch (error) {
        // What was cut is asked again by a replay; anything else was not asked, as far as the run knows.
        if (waits && !signal.aborted) takeBackWait(services, run.ordinal, call.callId);
        throw error;
      }
    },
    memories: services.memories,
    goals: services.goals,
    plans: callPlans(services, run, call),
    archival: {
      insert: (content, metadata) => {
        const id = services.ids.deriveOwned("arch", agentId, call.callId);
        return services.archival.insert({ id, content, metadata, source: sourceOf(services, run, activeSpaceId) });
      },
      delete: (id) => services.archival.delete(id),
    },
    search: (query) => services.search.search(query),
    blocks: callBlocks(services, { callId: call.callId, replayed: started, consented: false, signal }),
    runs: ownRuns(services, run),
    outside: {
      callId: call.callId,
      openSecret: (name) => services.identity.openSecret(name),
      fetch: (input, init) => globalThis.fetch(input, init),
      signal,
      allowLoopback: services.env.ENVIRONMENT === "development",
    },
  };
};

/** Times count from when the call was first begun, however late it is replayed. */
const callPlans = (services: RunServices, run: RunRow, { callId }: CallRequest): CallPlans => ({
  list: () => services.plans.list(),
  delete: (ids) => void services.plans.delete(ids),
  set: (plans) => {
    const { id: agentId } = services.identity.get();
    const at = services.journal.startOf(run, callId) ?? services.clock.now();
    const named = plans.map(({ id, ...plan }, index) => ({
      id: id ?? services.ids.deriveOwned("pln", agentId, callId, index),
      ...plan,
    }));
    return services.plans.setAll(named, { setBy: "agent", root: rootOfRun(services, run), callId, at });
  },
});

/** The rule that a call would break, if it were begun now. */
const brokenBy = (services: RunServices, run: RunRow, { toolName }: CallRequest): ToolRule | undefined => {
  const rules = rulesOf(services, run);
  if (rules.length === 0) return undefined;
  return brokenRule(rules, toolName, pastCalls(services.journal.ofRun(run)));
};

/** A built-in tool that people must agree to first is called as one that an owner configured so. */
const consentFor = async (
  services: RunServices,
  { call, signal, started }: Execution,
  tool: Tool,
): Promise<ToolConfig | undefined> => {
  if (!tool.consent) return undefined;
  const known = services.calls.get(call.callId)?.tool;
  if (known || started) return known;
  const blocks = callBlocks(services, { callId: call.callId, replayed: false, consented: false, signal });
  const approval = await tool.consent.approval(call.input, blocks);
  return approval && consentedTool(tool.name, approval);
};

const attempt = async (services: RunServices, execution: Execution): Promise<Result | "waiting"> => {
  const { call, started, run } = execution;
  if (call.invalid) return failure(call.invalid.code, call.invalid.message);
  const tool = findTool(call.toolName, kindOf(services, run));
  if (!tool) return failure("tool_unknown", `there is no tool named ${call.toolName}`);
  const broken = started ? undefined : brokenBy(services, run, call);
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
    const asking = await consentFor(services, execution, tool);
    if (asking) return await callConfigured(services, execution, asking);
    const { config } = tool;
    if (config && needsRow(config, handlingOf(config, continuityOf(run)))) {
      return await callConfigured(services, execution, config);
    }
    return await callHere(services, execution, tool);
  } catch (error) {
    execution.signal.throwIfAborted();
    if (error instanceof ColloquyError) return failure(error.code, error.message);
    log.error("tool.failed", error, { ...loggedRun(services, run), callId: call.callId, tool: call.toolName });
    return failure("tool_failed", "the tool failed; try something else");
  } finally {
    clearInterval(alive);
  }
};

/** A call that is a step of its run and nothing more. */
const callHere = async (services: RunServices, execution: Execution, tool: Tool): Promise<Result> => {
  const { call, started, run, step } = execution;
  if (started && !tool.idempotent) {
    return failure("outcome_unknown", interruptedCall);
  }
  if (!started) {
    services.journal.append({
      runOrdinal: run.ordinal,
      step,
      kind: "call",
      content: { callId: call.callId, toolName: call.toolName },
    });
  }
  await faultOnceStored("agent.after-call", services.object);
  // Another run may have ended this one a moment ago: no effect begins after that (R5).
  execution.signal.throwIfAborted();
  const output: ToolOutput = await tool.execute(call.input, contextOf(services, execution));
  return { ...output, error: false };
};

const isOpen = (services: RunServices, { run, call }: Execution): boolean =>
  openCalls(services.journal.ofRun(run)).some((open) => open.call.callId === call.callId);

/**
 * Executes one call: a `call` row before its effect, a `result` row after (R2, R3). Whatever the tool does, the
 * call gets its result, which the model reads, at once or when somebody has answered. Answers the space that the call
 * entered, if it did.
 */
export const execute = async (services: RunServices, execution: Execution): Promise<string | null> => {
  const { run, step, call, speech } = execution;
  const result = await attempt(services, execution);
  if (result === "waiting") return null;
  await faultOnceStored("agent.after-effect", services.object);
  // Whoever ended the run has told of it.
  if (execution.signal.aborted && !isOpen(services, execution)) return null;
  services.transaction(() => {
    recordResult(services, run, step, call, result);
    services.calls.given(call.callId);
  });
  services.wakeCalls();
  if (result.error) {
    const code = call.invalid?.code ?? "tool_failed";
    speech?.drop(call.index, code, "the message was not sent");
  } else {
    speech?.said(call.index);
  }
  return result.activeSpaceId ?? null;
};
