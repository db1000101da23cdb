import * as z from "zod";
import { Message } from "../../protocol/message.ts";
import { RunStatus } from "../../protocol/run.ts";
import { isoTime } from "../../shared/clock.ts";
import { ColloquyError } from "../../shared/errors.ts";
import { withoutNulls } from "../../shared/without-nulls.ts";
import { maxToolOutputTokens } from "../bounds.ts";
import { spacesReadIn } from "../calls/reads.ts";
import { jsonOf } from "../context/wording.ts";
import type { JournalRow } from "../journal.ts";
import { hasEnded, isActive, type RunRow } from "../runs.ts";
import type { InboxRow } from "../schema.ts";
import { firstFitting, pageOf, sizeOf } from "../tokens.ts";
import type { ToolContext } from "../tools/tool.ts";
import { inputTokensLeft } from "./composing.ts";
import { finish } from "./finish.ts";
import { cancellation, settleOpenCalls } from "./results.ts";
import { cutOffIn, inputsIn, outputOf, type RunRows, readRows } from "./run-rows.ts";
import type { RunServices } from "./run-services.ts";

/**
 * An agent's own runs, as one of them reads, ends and absorbs them. Each is whole, with what began it and all that it
 * did, as far as a tool's result has room.
 */

const Told = Message.pick({ id: true, spaceId: true, sender: true, text: true, replyTo: true, createdAt: true });

/** An event as the model reads it whole, from the inbox or from the journal: without what only its delivery needs. */
const WholeEvent = z
  .looseObject({ type: z.string(), delivered: z.object({ message: Told }).optional() })
  .transform(({ root: _, delivered, ...event }) => ({ ...event, ...delivered }));

/**
 * The whole event that began a run. The inbox has it until the run ends, then the run's input. A consciousness' cycle
 * has only its record and its inbox lines.
 */
const wholeTrigger = (events: InboxRow[], run: RunRow, rows: JournalRow[]): object => {
  const waiting = events.find(({ eventId }) => eventId === run.trigger.eventId);
  const lines = inputsIn(rows)[0]?.lines ?? [];
  const whole = WholeEvent.safeParse(waiting?.data ?? jsonOf(lines[0] ?? ""));
  return whole.success ? whole.data : { ...run.trigger, ...(lines.length === 0 ? {} : { events: lines }) };
};

const Answer = z.object({ delivered: z.object({ message: Told }), answers: z.array(z.unknown()) });

/** The answers to its questions, as they lie in the inbox, and as its inputs told them after what began it. */
const answersTo = (events: InboxRow[], { trigger }: RunRow, rows: JournalRow[]): object[] => {
  const told = inputsIn(rows).flatMap(({ lines }) => lines.slice(1).map(jsonOf));
  const held = events.flatMap(({ eventId, data }) => (eventId === trigger.eventId ? [] : [data]));
  const answers = [...told, ...held].flatMap((each) => Answer.safeParse(each).data?.delivered.message ?? []);
  const each = new Map(answers.map(({ id, sender, text }) => [id, { from: sender.name, messageId: id, text }]));
  return [...each.values()];
};

/** All that a run called, oldest first. A call without an output goes on. */
const actionsIn = ({ calls }: RunRows): { toolName: string; input: unknown; output?: unknown }[] =>
  calls
    .filter(({ begunAt, result }) => result || begunAt !== undefined)
    .map((made) => {
      const { toolName, input } = made.call;
      return { toolName, input, ...(made.result ? { output: outputOf(made) } : { status: "under way" }) };
    });

type WholeRun = ReturnType<typeof wholeRun>;

const wholeRun = (services: RunServices, run: RunRow, rows: JournalRow[]) => {
  const { outcome, reason, error, endedBy } = run;
  const notes = cutOffIn(rows);
  const events = services.inbox.rows(run.events);
  const answers = answersTo(events, run, rows);
  const absorbed = services.runs.absorbedBy(run.id).map(({ id }) => id);
  return {
    ...{ runId: run.id, status: run.status, trigger: wholeTrigger(events, run, rows) },
    ...(answers.length === 0 ? {} : { answers }),
    actions: actionsIn(readRows(rows)),
    ...(notes.length === 0 ? {} : { notes }),
    ...withoutNulls({ outcome, reason, error, endedBy }),
    ...(absorbed.length === 0 ? {} : { absorbed }),
    startedAt: isoTime(run.startedAt),
    ...(run.completedAt === null ? {} : { completedAt: isoTime(run.completedAt) }),
  };
};

