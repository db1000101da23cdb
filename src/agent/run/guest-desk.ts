import type { CallRequest } from "../../protocol/exported-history.ts";
import type { GuestEnd } from "../../protocol/guest.ts";
import type { Clock } from "../../shared/clock.ts";
import { ColloquyError } from "../../shared/errors.ts";
import { sameJson } from "../../shared/same-json.ts";
import { guestGoneMs, guestLeaseMs, maxGuestActs, maxGuestClaims } from "../bounds.ts";
import type { Composed } from "../context/sections.ts";
import type { RunRow } from "../runs.ts";

/**
 * Where a guest's programs wait for runs, and where their acts wait for the loops of their runs. It is memory alone: the
 * lease is in the run's row, and what was done is in the journal.
 *
 * Invariants
 * 1. A claim is handed one run at most, and none once it has left. The newest is served first: the program of an older
 *    one may be gone.
 * 2. An act is taken once, in the order in which acts came. It is over when its loop asks for the next act, or leaves the run.
 * 3. A lease runs out only while its loop waits for an act: what is executed takes its time.
 */

/** A claim gets a run, with the input of its next step. */
export type Handed = { run: RunRow; composed: Composed; lease: string; leaseUntil: number };

export type Claim = { handed: Promise<Handed>; hand(handed: Handed): void };

/** `deltas` of a speech are its words as they come. Whatever goes wrong with them is thrown. */
export type Act =
  | { kind: "call"; call: CallRequest }
  | { kind: "speech"; call: CallRequest; deltas: AsyncIterator<string> }
  | { kind: "end"; end: GuestEnd };

type Brought = Act & { over: PromiseWithResolvers<void> };

/** The place of a run that is in its loop, or of whose guest an act has come. */
type Seat = {
  claim: Claim | undefined;
  leaseUntil: number;
  acts: Brought[];
  /** The act that was taken last, until it is over. */
  taken: Brought | undefined;
  poke: PromiseWithResolvers<void>;
  /** Resolves when its loop asks for an act, or leaves the run. */
  asked: PromiseWithResolvers<void>;
};

export type GuestDesk = ReturnType<typeof createGuestDesk>;

