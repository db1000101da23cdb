import fc from "fast-check";
import { expect, test } from "vitest";
import { isSeen, type SeenMark, settle } from "../../../src/agent/spaces.ts";

/**
 * A conversation as an agent lives through it, with the marks alone. It has the space's log, what was delivered of it,
 * and what waits in the inbox. Runs side by side are shown a window of the log and end in any way.
 */
type Kind = "wakes" | "quiet";
type Run = { took: number[]; shown: number[]; shownNew: Set<number>; leftOut: number };

class Conversation {
  readonly log: Kind[] = [];
  delivered = 0;
  mark: SeenMark = { upTo: 0, beyond: [] };
  readonly pending: number[] = [];
  runs: Run[] = [];
  /** By the rule of how runs end, whatever the marks say. */
  readonly acknowledged = new Set<number>();
  readonly shownCommitted = new Set<number>();
  readonly newInCommitted = new Set<number>();
  leftOutCommitted = 0;

  readonly #window: number;

  constructor(window: number) {
    this.#window = window;
  }

  deliver(): void {
    if (this.delivered === this.log.length) return;
    this.delivered += 1;
    if (this.log[this.delivered - 1] === "wakes") this.pending.push(this.delivered);
  }

  waiting(): Set<number> {
    return new Set([...this.pending, ...this.runs.flatMap((run) => run.took)]);
  }

  /** What an input composed now would show, and which of it as `[NEW]`. */
  compose(): { shown: number[]; shownNew: Set<number>; leftOut: number } {
    const leftOut = Math.max(0, this.log.length - this.#window);
    const shown = this.log.map((_, index) => index + 1).slice(leftOut);
    const known = { deliveredTo: this.delivered, waiting: this.waiting() };
    return { shown, shownNew: new Set(shown.filter((seq) => !isSeen(this.mark, known, seq))), leftOut };
  }

  begin(): void {
    const seq = this.pending.shift();
    if (seq === undefined) return;
    const run = { took: [seq], shown: [], shownNew: new Set<number>(), leftOut: 0 };
    this.runs.push(run);
    this.show(run);
  }

  /** A run's input, its first or that after a wait. */
  show(run: Run): void {
    const input = this.compose();
    this.check(input.shownNew, input.shown);
    for (const seq of run.took.filter((each) => each > input.leftOut)) {
      if (!input.shownNew.has(seq)) throw new Error(`${seq} is not new to the run that is for it`);
    }
    run.shown = [...new Set([...run.shown, ...input.shown])];
    run.shownNew = new Set([...run.shownNew, ...input.shownNew]);
    run.leftOut = Math.max(run.leftOut, input.leftOut);
  }

  /** Each shown message is new exactly if it is so by the rule. */
  check(shownNew: Set<number>, shown: number[]): void {
    const waiting = this.waiting();
    for (const seq of shown) {
      const isDone = this.acknowledged.has(seq) || this.shownCommitted.has(seq) || seq <= this.leftOutCommitted;
      // Nobody knows whether an undelivered message waits.
      const wanted = waiting.has(seq) || seq > this.delivered || !isDone;
      if (shownNew.has(seq) !== wanted) throw new Error(`${seq} is ${wanted ? "skipped" : "new twice"}`);
    }
  }

  #end(run: Run): void {
    this.runs = this.runs.filter((each) => each !== run);
  }

  commit(run: Run): void {
    this.#end(run);
    this.mark = settle(this.mark, { acknowledged: run.took, shownTo: Math.max(0, ...run.shown) });
    for (const seq of run.took) this.acknowledged.add(seq);
    for (const seq of run.shown) this.shownCommitted.add(seq);
    for (const seq of run.shownNew) this.newInCommitted.add(seq);
    this.leftOutCommitted = Math.max(this.leftOutCommitted, run.leftOut);
  }

  cancel(run: Run): void {
    this.#end(run);
    this.mark = settle(this.mark, { acknowledged: run.took, shownTo: 0 });
    for (const seq of run.took) this.acknowledged.add(seq);
  }

  fail(run: Run): void {
    this.#end(run);
    this.pending.push(...run.took);
    this.pending.sort((one, other) => one - other);
  }

  absorb(run: Run, other: Run): void {
    if (run === other) return;
    this.#end(other);
    run.took.push(...other.took);
  }
}

const deeds = ["wakes", "quiet", "deliver", "begin", "show", "commit", "cancel", "fail", "absorb"] as const;
type Deed = { deed: (typeof deeds)[number]; which: number };

const perform = (talk: Conversation, { deed, which }: Deed): void => {
  if (deed === "wakes" || deed === "quiet") {
    talk.log.push(deed);
    return;
  }
  if (deed === "deliver" || deed === "begin") {
    talk[deed]();
    return;
  }
  const run = talk.runs[which % talk.runs.length];
  const other = talk.runs[(which + 1) % talk.runs.length];
  if (!run || !other) return;
  if (deed === "absorb") talk.absorb(run, other);
  else talk[deed](run);
};

const conversation = fc.array(fc.record({ deed: fc.constantFrom(...deeds), which: fc.nat(5) }), {
  maxLength: 60,
  size: "max",
});

test("of a random conversation nothing is [NEW] twice after commits, and nothing is skipped", () => {
  fc.assert(
    fc.property(conversation, fc.constantFrom(3, 10, 1000), (course, window) => {
      const talk = new Conversation(window);
      for (const each of course) perform(talk, each);
      // Nobody says any more; all that waits is read and answered for.
      talk.log.push("wakes");
      while (talk.delivered < talk.log.length) talk.deliver();
      while (talk.runs[0]) talk.commit(talk.runs[0]);
      while (talk.pending.length > 0) {
        talk.begin();
        if (talk.runs[0]) talk.commit(talk.runs[0]);
      }
      expect([...talk.compose().shownNew]).toEqual([]);
      for (const seq of talk.log.keys()) {
        const isDone = talk.newInCommitted.has(seq + 1) || talk.acknowledged.has(seq + 1);
        expect(isDone || seq + 1 <= talk.leftOutCommitted).toBe(true);
      }
    }),
    { numRuns: 3000, seed: 20261122 },
  );
});

test("what was acknowledged out of order is kept for as long as a window may show it", () => {
  let mark: SeenMark = { upTo: 0, beyond: [] };
  for (let seq = 1; seq <= 1000; seq += 1) mark = settle(mark, { acknowledged: [seq], shownTo: 0 });
  expect(mark.beyond).toHaveLength(200);
  expect(isSeen(mark, { deliveredTo: 1000, waiting: new Set() }, 1000)).toBe(true);
  expect(settle(mark, { acknowledged: [], shownTo: 990 })).toEqual({
    upTo: 990,
    beyond: [991, 992, 993, 994, 995, 996, 997, 998, 999, 1000],
  });
});