/** The spaces whose messages are told with a run: those of its events, and those that it read. */
const spacesTold = (run: RunRow, rows: JournalRow[]): string[] => [...run.spaceIds, ...spacesReadIn(rows)];

/** Where a run's reader has come to: in its calls, from the newest to the oldest, and in the values that were cut. */
type Place = { actionsBefore?: number | undefined; offset: number };

/** A value that fills so much at most: where there is too much, the part of its text that begins at `offset`. */
const partOf = (value: unknown, room: number, { actionsBefore, offset }: Place): unknown => {
  if (sizeOf(value) <= room) return value;
  const text = typeof value === "string" ? value : JSON.stringify(value);
  const part = pageOf(text.slice(offset), room, sizeOf);
  const end = offset + part.length;
  const place = actionsBefore === undefined ? "runId" : `runId, actionsBefore: ${actionsBefore}`;
  const more = end < text.length ? `: ask with ${place} and offset: ${end}` : "";
  return { part, note: `characters ${offset} to ${end} of ${text.length}${more}` };
};

const eachValue = (values: object, room: number, place: Place): object =>
  Object.fromEntries(Object.entries(values).map(([name, value]) => [name, partOf(value, room, place)]));

/** Tokens for a run's frame, or for a note about what is left out. */
const frameTokens = 200;
const leastOfValue = 20;

/**
 * A run that fills `most` at most. The answers to its questions get a quarter of that at most. Its trigger gets half of
 * the rest, or what its calls leave. Each call's input and answer are cut to what is left for each; then the oldest are
 * counted. Whoever pages back through its calls has been told the rest, and gets at least one call. With none, the same
 * page would come for ever.
 */
const fittedRun = <Run extends WholeRun>(whole: Run, most: number, place: Place): Run => {
  const isPaged = place.actionsBefore !== undefined;
  const actions = whole.actions.slice(0, place.actionsBefore);
  const run = {
    ...whole,
    actions,
    ...(isPaged ? { trigger: { omitted: "ask without actionsBefore" }, answers: [] } : {}),
  };
  if (sizeOf(run) <= most) return run;
  const { answers = [] } = run;
  const perAnswer = Math.max(leastOfValue, most / 4 / Math.max(1, answers.length));
  const told = answers.map((each) => eachValue(each, perAnswer, place));
  const room = Math.max(0, most - frameTokens - sizeOf(told));
  const ofTrigger = Math.max(leastOfValue, room / 2, room - sizeOf(run.actions));
  const trigger = eachValue(run.trigger, ofTrigger, place);
  const left = room - sizeOf(trigger);
  const perValue = Math.max(leastOfValue, left / Math.max(1, run.actions.length) / 2);
  const cut = run.actions.map(({ toolName, ...values }) => ({ toolName, ...eachValue(values, perValue, place) }));
  const fitting = firstFitting(cut.toReversed(), left, sizeOf).toReversed();
  const newest = isPaged && fitting.length === 0 ? cut.slice(-1) : fitting;
  const older = cut.length - newest.length;
  return {
    ...run,
    trigger,
    ...(answers.length === 0 ? {} : { answers: told }),
    actions: newest,
    ...(older === 0
      ? {}
      : { omitted: `${older} earlier actions do not fit: get_my_runs with runId and actionsBefore: ${older}` }),
  };
};

/** The tokens that a result may fill now. */
const roomIn = (services: RunServices, self: RunRow): number =>
  Math.min(maxToolOutputTokens, inputTokensLeft(services, self)) - frameTokens;

