import { asSchema, type ToolSet } from "ai";
import type { CallRequest } from "../../protocol/exported-history.ts";
import {
  type ClaimedRun,
  type DeclaredTool,
  type GuestCallAnswer,
  type GuestEnd,
  SpeechLine,
  thinksHere,
} from "../../protocol/guest.ts";
import { textBytes } from "../../protocol/text.ts";
import { isoTime } from "../../shared/clock.ts";
import { ColloquyError } from "../../shared/errors.ts";
import { faultOnceStored } from "../../shared/fault.ts";
import { LineDecoder } from "../../shared/line-decoder.ts";
import { sameJson } from "../../shared/same-json.ts";
import { settledWithin } from "../../shared/timeouts.ts";
import { guestAnswerMs, maxStepBytes } from "../bounds.ts";
import { nextWindow, partsIn } from "../run/composing.ts";
import { type Act, type Handed, usedTwice } from "../run/guest-desk.ts";
import { type RunCall, readRows } from "../run/run-rows.ts";
import { hasEnded, isActive, type RunRow } from "../runs.ts";
import type { AgentRuntime, Area } from "./agent-runtime.ts";
import { inboxView } from "./inbox.ts";
import { callView, runView } from "./runs.ts";

/** A guest's program claims runs and acts in them. The run's loop does all that an act asks for. */

const requireGuest = ({ services }: AgentRuntime): void => {
  if (services.identity.get().config.runtime === "guest") return;
  throw new ColloquyError("conflict", thinksHere);
};

const runOf = (runtime: AgentRuntime, runId: string): RunRow => {
  requireGuest(runtime);
  const run = runtime.services.runs.get(runId);
  if (!run || run.fed) throw new ColloquyError("not_found", "there is no such run");
  return run;
};

/** Throws `conflict` where the run has ended, and `gone` for who does not hold it any more. */
const requireHeld = ({ services }: AgentRuntime, run: RunRow, lease: string | undefined): void => {
  if (!isActive(run)) throw hasEnded(run, `GET /v1/agents/${services.identity.get().id}/runs/${run.id}`);
  if (run.lease !== null && run.lease === (lease ?? run.lease)) return;
  const taken = run.lease === null ? "nobody holds this run now" : "another program has claimed this run since";
  throw new ColloquyError("gone", `${taken}: claim again; what was done in it stays done`);
};

/** Brings an act to the run's loop, and waits until it is over, or as long as a request may take. */
const act = async ({ services, loop }: AgentRuntime, { ordinal }: RunRow, brought: Act): Promise<void> => {
  const { over, withdraw } = services.guests.bring(ordinal, brought);
  loop.wake();
  let failure: unknown;
  const ended = over.catch((error: unknown) => {
    failure = error;
  });
  // A speech takes as long as its words take to come.
  await (brought.kind === "speech" ? ended : settledWithin(guestAnswerMs, ended));
  await faultOnceStored("guest.after-act", services.object);
  if (failure) throw failure;
  if (withdraw()) throw new ColloquyError("unavailable", "the run is busy with other acts: try again");
};

const callIn = ({ services }: AgentRuntime, run: RunRow, callId: string): RunCall | undefined => {
  const rows = readRows(services.journal.ofRun(run, run.journalTo ?? undefined));
  return rows.calls.find(({ call }) => call.callId === callId);
};

/** The answer of the call with this id. A call that was never journaled was not done: its run was lost or ended before. */
const answerOf = (runtime: AgentRuntime, { id }: RunRow, callId: string): GuestCallAnswer => {
  const { services } = runtime;
  const run = runOf(runtime, id);
  const made = callIn(runtime, run, callId);
  if (!made) {
    requireHeld(runtime, run, undefined);
    throw new ColloquyError("unavailable", "the run did not come to this call: try again");
  }
  const until = run.lease === null ? null : services.guests.leaseUntil(run.ordinal);
  return { call: callView(services, made), leaseUntil: until === null ? null : isoTime(until) };
};

