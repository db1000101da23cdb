import * as z from "zod";
import type { Message } from "../../../protocol/message.ts";
import type { RunTrigger } from "../../../protocol/run.ts";
import { isoTime } from "../../../shared/clock.ts";
import { maxPastRuns, maxRecentRuns, maxToldRuns } from "../../bounds.ts";
import type { BegunBy, Deed } from "../../context/deeds.ts";
import type { PastRun } from "../../context/timeline/past-runs.ts";
import type { JournalRow } from "../../journal.ts";
import type { KnownOrigin } from "../../records.ts";
import type { RunRow } from "../../runs.ts";
import { isUnknownOutcome } from "../../tools/outcome.ts";
import { builtinTool } from "../../tools/registry.ts";
import { broughtTool, type Tool } from "../../tools/tool.ts";
import { outputOf, type RunCall, readRows } from "../run-rows.ts";
import type { RunServices } from "../run-services.ts";

/** The agent's newest runs, and what each did, from its journal alone. */
export type GatheredRun = PastRun & { spaceIds: string[] };
export type GatheredPast = { runs: GatheredRun[]; earlier: number; unfed: number };

export const spaceNameOf = ({ spaces }: RunServices, spaceId: string | null): string | undefined =>
  spaceId === null ? undefined : spaces.get(spaceId)?.snapshot.name;

export const begunBy = (services: RunServices, { type, senderName, text, spaceId }: RunTrigger): BegunBy => ({
  ...{ type, senderName, text },
  spaceName: spaceNameOf(services, spaceId ?? null),
});

/** How a run ended, in a few words. */
const endOf = ({ status, error, endedBy }: RunRow): string => {
  if (endedBy !== null) return `${status} by ${endedBy}`;
  return error === null ? status : `${status}: ${error.code}`;
};

/** A call that said something: its input and its output. */
const Said = z.object({ text: z.string(), messageId: z.string(), waitingFor: z.array(z.string()).default([]) });

const isDone = (output: unknown): boolean => JSON.stringify(output) === '{"success":true}';

/** Whether a finished call is told: any that moves nobody, or those alone that other histories name. */
type Telling = (made: RunCall, tool: Tool | undefined) => boolean;

/** In the summary of a cycle, of which nothing else is left. */
export const anyCall: Telling = (_, tool) => tool?.movesSpace !== true;

/**
 * Between messages. A call that failed did something if its outcome is unknown, or if it went outside: that it was tried is
 * known then.
 */
const effectiveCall: Telling = (made, tool) => {
  const { showsInHistory, speaks } = tool ?? broughtTool;
  if (!(showsInHistory || speaks)) return false;
  if (!made.result?.meta.error) return true;
  return made.begunAt !== undefined && (tool === undefined || isUnknownOutcome(outputOf(made)));
};

/** What a call did. The result of one that only looks, or that says no more than that it was done, is left out. */
const deedOf = (services: RunServices, made: RunCall, isTold: Telling): Deed | undefined => {
  const { call, result } = made;
  const { toolName, input, callId } = call;
  const tool = builtinTool(toolName);
  if (!result || !isTold(made, tool)) return undefined;
  const output = outputOf(made);
  const common = { at: isoTime(result.createdAt), callId };
  const said = tool?.speaks ? Said.safeParse({ ...Object(output), ...Object(input) }).data : undefined;
  if (said) {
    const spaceName = spaceNameOf(services, services.ids.ownerOf("msg", said.messageId));
    return { kind: "sent", ...common, ...said, spaceName };
  }
  const isNews = result.meta.error || ((tool?.effect(input) ?? true) && !isDone(output));
  return { kind: "action", ...common, action: { toolName, input, ...(isNews ? { output } : {}) } };
};

export const deedsIn = (services: RunServices, rows: JournalRow[], isTold = effectiveCall): Deed[] =>
  readRows(rows)
    .calls.flatMap((made) => deedOf(services, made, isTold) ?? [])
    .sort((one, other) => one.at.localeCompare(other.at));

