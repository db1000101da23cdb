import { gte, sql } from "drizzle-orm";
import * as z from "zod";
import type { Env } from "../env/env.ts";
import type { AgentConfig } from "../protocol/agent.ts";
import type { TokensBooked } from "../protocol/agent-rpc.ts";
import type { TokensAsked, TokensLeased } from "../protocol/limits.ts";
import { type Clock, dayMs } from "../shared/clock.ts";
import { type Database, prepared, Remembered, rowsBy } from "../shared/database.ts";
import { errorKind, unwrap } from "../shared/errors.ts";
import { meter } from "../shared/meter.ts";
import type { Jobs } from "../timers/jobs.ts";
import {
  ledgerMemoryMs,
  maxCompartmentsAtOnce,
  maxLeaseMs,
  returnLeaseMs,
  spaceAnswerMs,
  usageMemoryMs,
} from "./bounds.ts";
import { askOpenMind, callWithRetry } from "./call-with-retry.ts";
import type { Identity } from "./identity.ts";
import type { Account } from "./records.ts";
import { ledger } from "./schema.ts";
import { byBusiness, reservedIn, settledIn, total } from "./tokens.ts";

/**
 * B2: tokens a day (UTC), in the agent's own object.
 *
 * Invariants
 * 1. A step starts only after its estimate was reserved and fits: spent + reserved ≤ limit at every start.
 * 2. A step's bill replaces its reservation, once. A step without an answer is billed its reservation, unless its
 *    provider refused it. A call that may have been billed is never forgotten.
 * 3. A settlement that the journal has too, or that leaves the total unchanged, is made in memory. The day's next write
 *    stores it. After a restart it follows from the journal, or the reservation counts.
 * 4. A step that would fit but for steps under way is told so: what they have booked is not spent. A lease counts as under
 *    way for `maxLeaseMs`, since its compartment may have crashed.
 * 5. Where the workspace limits tokens, all of that is within what is leased of its day (L10). What is leased grows only by
 *    the answer to the newest question, which says what the agent had.
 * 6. A step that a person pays for is in the person's account of the day too, by the same rules, in the same write. At
 *    every start one person's billed and reserved tokens are within their share, however many runs go on (C11).
 * 7. A step is also in the account of its run's space. This bounds nothing: it tells what was used where (L15).
 * 8. Accounts lie within the day's row, so that a step writes one. Where there are many, those without a step under way move
 *    out of it in that write, each into a row of its own. What is in both is added.
 */
export type Ledger = ReturnType<typeof createLedger>;

const ofDay = prepared((db) => rowsBy(db, ledger, ledger.day));
const given = sql.placeholder("rows");
const store = prepared((db) =>
  db
    .insert(ledger)
    .select(sql`select value ->> 0, value ->> 1, value ->> 2, value ->> 3 from json_each(${given}) where true`)
    .onConflictDoUpdate({
      target: ledger.day,
      set: { spent: sql`excluded.spent`, reserved: sql`excluded.reserved`, within: sql`excluded.within` },
    }),
);

