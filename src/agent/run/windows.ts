import type { ModelMessage } from "ai";
import { desc, eq } from "drizzle-orm";
import { type Database, Remembered } from "../../shared/database.ts";
import type { Cycle } from "../context/consciousness/compaction.ts";
import { summaryMessage } from "../context/consciousness/compose-consciousness.ts";
import { prefixReuse } from "../context/sections.ts";
import { type Journal, type JournalRow, messagesOf } from "../journal.ts";
import type { ToldState } from "../records.ts";
import type { RunRow, Runs } from "../runs.ts";
import { windows } from "../schema.ts";
import { invocationOf, readRows, type StepRow } from "./run-rows.ts";

/**
 * The windows of inputs, and the past in them: the cycles of the agent's kept runs.
 *
 * Invariants
 * 1. Within a window the past only grows: what a model was given is never rewritten, but by a redaction, once for each. `reuse`
 *    compares with the past as it is then.
 * 2. A new window begins when the instructions or the tools changed, or when a compaction was due. The model is then told
 *    the whole state again. Earlier cycles stay whole or are summarised whole.
 * 3. A compaction removes nothing from the journal.
 */
export type WindowRow = typeof windows.$inferSelect;

/** A model's input at a step. */
export type StepMessages = { instructions: string; messages: ModelMessage[] };

export type OrdinalCycle = Cycle & { ordinal: number };

export type Windows = ReturnType<typeof createWindows>;

export const createWindows = (db: Database, runs: Runs, journal: Journal) => {
  const newestOf = (continuity: WindowRow["continuity"]) => {
    const ofIt = () => db.select().from(windows).where(eq(windows.continuity, continuity));
    return new Remembered(db, () => ofIt().orderBy(desc(windows.id)).limit(1).get());
  };
  /** The newest window of each continuity. A window never changes. */
  const newest = { consciousness: newestOf("consciousness"), timeline: newestOf("timeline") };
  /** The cycles from run `from` on, as far as they were read. A cycle that is kept never changes. */
  const read = new Remembered<{ from: number; cycles: OrdinalCycle[] }>(db, () => ({ from: 0, cycles: [] }));

  return {
    save(window: WindowRow): WindowRow {
      if (window.id !== 0) return window;
      const { id: _, ...values } = window;
      newest[window.continuity].forget();
      return db.insert(windows).values(values).returning().get();
    },

    window(id: number): WindowRow | undefined {
      const known = Object.values(newest).find((each) => each.get()?.id === id);
      return known?.get() ?? db.select().from(windows).where(eq(windows.id, id)).get();
    },

    /** Undefined before the first run of this continuity. */
    newest: (continuity: WindowRow["continuity"]): WindowRow | undefined => newest[continuity].get(),

    /** The state that the model was told last in this window; null if it was told none yet. */
    toldBefore(window: WindowRow, nextOrdinal: number): ToldState | null {
      const last = runs.lastKept(nextOrdinal);
      return last && last.ordinal >= window.toldFrom ? last.told : null;
    },

    /** The kept cycles from run `from` on, before run `before`, oldest first. Each is read once. */
    past(from: number, before: number): OrdinalCycle[] {
      const held = read.get();
      const known = held.from === from ? held.cycles : [];
      const last = known.at(-1)?.ordinal ?? from - 1;
      if (last >= before) return known.filter(({ ordinal }) => ordinal < before);
      const kept = runs.kept(last + 1, before);
      const rows = Map.groupBy(journal.ofRuns(kept), ({ runOrdinal }) => runOrdinal);
      const cycles = [
        ...known,
        ...kept.map(({ id, ordinal }) => ({ runId: id, ordinal, messages: messagesOf(rows.get(ordinal) ?? []) })),
      ];
      read.set({ from, cycles });
      return cycles;
    },

    /** How much of a run's last input this later one repeats; null if it had none. */
    reuse(before: RunRow, later: StepMessages): number | null {
      const { all, steps } = readRows(journal.ofRun(before, before.journalTo ?? undefined));
      const last = steps.at(-1);
      const earlier = last ? this.inputOf(before, all, last) : null;
      return earlier && prefixReuse(earlier, later);
    },

    /** The exact input of a step, before it is adapted to the model's family. `rows` are the run's own. */
    inputOf(run: RunRow, rows: JournalRow[], { seq, meta }: StepRow): StepMessages | null {
      const window = this.window(meta.windowId);
      if (!window) return null;
      const past = this.past(meta.firstCycle, run.ordinal).flatMap(({ messages }) => messages);
      const own = messagesOf(invocationOf(rows.filter((row) => row.seq < seq)));
      return { instructions: window.instructions, messages: [...summaryMessage(window.summary), ...past, ...own] };
    },
  };
};
