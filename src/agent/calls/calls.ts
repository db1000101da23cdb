import { and, asc, eq, inArray, lte, max, min, not, or, type SQL, sql } from "drizzle-orm";
import type { AgentConfig } from "../../protocol/agent.ts";
import type { ToolCallOutcome } from "../../protocol/rpc.ts";
import type { ToolConfig } from "../../protocol/tool.ts";
import type { Clock } from "../../shared/clock.ts";
import { among, countOf, type Database, prepared, Remembered, rowsBy } from "../../shared/database.ts";
import { ColloquyError, type ErrorCode } from "../../shared/errors.ts";
import type { Crashable } from "../../shared/fault.ts";
import { sameJson } from "../../shared/same-json.ts";
import type { Timers } from "../../timers/timers.ts";
import { answeredMemoryMs, lateAnswerMs, maxOpenCalls, watchdogMs } from "../bounds.ts";
import type { Journal } from "../journal.ts";
import type { CallOutcome } from "../records.ts";
import { loggedRun, type Runs } from "../runs.ts";
import { type CallRow, calls } from "../schema.ts";
import { changedSinceApproval, failed, outcomeOf, unknownInWords } from "../tools/outcome.ts";
import { builtinTool } from "../tools/registry.ts";
import type { ToolServices } from "../tools/tool.ts";
import { lookAt, serverDueAt } from "./due.ts";

/**
 * Tool calls that are more than a step of their run.
 *
 * Invariants
 * 1. A call has its row since the transaction that journaled its begin. A cut call is told from one that never began.
 * 2. The first outcome wins; a call that is `done` never changes again.
 * 3. While a row asks for an action the timer `calls` is due, so that a crash anywhere is followed by it (R1).
 */

/** The columns that are empty when a call begins. */
const blank = {
  ...{ outcome: null, approval: null, told: null, lease: null, keptUntil: null },
  ...{ pushed: false, listed: false, failures: 0 },
} as const;

export type NewCall = Omit<CallRow, keyof typeof blank | "lookAt" | "createdAt">;
type Changes = Partial<Omit<CallRow, "callId" | "createdAt">>;

export const callsTimer = "calls";

/** Phases of a call without an outcome: people, a server or the object itself still work on it. */
const open = ["asked", "ready", "running", "out", "late"] as const;
const isOpen = ({ phase }: CallRow): boolean => (open as readonly string[]).includes(phase);
const isOpenRow = inArray(calls.phase, [...open]);

/** It is to be executed, or sent to its server. */
const asksServer = sql`(${calls.phase} in ('ready', 'running') or (${calls.phase} in ('out', 'late') and not ${calls.pushed}
  and json_extract(${calls.tool}, '$.execution') is not null))`;

export type Calls = ReturnType<typeof createCalls>;

const one = prepared((db) => rowsBy(db, calls, calls.callId));
const allOfRun = prepared((db) => rowsBy(db, calls, calls.runOrdinal));

