import type { ModelMessage } from "ai";
import { desc, eq } from "drizzle-orm";
import type { Clock } from "../../shared/clock.ts";
import { type Database, Remembered } from "../../shared/database.ts";
import type { ComposedConfig } from "../context/agent-state.ts";
import { type Cycle, compact, keepFrom } from "../context/consciousness/compaction.ts";
import { summaryMessage } from "../context/consciousness/compose-consciousness.ts";
import { quoteLines } from "../context/grammar.ts";
import { estimateMessages, estimateText } from "../context/tokens.ts";
import { type Journal, type JournalRow, messagesOf } from "../journal.ts";
import type { HeadBlocks, ToldState, Toolset } from "../records.ts";
import type { RunRow, Runs } from "../runs.ts";
import { windows } from "../schema.ts";
import { sameToolset } from "../tools/registry.ts";
import { invocationOf, readRows, type StepRow } from "./run-rows.ts";

/**
 * The windows of inputs, and the past in them: the cycles of the agent's kept runs.
 *
 * Invariants
 * 1. Within a window the past only grows: what a model was given is never rewritten.
 * 2. A new window begins when the instructions or the tools changed, or when a compaction was due. The model is then told
 *    the whole state again. Earlier cycles stay whole or are summarised whole.
 * 3. A compaction removes nothing from the journal.
 */
export type WindowRow = typeof windows.$inferSelect;

/** A model's input at a step. */
export type StepMessages = { instructions: string; messages: ModelMessage[] };

export type OrdinalCycle = Cycle & { ordinal: number };

export type Windows = ReturnType<typeof createWindows>;