/** Has a call done, once for each key. A known one is answered as it went, whoever holds the run by now. */
const doCall = async (
  runtime: AgentRuntime,
  run: RunRow,
  lease: string | undefined,
  call: CallRequest,
  how: () => Act,
): Promise<GuestCallAnswer> => {
  const known = callIn(runtime, run, call.callId);
  if (known && !(known.call.toolName === call.toolName && sameJson(known.call.input, call.input))) throw usedTwice();
  const isDone = known && (known.result || !isActive(run) || run.status !== "running");
  if (isDone) return answerOf(runtime, run, call.callId);
  requireHeld(runtime, run, lease);
  if (known) {
    runtime.loop.wake();
    await settledWithin(guestAnswerMs, runtime.services.guests.overOf(run.ordinal));
  } else await act(runtime, run, how());
  return answerOf(runtime, run, call.callId);
};

const request = (
  { services }: AgentRuntime,
  run: RunRow,
  key: string,
  toolName: string,
  input: unknown,
): CallRequest => ({
  callId: services.ids.deriveOwned("tc", services.identity.mindId(), run.id, "key", key),
  ...{ index: 0, toolName, input },
});

const cutOff = (): ColloquyError =>
  new ColloquyError("interrupted", 'the speech broke off before its last line {"done": true}: nothing of it was said');

const lineEnd = new TextEncoder().encode("\n");
const isDone = /^\s*\{\s*"done"\s*:\s*true\s*\}\s*$/;

/** The words of a speech, from its lines. */
async function* wordsOf(reader: ReadableStreamDefaultReader<Uint8Array>): AsyncGenerator<string, void> {
  const decoder = new LineDecoder(maxStepBytes);
  for (;;) {
    const { done, value } = await reader.read().catch(() => ({ done: true, value: undefined }));
    // The last line may have no end of its own.
    const isOver = done && linesIn(decoder, lineEnd).some((text) => isDone.test(text));
    if (isOver) return;
    if (done || !value) throw cutOff();
    for (const text of linesIn(decoder, value)) {
      const line = lineOf(text);
      if ("done" in line) return;
      yield line.delta;
    }
  }
}

const notLines = (cause: unknown): ColloquyError =>
  new ColloquyError("invalid_request", 'each line of a speech is {"delta": "words"}, the last one {"done": true}', {
    cause,
  });

const linesIn = (decoder: LineDecoder, bytes: Uint8Array): string[] => {
  try {
    return decoder.push(bytes);
  } catch (error) {
    throw notLines(error);
  }
};

const lineOf = (text: string) => {
  try {
    return SpeechLine.parse(JSON.parse(text));
  } catch (error) {
    throw notLines(error);
  }
};

/** All words of a speech that may have been said before. */
const wholeOf = async (deltas: AsyncGenerator<string, void>): Promise<string> => {
  let text = "";
  for await (const delta of deltas) {
    text += delta;
    if (textBytes(text) > maxStepBytes) throw usedTwice();
  }
  return text.toWellFormed();
};

/** A run that ended by the same end before, whose answer was lost. */
const endsOf: Record<GuestEnd["kind"], RunRow["status"][]> = {
  complete: ["completed"],
  // A timeline's run that skips is completed in silence.
  skip: ["skipped", "completed"],
  fail: ["failed"],
};

const requireOver = (runtime: AgentRuntime, run: RunRow, end: GuestEnd): void => {
  if (!isActive(run) || end.kind === "fail") return;
  const { all, calls } = readRows(runtime.services.journal.ofRun(run));
  const last = all.at(-1);
  if (end.kind === "complete" && last?.meta?.kind === "reminder" && "role" in last.content) {
    throw new ColloquyError("tool_rule_broken", String(last.content.content));
  }
  const skip = calls.findLast(({ call }) => call.toolName === "skip");
  if (end.kind === "skip" && skip?.result) {
    throw new ColloquyError("skip_too_late", "skip is valid only as a run's first act: complete it instead");
  }
  requireHeld(runtime, run, end.lease);
  throw new ColloquyError("unavailable", "the run did not come to its end: try again");
};