/** `clean` removes words that are being taken out. A server may quote them. */
export const createCalls = (db: Database, clock: Clock, timers: Timers, clean: <Value>(value: Value) => Value) => {
  /** Whether there are none, as most agents never have any. */
  const none = new Remembered(db, () => db.get(sql`select 1 from ${calls} limit 1`) === undefined);

  /** Ordinals of runs, oldest first. They are no more than `maxOpenCalls`. */
  const runsWhose = (where: SQL | undefined): number[] => {
    const found = db.selectDistinct({ ordinal: calls.runOrdinal }).from(calls).where(where);
    return found
      .orderBy(asc(calls.runOrdinal))
      .all()
      .map(({ ordinal }) => ordinal);
  };

  /** Work that is due is done at once. The timer makes up for it after a crash. */
  const alarmFor = (at: number): number => {
    const now = clock.now();
    return at <= now ? now + watchdogMs : at;
  };

  /** The row with the time at which it is looked at next, for which the timer is set. */
  const timed = (row: CallRow, at = lookAt(row, clock.now())): CallRow => {
    if (at !== null) timers.setNoLater(callsTimer, alarmFor(at));
    return { ...row, lookAt: at };
  };

  return {
    clean,

    get: (callId: string): CallRow | undefined => (none.get() ? undefined : one(db).get({ key: callId })),

    ofRun: (runOrdinal: number): CallRow[] => (none.get() ? [] : allOfRun(db).all({ key: runOrdinal })),

    /** In the transaction that journals the call as begun. One person's open calls stay within their share (C12). */
    begin(call: NewCall, { maxShareOfPerson }: Pick<AgentConfig["limits"], "maxShareOfPerson">): CallRow {
      const open = countOf(db, calls, isOpenRow);
      const share = Math.ceil(maxOpenCalls * maxShareOfPerson);
      const isTheirs = sql`${calls.root} ->> '$.by' = ${call.root.by ?? null}`;
      const isFull = open >= maxOpenCalls;
      if (isFull || (open >= share && countOf(db, calls, and(isOpenRow, isTheirs)) >= share)) {
        const most = isFull ? "(maxOpenCalls)" : "because of one person (maxOpenCalls, maxShareOfPerson)";
        const message = `${isFull ? maxOpenCalls : share} calls wait already ${most}: some must end first`;
        throw new ColloquyError("limit_reached", message);
      }
      none.forget();
      const row = timed({ ...blank, ...call, lookAt: null, createdAt: clock.now() });
      db.insert(calls).values(row).run();
      return row;
    },

    /** How many of them people or servers have, or run beside the agent's runs. */
    waiting: (): number => (none.get() ? 0 : countOf(db, calls, isOpenRow)),

    /** `lookAt` is set where an action failed: it is tried again then. */
    change(callId: string, changes: Changes): CallRow | undefined {
      const known = this.get(callId);
      const row = known && timed({ ...known, ...changes }, changes.lookAt);
      const isIt = eq(calls.callId, callId);
      if (row)
        db.update(calls)
          .set({ ...changes, lookAt: row.lookAt })
          .where(isIt)
          .run();
      return row;
    },

    /** A call that may run now does: here, or with a server from now on. Of other arguments than were approved nothing does. */
    beginExecution(row: CallRow): CallRow {
      const changed = changedSinceApproval(row);
      if (changed) return this.settle(row.callId, changed) ?? row;
      const isOutside = row.tool.executionType === "external";
      const out = { phase: "out", dueAt: serverDueAt(row, clock.now()) } as const;
      return this.change(row.callId, isOutside ? out : { phase: "running" }) ?? row;
    },

    /** Whether people or a server have it, and a run waits for that. */
    isAwaited(callId: string): boolean {
      const row = this.get(callId);
      return row !== undefined && isAwaited(row, clock.now());
    },

    /** Ordinals of the runs that can go on, oldest first: with an answer, or because nobody gave one in time. */
    heard(): number[] {
      if (none.get()) return [];
      const late = and(eq(calls.phase, "out"), lte(calls.dueAt, clock.now()));
      const known = inArray(calls.phase, ["ready", "answered"]);
      return runsWhose(and(eq(calls.attached, true), or(known, late)));
    },

    /** Ordinals of the runs that wait for their calls, oldest first. */
    waitingRuns(): number[] {
      if (none.get()) return [];
      const waits = and(eq(calls.attached, true), inArray(calls.phase, ["asked", "ready", "out", "answered"]));
      return runsWhose(waits);
    },

    /** Whether the run waits for any of its calls. */
    holds(runOrdinal: number): boolean {
      return this.ofRun(runOrdinal).some((row) => isAwaited(row, clock.now()));
    },

    /** When the next run has waited long enough for all of its calls, in milliseconds since the epoch; people take theirs. */
    nextDueAt(): number | undefined {
      if (none.get()) return undefined;
      const runs = db
        .select({ at: max(calls.dueAt) })
        .from(calls)
        .where(and(eq(calls.attached, true), inArray(calls.phase, ["asked", "out"])))
        .groupBy(calls.runOrdinal)
        .having(sql`max(${calls.phase} = 'asked') = 0`)
        .all();
      const times = runs.flatMap(({ at }) => at ?? []);
      return times.length === 0 ? undefined : Math.min(...times);
    },

    /** Takes what people decided. A call whose tool `config` changed meanwhile ends. Answers whether it was awaited. */
    decided(decision: ToolCallOutcome, config: Pick<AgentConfig, "tools">): boolean {
      const row = this.get(decision.toolCallId);
      if (row?.phase !== "asked") return false;
      const changed = ["approved", "answered"].includes(decision.outcome) && toolChanged(row, decision, config.tools);
      if (changed) return this.settle(row.callId, changed, "running") !== undefined;
      const by = decision.by.map(({ name }) => name);
      // No person began this chain: the first who answered pays for the rest of it.
      if (row.root.by === undefined) this.change(row.callId, { root: { ...row.root, by: decision.by[0]?.id } });
      if (decision.outcome === "approved") {
        const notes = decision.by.flatMap(({ note }) => note ?? []);
        // A decision that does not say what was approved fits no arguments.
        const ids = decision.by.map(({ id }) => id);
        const approval = { by, ids, notes, inputHash: decision.inputHash ?? "", at: clock.now() };
        this.change(row.callId, { phase: "ready", approval, told: "running" });
        return true;
      }
      const outcome = outcomeOf(decision);
      this.settle(row.callId, outcome, outcome.status);
      return true;
    },

    /** Its outcome is known. Nothing comes of it where it was known before. `told`: what its space shows, if that is known. */
    settle(callId: string, outcome: CallOutcome, told?: CallRow["told"]): CallRow | undefined {
      const row = this.get(callId);
      if (!row || !isOpen(row)) return undefined;
      return this.change(callId, { phase: "answered", outcome: clean(outcome), lease: null, told: told ?? row.told });
    },

    /** The model has what came of it. Belongs in the transaction that gives it. */
    handedOver(row: CallRow): void {
      this.change(row.callId, { phase: "done", keptUntil: keptUntil(row, clock.now()) });
    },

    /** The run that waited for it goes on. Belongs in the transaction that gives it what came of the call. */
    given(callId: string): void {
      const row = this.get(callId);
      if (!row?.attached) return;
      if (row.phase === "answered") this.handedOver(row);
      // A server may still answer what its run waits for no longer.
      if (row.phase === "out") {
        this.change(callId, { phase: "late", attached: false, dueAt: clock.now() + lateAnswerMs });
      }
    },

    /**
     * The run has ended. Its attached calls are done; with `all`, those in the background too (R5). Answers the latter: the
     * model knows them as pending.
     */
    endOf(runOrdinal: number, all: boolean): CallRow[] {
      const cutOff: CallRow[] = [];
      for (const row of this.ofRun(runOrdinal)) {
        if (row.phase === "done" || !(all || row.attached)) continue;
        const outcome = row.outcome ?? canceledWithRun(row);
        this.change(row.callId, { phase: "done", outcome, keptUntil: keptUntil(row, clock.now()) });
        if (!row.attached && row.phase !== "late") cutOff.push({ ...row, outcome });
      }
      return cutOff;
    },

    /** A space canceled the agent's calls of this phase, which end here. Answers whether there were any. */
    canceledIn(spaceId: string, phase: "asked" | "ready", code: ErrorCode, why: string): boolean {
      const isCanceled = and(eq(calls.spaceId, spaceId), eq(calls.phase, phase));
      const canceled = db.select().from(calls).where(isCanceled).all();
      const outcome = failed("canceled", code, why);
      for (const { callId } of canceled) this.settle(callId, outcome, outcome.status);
      return canceled.length > 0;
    },

    /** The agent left that space, which canceled its calls. Those that ask people, or were not begun, end here. */
    left(spaceId: string): void {
      const gone = "you are in that space no more";
      this.canceledIn(spaceId, "asked", "not_a_member", `${gone}, so nobody there can answer`);
      this.canceledIn(spaceId, "ready", "not_a_member", `${gone}, which canceled it before it began`);
    },

    /** Calls whose action is due, longest waiting first, nobody's second before another's first, `live` ones first of theirs (C12). `slow` picks those that ask servers, or all others. */
    due(slow: boolean, limit: number, live: string[]): CallRow[] {
      if (none.get()) return [];
      const isLive = among(calls.callId, live);
      const turn = sql`row_number() over (partition by ${calls.root} ->> '$.by' order by ${isLive} desc, ${calls.lookAt})`;
      return db
        .select()
        .from(calls)
        .where(and(lte(calls.lookAt, clock.now()), slow ? asksServer : not(asksServer)))
        .orderBy(turn, asc(calls.lookAt))
        .limit(limit)
        .all();
    },

    /** Calls that may stand in the workspace's list of waiting calls. */
    listed(): CallRow[] {
      const mayStand = or(eq(calls.listed, true), inArray(calls.phase, ["out", "late"]));
      return none.get() ? [] : db.select().from(calls).where(mayStand).all();
    },

    forget(callId: string): void {
      none.forget();
      db.delete(calls).where(eq(calls.callId, callId)).run();
    },

    /** The workspace goes on after a suspension, in which no server could answer: each has its time anew. */
    prolong(): void {
      for (const row of db
        .select()
        .from(calls)
        .where(among(calls.phase, ["out", "late"]))
        .all()) {
        this.change(row.callId, { dueAt: serverDueAt(row, clock.now()) });
      }
    },

    /** After an action: the timer is set for the next one, or put away. */
    rearm(): void {
      const next = db.select({ at: min(calls.lookAt) }).from(calls);
      const at = next.get()?.at;
      if (at == null) timers.clear(callsTimer);
      else timers.set(callsTimer, alarmFor(at));
    },
  };
};