export const createWindows = (db: Database, clock: Clock, runs: Runs, journal: Journal) => {
  const newestOf = (continuity: WindowRow["continuity"]) => {
    const ofIt = () => db.select().from(windows).where(eq(windows.continuity, continuity));
    return new Remembered(() => ofIt().orderBy(desc(windows.id)).limit(1).get());
  };
  /** The newest window of each continuity. A window never changes. */
  const newest = { consciousness: newestOf("consciousness"), timeline: newestOf("timeline") };
  /** The cycles from run `from` on, as far as they were read. A cycle that is kept never changes. */
  let read: { from: number; cycles: OrdinalCycle[] } = { from: 0, cycles: [] };

  /** The instructions hold the blocks as they are now, since its first run is told the whole state. */
  const unsaved = (head: Head, window: Omit<WindowRow, "id" | "instructions" | "blocks" | "createdAt">): WindowRow => {
    const instructions = head.render(head.blocks);
    return { ...window, id: 0, instructions, blocks: head.blocks, createdAt: clock.now() };
  };

  const cyclesIn = (from: number, before: number): OrdinalCycle[] => {
    const kept = runs.kept(from, before);
    const rows = Map.groupBy(journal.ofRuns(kept), ({ runOrdinal }) => runOrdinal);
    return kept.map(({ id, ordinal }) => ({ runId: id, ordinal, messages: messagesOf(rows.get(ordinal) ?? []) }));
  };

  return {
    /**
     * The window of a run with this head and these tools; `id` is 0 if the run would begin a new one. The blocks in its
     * instructions are as they were when it began.
     */
    windowFor(head: Head, toolset: Toolset, nextOrdinal: number, continuity: WindowRow["continuity"]): WindowRow {
      const current = newest[continuity].get();
      const isSame = current?.instructions === head.render(current?.blocks ?? {});
      if (current && isSame && sameToolset(current.toolset, toolset)) return current;
      const { summary = null, firstRun = nextOrdinal } = current ?? {};
      return unsaved(head, { toolset, continuity, summary, firstRun, toldFrom: nextOrdinal });
    },

    save(window: WindowRow): WindowRow {
      if (window.id !== 0) return window;
      const { id: _, ...values } = window;
      this.forget();
      return db.insert(windows).values(values).returning().get();
    },

    /** The newest windows and their past are read anew when they are asked for next. */
    forget(): void {
      read = { from: 0, cycles: [] };
      for (const each of Object.values(newest)) each.forget();
    },

    window(id: number): WindowRow | undefined {
      const known = Object.values(newest).find((each) => each.get()?.id === id);
      return known?.get() ?? db.select().from(windows).where(eq(windows.id, id)).get();
    },

    /** The newest window of cycles; undefined before the first cycle. */
    newestWindow(): WindowRow | undefined {
      return newest.consciousness.get();
    },

    /** The state that the model was told last in this window; null if it was told none yet. */
    toldBefore(window: WindowRow, nextOrdinal: number): ToldState | null {
      const last = runs.lastKept(nextOrdinal);
      return last && last.ordinal >= window.toldFrom ? last.told : null;
    },

    /** The kept cycles from run `from` on, before run `before`, oldest first. Each is read once. */
    past(from: number, before: number): OrdinalCycle[] {
      const known = read.from === from ? read.cycles : [];
      const last = known.at(-1)?.ordinal ?? from - 1;
      if (last >= before) return known.filter(({ ordinal }) => ordinal < before);
      const cycles = [...known, ...cyclesIn(last + 1, before)];
      read = { from, cycles };
      return cycles;
    },

    /** The exact input of a run's last generated step, or null if it generated none. */
    lastInput(run: RunRow): StepMessages | null {
      const { all, steps } = readRows(journal.ofRun(run, run.journalTo ?? undefined));
      const last = steps.at(-1);
      return last ? this.inputOf(run, all, last) : null;
    },

    /** The exact input of a step, before it is adapted to the model's family. `rows` are the run's own. */
    inputOf(run: RunRow, rows: JournalRow[], { seq, meta }: StepRow): StepMessages | null {
      const window = this.window(meta.windowId);
      if (!window) return null;
      const past = this.past(meta.firstCycle, run.ordinal).flatMap(({ messages }) => messages);
      const own = messagesOf(invocationOf(rows.filter((row) => row.seq < seq)));
      return { instructions: window.instructions, messages: [...summaryMessage(window.summary), ...past, ...own] };
    },

    /** The cycles before run `before` that a compaction now would take out of the input, oldest first. */
    leaving(window: WindowRow, before: number, config: ComposedConfig, correction: number): OrdinalCycle[] {
      const past = this.past(window.firstRun, before);
      return past.slice(0, keepFrom(past, limitsFor(window, config, correction)));
    },

    /**
     * Compacts the cycles before run `before`; null if there was nothing to compact. Run `toldFrom` tells the new window's
     * state in full. If a model `refused` the input as too long, the past is halved, whatever the config allows.
     * `correction` is billed over estimated tokens; `folded` is a model's summary of the oldest of those cycles.
     */
    compact(
      window: WindowRow,
      before: number,
      toldFrom: number,
      { config, correction, head, folded = null, refused = false }: Compacting,
    ): WindowRow | null {
      const past = this.past(window.firstRun, before);
      const limits = limitsFor(window, config, correction);
      if (refused) {
        limits.keepRecent = Math.min(limits.keepRecent, Math.floor(past.length / 2));
        limits.maxTokens = past.reduce((sum, cycle) => sum + estimateMessages(cycle.messages), 0);
      }
      const { strategy } = config.context.compaction;
      const inSummary = past.filter(({ ordinal }) => ordinal <= (folded?.upTo ?? 0)).length;
      const earlier = folded ? quoteLines(folded.text) : window.summary;
      const compaction = compact(past, earlier, { strategy, ...limits }, inSummary);
      if (!compaction) return null;
      const firstRun = past[compaction.keptFrom]?.ordinal ?? before;
      return this.save(unsaved(head, { ...window, summary: compaction.summary, firstRun, toldFrom }));
    },

    /** Begins a window in which this summary, as a model wrote it, stands for all cycles up to run `upTo`. */
    beginWith(window: WindowRow, head: Head, { text, upTo }: Folded, toldFrom: number): WindowRow {
      const firstRun = runs.kept(upTo + 1, toldFrom)[0]?.ordinal ?? toldFrom;
      return this.save(unsaved(head, { ...window, summary: quoteLines(text), firstRun, toldFrom }));
    },
  };
};

/** The source of a window's instructions: the blocks in them as of now, and their rendering with any blocks. */
export type Head = { blocks: HeadBlocks; render: (blocks: HeadBlocks) => string };

/** A model's summary of the oldest cycles, up to the run with this ordinal. */
export type Folded = { text: string; upTo: number };

type Compacting = { config: ComposedConfig; correction: number; head: Head; folded?: Folded | null; refused?: boolean };

/** How many cycles may stay whole, and their tokens. */
const limitsFor = (window: WindowRow, { context }: ComposedConfig, correction: number) => {
  const { minRecentCycles, maxTokens, reservedResponseTokens, compaction } = context;
  return {
    keepRecent: compaction.keepRecent ?? minRecentCycles,
    maxTokens: (maxTokens - reservedResponseTokens) / correction - estimateText(window.instructions),
  };
};