/** `billedOf`: what a step was billed by the journal, by its name here; undefined if the journal does not hold it. */
export const createLedger = (
  db: Database,
  clock: Clock,
  billedOf: (step: string) => number | undefined = () => undefined,
) => {
  /** The rows of one day that were read: the day's, and those that moved out of it. Undefined where there is none. */
  const known = new Remembered<Known>(db, () => ({ day: "", rows: new Map() }));

  const dayOf = (time: number): string => new Date(time).toISOString().slice(0, 10);
  const today = (): string => dayOf(clock.now());

  /** The rows that are in memory, of this day alone. What is settled there alone follows from the journal once more. */
  const held = (day: string): Known["rows"] => {
    const { rows, day: of } = known.get();
    if (of === day && rows.size <= maxHeldRows) return rows;
    known.set({ day, rows: new Map() });
    return known.get().rows;
  };

  const rowOf = (day: string, of?: string): LedgerRow | undefined => rowAt(keyOf(day, of));
  const rowAt = (key: string): LedgerRow | undefined => {
    const rows = held(key === meteredKey ? today() : key.slice(0, 10));
    if (rows.has(key)) return rows.get(key);
    const row = ofDay(db).get({ key });
    rows.set(key, row && journaled(row));
    return rows.get(key);
  };

  /** With what the journal says that its steps were billed. */
  const journaled = (row: LedgerRow): LedgerRow =>
    Object.keys(row.reserved).reduce((known, step) => {
      const billed = billedOf(step);
      return billed === undefined ? known : settledIn(known, step, billed);
    }, row);

  const write = (rows: LedgerRow[]): void => {
    const json = JSON.stringify;
    const values = rows.map(({ day, spent, reserved, within }) => [day, spent, json(reserved), json(within)]);
    store(db).run({ rows: json(values) });
  };
  const keep = (day: string, rows: LedgerRow[]): void => {
    write(rows);
    for (const row of rows) held(day).set(row.day, row);
  };

  /** A person's two accounts of a day: the one within the day's row, and the one that moved out of it. */
  const ofPerson = (day: string, person: string) => [rowOf(day)?.within[person], rowOf(day, person)];

  /** The day's row, with others where it holds too many accounts. */
  const movedOut = (row: LedgerRow): LedgerRow[] => {
    if (Object.keys(row.within).length <= maxWithin) return [row];
    const { busy, idle } = byBusiness(row.within);
    const out = idle.map(([of, { spent }]): LedgerRow => {
      const before = rowOf(row.day, of)?.spent ?? 0;
      return { ...noRow, day: keyOf(row.day, of), spent: before + spent };
    });
    return [{ ...row, within: Object.fromEntries(busy) }, ...out];
  };

  /** Steps that were reserved since the object began, and are not settled. Of leases their names tell. */
  const begun = new Set<string>();
  /** Resolves at the next settlement. */
  let settlement = Promise.withResolvers<void>();

  /** The least that will count of this row, whatever its steps under way are billed. */
  const atLeast = (...accounts: (Account | undefined)[]): number => {
    const isUnderWay = (step: string): boolean => {
      const [, , leasedAt] = step.split(" ");
      return leasedAt === undefined ? begun.has(step) : Number(leasedAt) > clock.now() - maxLeaseMs;
    };
    const steps = accounts.flatMap((account) => Object.entries(account?.reserved ?? {}));
    return steps.reduce((sum, [step, tokens]) => sum - (isUnderWay(step) ? tokens : 0), total(...accounts));
  };

  /** Days are forgotten, and earlier the accounts of persons and spaces. */
  const forget = (): void => {
    const [first, told] = [dayOf(clock.now() - ledgerMemoryMs), dayOf(clock.now() - usageMemoryMs)];
    db.run(sql`delete from ledger where day < ${first} or (instr(day, ' ') > 0 and substr(day, 1, 10) < ${told})`);
    db.run(sql`update ledger set within = '{}' where substr(day, 1, 10) < ${told} and within <> '{}'`);
  };

  return {
    /** When today's ledger ends, in milliseconds since the epoch. */
    resetsAt: (): number => Date.parse(`${today()}T00:00:00Z`) + dayMs,

    spent: (): number => total(rowOf(today())),

    /** Whether this step's tokens are reserved today. */
    holds: (step: string): boolean => rowOf(today())?.reserved[step] !== undefined,

    /**
     * Reserves what a step may cost. False if it does not fit today's limit, or the share of the person who pays; then
     * nothing is reserved. `spaceId`: the space that the step is for.
     */
    reserve(step: string, tokens: number, limit: number, share?: Share, spaceId?: string | null): boolean {
      const day = today();
      const row = rowOf(day);
      if (!row) forget();
      const paid = share ? total(...ofPerson(day, share.person)) : 0;
      if (total(row) + tokens > limit || (share && paid + tokens > share.limit)) return false;
      const within = { ...row?.within };
      for (const of of [share?.person, spaceId]) if (of) within[of] = reservedIn(within[of] ?? noRow, step, tokens);
      keep(day, movedOut({ day, ...reservedIn(row ?? noRow, step, tokens), within }));
      begun.add(step);
      return true;
    },

    /** Why so many tokens do not fit. */
    lacks(tokens: number, limit: number, share?: Share): Exclude<TokensBooked, "reserved"> | "unleased" {
      const [row, payer] = [rowOf(today()), share ? ofPerson(today(), share.person) : []];
      if (total(row) + tokens <= limit && (!share || total(...payer) + tokens <= share.limit)) return "unleased";
      if (atLeast(row) + tokens > limit) return "day";
      if (!share || total(...payer) + tokens <= share.limit) return "day_booked";
      return atLeast(...payer) + tokens > share.limit ? "share" : "share_booked";
    },

    settlement: (): Promise<void> => settlement.promise,

    /** Tokens spent in the last days, without steps under way. `of` is a person or a space; null means the whole agent. */
    used(): { day: string; of: string | null; tokens: number }[] {
      const isRecent = gte(ledger.day, dayOf(clock.now() - usageMemoryMs));
      const rows = db.select().from(ledger).where(isRecent).orderBy(ledger.day).all();
      const accounts = rows.flatMap((stored): [key: string, Account][] => {
        const [day = "", name] = stored.day.split(" ");
        if (stored.day === meteredKey || name === ofWorkspace) return [];
        const row = (day === today() ? rowAt(stored.day) : undefined) ?? journaled(stored);
        return [
          [stored.day, row],
          ...Object.entries(row.within).map(([of, each]): [string, Account] => [keyOf(day, of), each]),
        ];
      });
      return [...Map.groupBy(accounts, ([key]) => key)].map(([key, all]) => {
        const [day = "", of = null] = key.split(" ");
        return { day, of, tokens: atLeast(...all.map(([, account]) => account)) };
      });
    },

    /** From now on its tokens are leased from the workspace's day, or no longer are. */
    meter: (isMetered: boolean): void => keep(today(), [{ ...noRow, day: meteredKey, spent: Number(isMetered) }]),

    /** The tokens that are leased for today. Undefined where the workspace has no limit. */
    leased: (): number | undefined =>
      rowAt(meteredKey)?.spent === 1 ? (rowOf(today(), ofWorkspace)?.spent ?? 0) : undefined,

    /**
     * The next question for tokens of the workspace's day, stored before it is sent. With `gives` it has no more than
     * what is booked from here on.
     */
    asks(gives: boolean): Omit<TokensAsked, "agentId" | "need"> {
      const day = today();
      const row = rowOf(day, ofWorkspace);
      const booked = total(rowOf(day));
      const held = gives ? booked : Math.max(booked, row?.spent ?? 0);
      const seq = (row?.reserved[seqKey] ?? 0) + 1;
      keep(day, [{ ...noRow, day: keyOf(day, ofWorkspace), spent: held, reserved: { [seqKey]: seq } }]);
      return { day, seq, held, booked };
    },

    /** The answer to the newest question. That to an older one is ignored. */
    answered({ day, seq }: Pick<TokensAsked, "day" | "seq">, { leased, seq: newest }: TokensLeased): void {
      const row = rowOf(day, ofWorkspace);
      if (day !== today() || row?.reserved[seqKey] !== seq) return;
      keep(day, [{ ...row, spent: leased ?? row.spent, reserved: { [seqKey]: newest } }]);
    },

    /**
     * The step was billed so many tokens, none if it was refused, on the day on which it began. `inMemory`: a restart comes to the
     * same total, or to a larger one if the step was not journaled.
     */
    settle(step: string, billed: number, inMemory = false): void {
      const holding = (row: LedgerRow | undefined) => (row?.reserved[step] === undefined ? undefined : row);
      // The row of the day before is not held in memory.
      const row = holding(rowOf(today())) ?? holding(ofDay(db).get({ key: dayOf(clock.now() - dayMs) }));
      if (row) {
        const after = settledIn(row, step, billed);
        meter.count("tokens", {}, billed);
        if (!inMemory) write([after]);
        if (row.day === today()) held(row.day).set(row.day, after);
      }
      begun.delete(step);
      settlement.resolve();
      settlement = Promise.withResolvers();
    },
  };
};