/** When a run ended; of one that goes on, when it began. */
const lastAt = ({ completedAt, startedAt }: RunRow): number => completedAt ?? startedAt;

/** Words of its own that confidential spaces let out: they stand beside its runs. */
const letOut = (services: RunServices): GatheredRun[] =>
  services.inbox.letOut().flatMap(({ data }): GatheredRun[] => {
    if (data.type !== "space_message") return [];
    const { id: messageId, createdAt: at, text = "", spaceId } = data.delivered.message;
    const spaceName = spaceNameOf(services, spaceId);
    const deeds: Deed[] = [{ kind: "sent", at, callId: messageId, messageId, text, spaceName, waitingFor: [] }];
    const begunBy: BegunBy = { type: "service" };
    return [{ runId: "", at, end: "", begunBy, tookOver: [], isResult: false, spaceIds: [], deeds, letOut: true }];
  });

/**
 * The newest `maxPastRuns` runs, and the last `maxRecentRuns` to end of those that waited, without this one; the last to
 * end last. The newest `maxToldRuns` that go on are among them: what they did is done. Reads no others (B4).
 */
export const gatherPast = (services: RunServices, ordinal: number): GatheredPast => {
  const newest = services.runs.page(undefined, maxPastRuns, undefined).reverse();
  const from = newest[0]?.ordinal ?? 1;
  const rested = services.runs.rested(maxRecentRuns).filter((run) => run.ordinal < from);
  const goingOn = newest.filter((run) => run.completedAt === null && run.ordinal !== ordinal).slice(-maxToldRuns);
  const others = [...rested, ...newest.filter(({ completedAt }) => completedAt !== null), ...goingOn].sort(
    (one, other) => lastAt(one) - lastAt(other) || one.ordinal - other.ordinal,
  );
  const tookOver = Map.groupBy(
    others.filter(({ status }) => status === "absorbed"),
    ({ endedBy }) => endedBy,
  );
  const journaled = services.journal.ofRuns(others, { texts: false, short: true });
  const rows = Map.groupBy(journaled, ({ runOrdinal }) => runOrdinal);
  const runs = others.map(
    (run): GatheredRun => ({
      ...{ runId: run.id, spaceIds: run.spaceIds, at: isoTime(lastAt(run)) },
      ...{ end: endOf(run), begunBy: begunBy(services, run.trigger) },
      tookOver: (tookOver.get(run.id) ?? []).map(({ trigger }) => begunBy(services, trigger)),
      isResult: run.trigger.type === "tool_result",
      deeds: deedsIn(services, rows.get(run.ordinal) ?? []),
    }),
  );
  return {
    runs: [...runs, ...letOut(services)].sort((one, other) => one.at.localeCompare(other.at)),
    earlier: from - 1 - rested.length,
    unfed: services.feed.runs()?.left ?? 0,
  };
};

/** The message of another space that the agent answered by this one. */
export const causeOf = ({ runs }: GatheredPast, { id, spaceId }: Message): KnownOrigin | undefined => {
  const run = runs.find(({ deeds }) => deeds.some((deed) => deed.kind === "sent" && deed.messageId === id));
  if (!run || run.spaceIds.includes(spaceId) || run.begunBy.type !== "space_message") return undefined;
  const { spaceName, senderName, text } = run.begunBy;
  return {
    spaceId: run.spaceIds[0] ?? "",
    ...{ sourceSpaceName: spaceName, sourceSenderName: senderName, sourceEvent: text },
  };
};

/** The deeds that stand between a space's messages: of the runs that they began, without what was said there. */
export const deedsFor = ({ ids }: RunServices, { runs }: GatheredPast, spaceId: string): Deed[] =>
  runs
    .filter((run) => run.spaceIds.includes(spaceId))
    .flatMap(({ deeds }) => deeds)
    .filter((deed) => deed.kind === "action" || ids.ownerOf("msg", deed.messageId) !== spaceId);