/** An approval holds whatever its tool says in these fields by then. */
const untold = { description: "", visible: true, async: false, timeoutMs: 0, idempotent: false };

/** Why an approved or answered call is not done: its tool is gone, goes elsewhere, or asks others. A built-in one looks by itself. */
const toolChanged = ({ tool }: CallRow, { by }: ToolCallOutcome, tools: ToolConfig[]): CallOutcome | undefined => {
  const isSame = (now: ToolConfig): boolean =>
    now.executionType === "space" && tool.executionType === "space"
      ? now.name === tool.name && by.every(({ id }) => now.answer.by?.includes(id) ?? true)
      : sameJson({ ...now, ...untold }, { ...tool, ...untold });
  if (builtinTool(tool.name) || tools.some(isSame)) return undefined;
  const message = `not done, the tool ${tool.name} was changed or taken away since people were asked: ask again if you have it`;
  return failed("error", "approval_changed", message);
};

/** A server that comes back to it is told how it stands. */
const keptUntil = ({ tool }: CallRow, now: number): number =>
  tool.executionType === "external" ? now + answeredMemoryMs : 0;

/** A call that was begun may have taken effect (R3). */
const canceledWithRun = ({ phase }: CallRow): CallOutcome => {
  const why = "the run that made this call has ended";
  if (phase === "asked" || phase === "ready") return failed("canceled", "run_canceled", why);
  return failed("canceled", "outcome_unknown", unknownInWords(why));
};