type Booking = { step: string; tokens: number; person?: string | null; spaceId?: string | null | undefined };

/**
 * Reserves a step's tokens in an agent's own ledger, within its config's limits and its lease of the workspace's day.
 */
const book = (
  ledger: Ledger,
  { maxTokensPerDay: limit, maxShareOfPerson }: AgentConfig["limits"],
  { step, tokens, person = null, spaceId }: Booking,
): TokensBooked | "unleased" => {
  const most = maxShareOfPerson < 1 ? Math.floor(limit * maxShareOfPerson) : Number.POSITIVE_INFINITY;
  const share = person === null ? undefined : { person, limit: most };
  const room = Math.min(limit, ledger.leased() ?? limit);
  return ledger.reserve(step, tokens, room, share, spaceId) ? "reserved" : ledger.lacks(tokens, limit, share);
};

/**
 * Where a mind's steps are booked: the open mind's in its own ledger. A compartment leases each step's tokens there. So
 * the agent's day and a person's share of it bound all of its minds together. The open mind books no lease after its
 * `until`. Each lease that may be booked is settled after that: what nobody heard of is given back.
 */
export type Budget = {
  /** Throws `unavailable` where the open mind cannot be reached. */
  reserve(
    step: string,
    tokens: number,
    person?: string | null,
    signal?: AbortSignal,
    spaceId?: string | null,
  ): Promise<TokensBooked>;
  /** As `Ledger.settle`. `person`: who pays, for an open mind of the last release. */
  settle(step: string, billed: number, inMemory?: boolean, person?: string): void;
  /**
   * In the open mind: reserves in its ledger, and leases more of the workspace's day where that is needed. `isBooked`: another
   * question has booked it; it throws where nobody waits for it any more.
   */
  book(booking: Booking, isBooked?: () => boolean): Promise<TokensBooked>;
};