/** A page of the agent's runs, newest first, as far as it fits. */
const list = (
  services: RunServices,
  self: RunRow,
  { status, limit, before, runId, actionsBefore, offset }: Parameters<ToolContext["runs"]["list"]>[0],
) => {
  const { runs, journal } = services;
  const wanted = status === undefined ? undefined : RunStatus.safeParse(status);
  if (wanted && !wanted.success) {
    throw new ColloquyError("tool_input_invalid", `status must be one of ${RunStatus.options.join(", ")}`);
  }
  const known = (id: string): RunRow => {
    const run = runs.get(id);
    if (!run) throw new ColloquyError("not_found", "you have no such run; get_my_runs without an id lists yours");
    return run;
  };
  const from = before === undefined ? undefined : known(before).ordinal;
  const page = runId === undefined ? runs.page(from, limit + 1, wanted?.data) : [known(runId)];
  const shown: WholeRun[] = [];
  const reads = new Set<string>();
  let room = roomIn(services, self);
  // The journal of a run is read only while those before it fit (B4).
  for (const run of page.slice(0, limit)) {
    const rows = journal.ofRuns([run], { texts: false });
    const whole = wholeRun(services, run, rows);
    const told = {
      ...(shown.length === 0 ? fittedRun(whole, room, { actionsBefore, offset }) : whole),
      thisRun: run.ordinal === self.ordinal,
    };
    room -= sizeOf(told);
    if (room < 0 && shown.length > 0) break;
    shown.push(told);
    for (const spaceId of spacesTold(run, rows)) reads.add(spaceId);
  }
  const isAll = shown.length === page.length;
  return {
    runs: shown,
    reads: [...reads],
    ...(isAll ? {} : { omitted: `older runs are left out: ask with before: ${shown.at(-1)?.runId}` }),
  };
};

/** Finds the input for `get_my_runs` with which the told run `holds` something; undefined where none does. */
export const askingFor = (services: RunServices, run: RunRow, holds: (told: WholeRun) => boolean) => {
  const whole = wholeRun(services, run, services.journal.ofRuns([run], { texts: false }));
  let actionsBefore: number | undefined;
  for (let left = whole.actions.length; ; actionsBefore = left) {
    const told = fittedRun(whole, maxToolOutputTokens - frameTokens, { actionsBefore, offset: 0 });
    if (holds(told)) return { runId: run.id, ...(actionsBefore === undefined ? {} : { actionsBefore }) };
    left -= told.actions.length;
    if (left === 0) return undefined;
  }
};

/**
 * Ends the agent's other run that a call names. The first caller wins: a run that has ended is refused, unless this very
 * run ended it so (a replay). The events of an absorbed run join this one's.
 */
const endOther = (services: RunServices, self: RunRow, runId: string, kind: "canceled" | "absorbed"): RunRow => {
  const now = services.runs.at(self.ordinal);
  // A run that was ended by another may end none: the events that it took over would have no owner.
  if (!now || !isActive(now)) throw new ColloquyError("run_canceled", "this run has ended");
  const other = services.runs.get(runId);
  if (!other) throw new ColloquyError("not_found", "you have no such run; get_my_runs lists yours");
  if (other.ordinal === self.ordinal) throw new ColloquyError("conflict", "that is this run; just end instead");
  if (other.status === kind && other.endedBy === self.id) return other;
  if (!isActive(other)) throw hasEnded(other, `get_my_runs with runId ${other.id}`);
  services.transaction(() => {
    const ended = finish(services, other, { kind, by: self.id });
    // They are acknowledged, or given back, with this run.
    if (kind === "absorbed")
      services.runs.update(self.ordinal, { events: [...new Set([...now.events, ...ended.events])] });
  });
  return other;
};

/** Stops the loop of a run that was ended, and settles its calls: those under way have an unknown outcome. Answers it whole. */
const settleEnded = async (
  services: RunServices,
  self: RunRow,
  { id }: RunRow,
  why: string,
): Promise<{ run: WholeRun; reads: string[] }> => {
  await services.stopRun(id, why);
  const run = services.runs.get(id);
  if (!run) throw new Error(`run ${id} is gone`);
  settleOpenCalls(services, run, cancellation, true);
  const rows = services.journal.ofRun(run);
  return {
    run: fittedRun(wholeRun(services, run, rows), roomIn(services, self), { offset: 0 }),
    reads: spacesTold(run, rows),
  };
};

export const ownRuns = (services: RunServices, self: RunRow): ToolContext["runs"] => ({
  list: (asked) => list(services, self, asked),
  stop: async (runId) => {
    const ended = endOther(services, self, runId, "canceled");
    await settleEnded(services, self, ended, "another run of the agent stopped it");
  },
  absorb: async (runId) => {
    const ended = endOther(services, self, runId, "absorbed");
    return settleEnded(services, self, ended, "another run of the agent absorbed it");
  },
});