const declared = (tools: ToolSet): Promise<DeclaredTool[]> =>
  Promise.all(
    Object.entries(tools).map(async ([name, { description, inputSchema }]) => ({
      name,
      description: String(description ?? ""),
      inputSchema: { ...(await asSchema(inputSchema).jsonSchema) },
    })),
  );

const claimedView = async (
  { services }: AgentRuntime,
  { run, composed, lease, leaseUntil }: Handed,
): Promise<ClaimedRun> => ({
  run: runView(services, run),
  events: services.inbox.rows(run.events).map(inboxView),
  input: { instructions: composed.instructions, messages: composed.messages },
  tools: await declared(composed.tools),
  lease,
  leaseUntil: isoTime(leaseUntil),
});

type GuestMethods = "claimRun" | "toolset" | "callInRun" | "speakInRun" | "endRun" | "renewClaim";
export const guestsArea: Area<GuestMethods> = {
  claimRun: async (runtime, { waitSeconds }) => {
    requireGuest(runtime);
    const { services, loop } = runtime;
    const claim = services.guests.wait();
    loop.wake();
    let handed: Handed | undefined;
    try {
      const taken = claim.handed.then((given) => {
        handed = given;
      });
      await settledWithin(waitSeconds * 1000, taken);
      if (services.guests.isSeated(claim)) await settledWithin(composeWaitMs, taken);
    } finally {
      services.guests.leave(claim);
    }
    if (handed) await faultOnceStored("guest.after-claim", services.object);
    return handed ? await claimedView(runtime, handed) : null;
  },

  toolset: async (runtime) => {
    requireGuest(runtime);
    const { services } = runtime;
    const { continuity } = services.identity.get().config;
    return declared(partsIn(services, nextWindow(services, continuity, 0)).tools);
  },

  callInRun: (runtime, runId, { name, input, key, lease }) => {
    const run = runOf(runtime, runId);
    if (textBytes(JSON.stringify(input)) > maxStepBytes) {
      throw new ColloquyError("payload_too_large", `a call's input has at most ${maxStepBytes} bytes (maxStepBytes)`);
    }
    const call = request(runtime, run, key, name, input);
    return doCall(runtime, run, lease, call, () => ({ kind: "call", call }));
  },

  speakInRun: async (runtime, runId, { key, lease }, lines) => {
    const reader = lines.getReader();
    try {
      const run = runOf(runtime, runId);
      const deltas = wordsOf(reader);
      const call = request(runtime, run, key, "send_message", {});
      const known = callIn(runtime, run, call.callId);
      const whole = known ? { ...call, input: { text: await wholeOf(deltas) } } : call;
      return await doCall(runtime, run, lease, whole, () => ({ kind: "speech", call, deltas }));
    } finally {
      reader.cancel().catch(() => undefined);
    }
  },

  endRun: async (runtime, runId, end) => {
    const run = runOf(runtime, runId);
    if (!endsOf[end.kind].includes(run.status)) {
      requireHeld(runtime, run, end.lease);
      await act(runtime, run, { kind: "end", end });
      requireOver(runtime, runOf(runtime, runId), end);
    }
    return runView(runtime.services, runOf(runtime, runId));
  },

  renewClaim: (runtime, runId, lease) => {
    const run = runOf(runtime, runId);
    requireHeld(runtime, run, lease);
    runtime.loop.wake();
    return { leaseUntil: isoTime(runtime.services.guests.renew(run.ordinal)) };
  },
};

/** How much longer a claim waits for a run that is in sight: its input is composed. */
const composeWaitMs = 5000;