const openMind = "the agent's open mind";
const leaseKind = "lease";
/** This job gives leased tokens that are not needed back to the workspace. */
const returnLeaseKind = "give-back";
const Billed = z.object({ billed: z.number(), person: z.string().optional() });
const never = new AbortController().signal;

export const createBudget = (
  ledger: Ledger,
  around: { identity: Identity; env: Pick<Env, "AGENT" | "WORKSPACE">; jobs: Jobs; clock: Clock; endMind: () => void },
): Budget => {
  const { identity, env, jobs, clock } = around;
  /**
   * The leases of the steps under way. Each is of one attempt: one that was cut may have been billed. A question for it
   * that had no answer may still be booked until `lateUntil`.
   */
  const leases = new Map<string, { lease: string; lateUntil: number }>();
  const settleAt = (dueAt: number, lease: string, payload: z.infer<typeof Billed>): void =>
    jobs.set({ kind: leaseKind, key: lease, dueAt: Math.max(clock.now(), dueAt), payload });
  jobs.handle(leaseKind, {
    atOnce: maxCompartmentsAtOnce,
    async run({ key: lease, payload }) {
      const { id, workspaceId, compartmentSpaceId: spaceId } = identity.get();
      const ask = () => env.AGENT.getByName(id).settleTokens(workspaceId, { lease, ...Billed.parse(payload), spaceId });
      const settled = await callWithRetry(ask, never, openMind);
      if (!settled.ok && errorKind(settled.problem.code).retryable) unwrap(settled);
      return undefined;
    },
  });
  const askWorkspace = async (tokens: number, gives = false): Promise<TokensLeased["is"]> => {
    const { id: agentId, workspaceId } = identity.get();
    const ask = async () => {
      const question = { agentId, ...ledger.asks(gives), need: gives ? 0 : ledger.spent() + tokens };
      const answer = await env.WORKSPACE.getByName(workspaceId).leaseOfDay(question);
      if (answer.ok) ledger.answered(question, answer.value);
      return answer;
    };
    return unwrap(await callWithRetry(ask, never, "the workspace")).is;
  };
  jobs.handle(returnLeaseKind, {
    atOnce: 1,
    async run() {
      if (ledger.leased() !== undefined) await askWorkspace(0, true);
      return undefined;
    },
  });
  /** One question at a time. */
  let asking: Promise<unknown> = Promise.resolve();
  const bookLeased = async (booking: Booking, isBooked = () => false): Promise<TokensBooked> => {
    for (;;) {
      if (isBooked()) return "reserved";
      const booked = book(ledger, identity.get().config.limits, booking);
      if (booked !== "unleased") return booked;
      const before = asking;
      const asked = before.then(() => askWorkspace(booking.tokens));
      asking = asked.catch(() => undefined);
      const is = await asked;
      jobs.set({ kind: returnLeaseKind, key: returnLeaseKind, dueAt: clock.now() + returnLeaseMs });
      if (is === "spent") return "workspace";
      if (is === "booked") return "day_booked";
    }
  };
  return {
    book: bookLeased,
    async reserve(step, tokens, person = null, signal = never, spaceId = null) {
      const { id, workspaceId, compartmentId, compartmentSpaceId } = identity.get();
      if (compartmentId === null) return bookLeased({ step, tokens, person, spaceId });
      // The ledger reads from it when it was asked for.
      const lease = `${compartmentId} ${step} ${clock.now()} ${crypto.randomUUID()}`;
      let [until, lateUntil] = [0, 0];
      const ask = () => {
        lateUntil = until;
        until = clock.now() + spaceAnswerMs;
        const booking = { lease, tokens, person, until, spaceId: compartmentSpaceId };
        return env.AGENT.getByName(id).leaseTokens(workspaceId, booking);
      };
      let booked: TokensBooked | undefined;
      try {
        booked = await askOpenMind(around, ask, signal);
      } finally {
        const mayBeBooked = booked === undefined || lateUntil > 0;
        if (booked === "reserved") leases.set(step, { lease, lateUntil });
        else if (mayBeBooked) settleAt(until, lease, { billed: 0, person: person ?? undefined });
      }
      return booked;
    },
    settle(step, billed, inMemory, person) {
      const known = leases.get(step);
      if (known === undefined) return ledger.settle(step, billed, inMemory);
      leases.delete(step);
      settleAt(known.lateUntil, known.lease, { billed, person });
    },
  };
};

/** The person who pays, and the tokens that one person's steps may cost today. */
type Share = { person: string; limit: number };

type LedgerRow = typeof ledger.$inferSelect;
type Known = { day: string; rows: Map<string, LedgerRow | undefined> };

/** The rows that stand beside days and persons: whether tokens are leased from the workspace, and what is of a day. */
const meteredKey = "metered";
const ofWorkspace = "workspace";
const seqKey = "seq";

/** Rows of persons and spaces that are kept in memory. */
const maxHeldRows = 1000;
/** Accounts of persons and spaces within the day's row, which each step writes. */
const maxWithin = 32;

const noRow: LedgerRow = { day: "", spent: 0, reserved: {}, within: {} };

const keyOf = (day: string, of: string | undefined): string => (of === undefined ? day : `${day} ${of}`);
