import type { ModelMessage } from "ai";
import { adapters } from "../../models/adapt.ts";
import type { AssistantMeta } from "../../protocol/exported-history.ts";
import type { Run, RunStep, StepInput } from "../../protocol/run.ts";
import { isoTime } from "../../shared/clock.ts";
import { ColloquyError } from "../../shared/errors.ts";
import { faultOnceStored } from "../../shared/fault.ts";
import { withoutNulls } from "../../shared/without-nulls.ts";
import { maxRunViewCharacters } from "../bounds.ts";
import { readsFor } from "../calls/reads.ts";
import { answerCall, claimCall } from "../calls/server-calls.ts";
import { feedFor } from "../run/feed.ts";
import { outputOf, type RunCall, type RunRows, readRows, type StepRow } from "../run/run-rows.ts";
import type { RunServices } from "../run/run-services.ts";
import type { StepMessages } from "../run/windows.ts";
import type { RunRow } from "../runs.ts";
import type { Area } from "./agent-runtime.ts";
import { cursorOf, page } from "./page.ts";

/** A run as a holder of the workspace's key sees it. */
type CallView = RunStep["toolCalls"][number];

export const callView = ({ calls }: RunServices, made: RunCall): CallView => {
  const { call, begunAt, result } = made;
  const common = { id: call.callId, name: call.toolName, input: call.input };
  if (result) return { ...common, output: outputOf(made), status: result.meta.error ? "error" : "complete" };
  if (begunAt === undefined) return { ...common, status: "pending" };
  return { ...common, status: calls.isAwaited(call.callId) ? "waiting" : "started" };
};

const stepView = (services: RunServices, { calls }: RunRows, { step, meta }: StepRow): RunStep => ({
  index: step,
  text: meta.text,
  toolCalls: calls.filter((made) => made.step === step).map((made) => callView(services, made)),
  usage: meta.usage,
  durationMs: meta.durationMs,
});

const rowsOf = (services: RunServices, run: RunRow): RunRows =>
  readRows(services.journal.ofRun(run, run.journalTo ?? undefined));

const withSteps = (services: RunServices, run: RunRow, { all }: RunRows, steps: RunStep[], nextStep?: number): Run => {
  const { id, status, trigger, roots, outcome, reason, error, endedBy, prefixReuse, startedAt, completedAt } = run;
  const absorbed = services.runs.absorbedBy(run.id);
  const [spaceId] = run.spaceIds;
  return {
    ...{ id, agentId: services.identity.get().id, status, trigger, roots },
    ...(spaceId === undefined ? {} : { spaceId: trigger.spaceId ?? spaceId }),
    steps,
    ...(nextStep === undefined ? {} : { nextStep }),
    ...withoutNulls({ outcome, reason, error, endedBy }),
    ...readsFor(services, run, null, all),
    ...(absorbed.length === 0 ? {} : { absorbed: absorbed.map((each) => each.id) }),
    ...withoutNulls({ prefixReuse }),
    startedAt: isoTime(startedAt),
    ...(completedAt === null ? {} : { completedAt: isoTime(completedAt) }),
  };
};

export const runView = (services: RunServices, run: RunRow): Run => {
  const view = rowsOf(services, run);
  const steps = view.steps.map((row) => stepView(services, view, row));
  return withSteps(services, run, view, steps);
};

/** An input as it was sent. */
type Sent = StepMessages & { step: number };

/** How many of its messages an input shares with the step before, from the first one on. */
const sharedWith = (before: Sent, now: Sent): number => {
  if (before.instructions !== now.instructions) return 0;
  const differs = (message: ModelMessage, index: number): boolean =>
    JSON.stringify(message) !== JSON.stringify(now.messages[index]);
  const first = before.messages.findIndex(differs);
  return first === -1 ? before.messages.length : first;
};

const inputView = (meta: AssistantMeta, now: Sent, before: Sent | undefined): StepInput => {
  const { instructions, messages } = now;
  const shared = before ? sharedWith(before, now) : 0;
  if (!before || shared === 0) return { instructions, messages, ...meta.input };
  return { continues: { step: before.step, messages: shared }, messages: messages.slice(shared), ...meta.input };
};

/**
 * A run with its steps' exact inputs, from a step on: each says what it adds to the one before. As many steps as one
 * answer holds, and one at least; `nextStep` says where to go on.
 */
const runWithInputs = (services: RunServices, run: RunRow, fromStep: number): Run => {
  const view = rowsOf(services, run);
  const steps: RunStep[] = [];
  let room = maxRunViewCharacters;
  let before: Sent | undefined;
  for (const row of view.steps.filter(({ step }) => step >= fromStep)) {
    const raw = services.windows.inputOf(run, view.all, row);
    const adapt = Object.entries(adapters).find(([family]) => row.meta.modelId.startsWith(`${family}/`))?.[1];
    const now = raw && { ...raw, step: row.step, messages: adapt ? adapt(raw.messages) : raw.messages };
    const input = now ? { input: inputView(row.meta, now, before) } : {};
    const step = { ...stepView(services, view, row), ...input };
    room -= JSON.stringify(step).length;
    if (room < 0 && steps.length > 0) return withSteps(services, run, view, steps, row.step);
    steps.push(step);
    before = now ?? undefined;
  }
  return withSteps(services, run, view, steps);
};

type RunMethods = "runs" | "run" | "cancelRun" | "feed" | "claimToolCall" | "answerToolCall";
export const runsArea: Area<RunMethods> = {
  feed: ({ services }, asked) => feedFor(services, asked),
  runs: ({ services }, { limit, cursor, status }) =>
    page(
      services.runs.page(cursorOf(cursor), limit + 1, status, true),
      limit,
      (row) => row.ordinal,
      (row) => runView(services, row),
    ),
  run: ({ services }, runId, fromStep = 0) => {
    const row = services.runs.get(runId);
    if (!row || row.fed) throw new ColloquyError("not_found", "there is no such run");
    return runWithInputs(services, row, fromStep);
  },
  cancelRun: async ({ services, loop }, runId) => {
    const canceled = await loop.cancel(runId);
    await faultOnceStored("agent.after-cancel", services.object);
    return runView(services, canceled);
  },
  claimToolCall: async ({ services, loop }, id, claim) => {
    try {
      return await claimCall(services, id, claim);
    } finally {
      loop.wake();
      services.wakeCalls();
    }
  },
  answerToolCall: async ({ services, loop }, id, answer) => {
    const answered = await answerCall(services, id, answer);
    loop.wake();
    services.wakeCalls();
    return answered;
  },
};
