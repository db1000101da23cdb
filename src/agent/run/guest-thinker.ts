import { quoted } from "../../models/failure.ts";
import type { CallRequest } from "../../protocol/exported-history.ts";
import { claimSeconds, type GuestEnd } from "../../protocol/guest.ts";
import type { Usage } from "../../protocol/run.ts";
import { maxTextBytes, textBytes } from "../../protocol/text.ts";
import { ColloquyError } from "../../shared/errors.ts";
import { fault } from "../../shared/fault.ts";
import { settledWithin, unlessAborted, withTimeout } from "../../shared/timeouts.ts";
import type { Composed } from "../context/sections.ts";
import { continuityOf } from "./continuity/continuities.ts";
import { type Generation, usageOf } from "./generate.ts";
import type { Act } from "./guest-desk.ts";
import { readRows, type StepRow } from "./run-rows.ts";
import type { LiveRun } from "./run-services.ts";
import type { Speech } from "./speech.ts";
import type { Asked, Thinker } from "./thinker.ts";

/**
 * Thinks a run's steps by what a guest's program does in it: each of its acts is the generation of one step.
 *
 * Invariants
 * 1. The lease is stored before the claim is answered, so a crash leaves the run to who holds it, for as long as a lease
 *    lasts from then on.
 * 2. A speech that does not come to its end makes no step: its words are taken back, and nothing is journaled.
 */
export const guestModelId = "guest";

const away = (): ColloquyError =>
  new ColloquyError("guest_away", `the program that has the run gave no sign of life for ${claimSeconds} s`);

export const guestThinker = (live: LiveRun): Thinker => {
  const { services, run, signal, progressed } = live;
  const { guests, clock, journal, runs } = services;
  const { ordinal } = run;
  let unheard: unknown;
  /** Its input was read anew since the last step: by who has just claimed it. */
  let isFresh = false;

  /** Hands the run to the claim that waits for it, unless somebody holds it. */
  const hand = async (composed: Composed): Promise<void> => {
    if (run.lease !== null) return void guests.asks(ordinal);
    const claim = guests.claimOf(ordinal);
    if (!claim) {
      unheard = away();
      throw unheard;
    }
    run.lease = crypto.randomUUID();
    runs.update(ordinal, { lease: run.lease, resumeAt: null });
    isFresh = true;
    const leaseUntil = guests.asks(ordinal);
    claim.hand({ run: { ...run }, composed, lease: run.lease, leaseUntil });
  };

  const next = async () => {
    for (;;) {
      const { leaseUntil, sign } = guests.watch(ordinal);
      progressed();
      const act = guests.take(ordinal);
      if (act) return act;
      const leftMs = leaseUntil - clock.now();
      if (leftMs <= 0) throw away();
      await unlessAborted(signal, settledWithin(leftMs, sign));
    }
  };

  /** The words of a speech, each shown as it comes. */
  const hear = async (deltas: AsyncIterator<string>, speech: Speech): Promise<string> => {
    let text = "";
    speech.delta(0, '{"text":"');
    for (;;) {
      const leftMs = guests.renew(ordinal) - clock.now();
      const { done, value } = await unlessAborted(signal, withTimeout(leftMs, deltas.next()));
      progressed();
      if (done) break;
      text += value;
      if (textBytes(text) > maxTextBytes) {
        throw new ColloquyError("text_too_long", `a message holds at most ${maxTextBytes} bytes (maxTextBytes)`);
      }
      speech.delta(0, JSON.stringify(value).slice(1, -1));
      fault("agent.mid-stream", services.object);
    }
    speech.delta(0, '"}');
    return text.toWellFormed();
  };

  const skipId = (index: number): string =>
    services.ids.deriveOwned("tc", services.identity.mindId(), run.id, "skip", index);

  /** What the act says and calls. Throws what ends the run, or gives the act up. */
  const said = async (act: Act, { index, speech }: Asked): Promise<Pick<Generation, "text" | "calls">> => {
    if (act.kind === "end") return ofEnd(act.end, continuityOf(run).keepsRuns ? skipId(index) : undefined);
    const { call } = act;
    speech.begin(0, call.toolName);
    if (act.kind === "speech")
      return { text: "", calls: [{ ...call, input: { text: await hear(act.deltas, speech) } }] };
    speech.delta(0, JSON.stringify(call.input));
    return { text: "", calls: [call] };
  };

  return {
    modelId: guestModelId,
    repeatsSilence: false,
    isUnbilled: (error) => error === unheard,
    isThere: () => run.lease !== null || guests.claimOf(ordinal) !== undefined,
    async generate(asked) {
      const startedAt = clock.now();
      await hand(asked.composed);
      for (;;) {
        const act = await next();
        try {
          const { text, calls } = await said(act, asked);
          const { steps } = readRows(journal.ofRun(run));
          const read = asked.composed.tokens - (isFresh ? 0 : (steps.at(-1)?.meta.input.tokens ?? 0));
          isFresh = false;
          const estimated = usageOf({}, Math.max(0, read), text, calls);
          const usage = act.kind === "end" ? reported(act.end, estimated, steps) : estimated;
          return { text, calls, usage, durationMs: clock.now() - startedAt, finishReason: "guest" };
        } catch (error) {
          if (act.kind !== "speech" || signal.aborted) throw error;
          asked.speech.giveUp();
          guests.giveUp(ordinal, error);
        }
      }
    },
  };
};

/** A cycle is silent by the call `skip`, which has this id; any other run by ending without words. */
const ofEnd = (end: GuestEnd, skipId: string | undefined): { text: string; calls: CallRequest[] } => {
  if (end.kind === "fail")
    throw new ColloquyError("guest_failed", `The program gave up.${quoted(end.error.toWellFormed())}`);
  if (end.kind === "complete") return { text: end.summary.toWellFormed(), calls: [] };
  const reason = end.reason?.toWellFormed();
  if (skipId === undefined) return { text: reason ?? "", calls: [] };
  const input = reason === undefined ? {} : { reason };
  return { text: "", calls: [{ callId: skipId, index: 0, toolName: "skip", input }] };
};

/** The last step's usage, so that all steps have what the program reports. It never has less than the estimate. */
const reported = (end: GuestEnd, estimated: Usage, steps: StepRow[]): Usage => {
  if (end.kind !== "complete" || !end.usage) return estimated;
  const told = end.usage;
  const left = (of: "inputTokens" | "outputTokens"): number =>
    Math.max(estimated[of], told[of] - steps.reduce((sum, { meta }) => sum + meta.usage[of], 0));
  return { inputTokens: left("inputTokens"), outputTokens: left("outputTokens"), estimated: false };
};