const isAwaited = (row: CallRow, now: number): boolean =>
  row.attached && (row.phase === "asked" || (row.phase === "out" && (row.dueAt ?? 0) > now));

/** The services of the modules that make calls and have them answered. */
export type CallServices = ToolServices & {
  calls: Calls;
  runs: Runs;
  journal: Journal;
  /** Runs `work` in one SQLite transaction: all of it or nothing is stored. */
  transaction<T>(work: () => T): T;
  /** Whether this is the compartment of a space that the agent has left, or that is gone: nothing wakes it (C18). */
  isClosed(): boolean;
  /** Whether the workspace is suspended: then this mind is closed too, and no run goes on. */
  isSuspended(): boolean;
  /** Sets the watchdog's timer: the loop has work. Belongs in the transaction that stores it. */
  armLoop(): void;
  /** The object itself, for fault points. */
  object: Crashable;
};

/** When it was begun, or let run by people: a replay knows it too. */
export const begunAt = ({ approval, createdAt }: CallRow): number => approval?.at ?? createdAt;

/** The ids of a call for a log line, and of its run as long as that is known. */
export const loggedCall = (services: CallServices, { callId, runOrdinal }: CallRow) => {
  const run = services.runs.at(runOrdinal);
  return { ...(run ? loggedRun(services, run) : { agentId: services.identity.get().id }), callId };
};