export const createGuestDesk = (clock: Clock) => {
  const waiting: Claim[] = [];
  let seenAt = clock.now();
  /** By the ordinals of runs. */
  const seats = new Map<number, Seat>();

  const seatOf = (ordinal: number): Seat => {
    const known = seats.get(ordinal);
    if (known) return known;
    const seat: Seat = {
      ...{ claim: undefined, leaseUntil: 0, acts: [], taken: undefined },
      poke: Promise.withResolvers<void>(),
      asked: Promise.withResolvers<void>(),
    };
    seats.set(ordinal, seat);
    return seat;
  };

  const poke = (seat: Seat): void => {
    seat.poke.resolve();
    seat.poke = Promise.withResolvers<void>();
  };

  const renew = (seat: Seat): number => {
    seenAt = clock.now();
    seat.leaseUntil = seenAt + guestLeaseMs;
    poke(seat);
    return seat.leaseUntil;
  };

  const overWith = ({ taken, asked }: Seat): void => {
    taken?.over.resolve();
    asked.resolve();
  };

  return {
    /** A program waits for a run. Throws `limit_reached`. */
    wait(): Claim {
      if (waiting.length >= maxGuestClaims) {
        const message = `${maxGuestClaims} claims wait here already (maxGuestClaims): one program needs one`;
        throw new ColloquyError("limit_reached", message);
      }
      const { promise: handed, resolve: hand } = Promise.withResolvers<Handed>();
      const claim = { handed, hand };
      seenAt = clock.now();
      waiting.push(claim);
      return claim;
    },

    /** It waits no more, and is handed nothing from now on. */
    leave(claim: Claim): void {
      seenAt = clock.now();
      const place = waiting.indexOf(claim);
      if (place !== -1) waiting.splice(place, 1);
      for (const seat of seats.values()) if (seat.claim === claim) seat.claim = undefined;
    },

    /** Whether a run is in sight for it. */
    isSeated: (claim: Claim): boolean => [...seats.values()].some((seat) => seat.claim === claim),

    /** From when on its programs count as away: a while after the last sign of life. A claim that waits is one. */
    goneAt: (): number => (waiting.length > 0 || seats.size > 0 ? clock.now() : seenAt) + guestGoneMs,

    /** Whether a program waits that has no run in sight. */
    isWanted: (): boolean => waiting.length > 0,

    /** The run enters its loop. Where nobody holds it, it is for the claim that waits. */
    sit({ ordinal, lease }: RunRow): void {
      const seat = seatOf(ordinal);
      if (lease === null) seat.claim ??= waiting.pop();
    },

    /** The claim that the run is for; undefined where nobody waits. */
    claimOf(ordinal: number): Claim | undefined {
      const seat = seatOf(ordinal);
      seat.claim ??= waiting.pop();
      return seat.claim;
    },

    /** The run's loop asks for an act: whoever brought the last one has what came of it. Answers until when it waits. */
    asks(ordinal: number): number {
      const seat = seatOf(ordinal);
      overWith(seat);
      Object.assign(seat, { claim: undefined, taken: undefined, asked: Promise.withResolvers<void>() });
      return renew(seat);
    },

    /** Resolves when what is executed now in the run is over. */
    overOf: (ordinal: number): Promise<void> => seatOf(ordinal).asked.promise,

    /** The next act, if there is one. */
    take(ordinal: number): Brought | undefined {
      const seat = seatOf(ordinal);
      seat.taken = seat.acts.shift();
      return seat.taken;
    },

    /** It is given up: nothing came of it. */
    giveUp(ordinal: number, error: unknown): void {
      const seat = seatOf(ordinal);
      seat.taken?.over.reject(error);
      seat.taken = undefined;
    },

    /** Until when its holder may be silent; and what resolves when it gives a sign of life, or `look` is called. */
    watch(ordinal: number): { leaseUntil: number; sign: Promise<void> } {
      const { leaseUntil, poke: next } = seatOf(ordinal);
      return { leaseUntil, sign: next.promise };
    },

    /** The holder gave a sign of life. Answers until when it may be silent from now on. */
    renew: (ordinal: number): number => renew(seatOf(ordinal)),

    /** Until when its holder may be silent; null where the run is in no loop. */
    leaseUntil: (ordinal: number): number | null => seats.get(ordinal)?.leaseUntil ?? null,

    /**
     * Brings an act to the run's loop. `over` settles when it is over. `withdraw` takes it back if it was not taken yet, and
     * answers whether it was not. The same call again is the same act; throws `idempotency_mismatch` where it has another input.
     */
    bring(ordinal: number, act: Act): { over: Promise<void>; withdraw(): boolean } {
      const seat = seatOf(ordinal);
      const all = [...(seat.taken ? [seat.taken] : []), ...seat.acts];
      const same = all.find((one) => "call" in one && "call" in act && one.call.callId === act.call.callId);
      if (same && "call" in same && "call" in act && same.kind === act.kind) {
        if (!sameJson(same.call, act.call)) throw usedTwice();
        return { over: same.over.promise, withdraw: () => false };
      }
      if (seat.acts.length >= maxGuestActs) {
        const message = `${maxGuestActs} acts of this run wait already (maxGuestActs): wait for their answers`;
        throw new ColloquyError("limit_reached", message);
      }
      const brought: Brought = { ...act, over: Promise.withResolvers<void>() };
      // Nobody may be left to hear of it.
      brought.over.promise.catch(() => undefined);
      seat.acts.push(brought);
      renew(seat);
      const withdraw = (): boolean => {
        const place = seat.acts.indexOf(brought);
        if (place !== -1) seat.acts.splice(place, 1);
        return place !== -1;
      };
      return { over: brought.over.promise, withdraw };
    },

    /** The run has left its loop: all of its acts are over. */
    left(ordinal: number): void {
      const seat = seats.get(ordinal);
      seats.delete(ordinal);
      if (!seat) return;
      overWith(seat);
      for (const { over } of seat.acts) over.resolve();
      // It was never handed the run.
      if (seat.claim) waiting.push(seat.claim);
    },

    /** Has each loop look at its lease. */
    look(): void {
      for (const seat of seats.values()) poke(seat);
    },
  };
};

export const usedTwice = (): ColloquyError =>
  new ColloquyError("idempotency_mismatch", "this key names another call of the run: use a new one for each call");
