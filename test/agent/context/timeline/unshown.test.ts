import fc from "fast-check";
import { expect, test } from "vitest";
import { type HistoryEntry, showHistory } from "../../../../src/agent/context/timeline/history.ts";
import {
  accountOf,
  summaryWanted,
  unshownLine,
  type WindowConfig,
  windowSize,
} from "../../../../src/agent/context/timeline/unshown.ts";
import { husam, said, seen } from "../cast.ts";

const space = { id: "spc_ALPHA", name: "Alpha" };
const entry = (place: number, length: number): HistoryEntry =>
  seen(said(`${place}`, "14:50", husam, `${place} ${"word ".repeat(length)}`));

/** A space as it grows, with the window and the summary that an agent has of it. */
type Step = { posts: number; length: number; folds: number };
const life = fc.record({
  historyMessages: fc.integer({ min: 1, max: 8 }),
  chunkSize: fc.option(fc.integer({ min: 2, max: 6 })),
  /** Messages from before the agent came, which no summary goes back to. */
  past: fc.integer({ min: 0, max: 30 }),
  backlog: fc.integer({ min: 6, max: 20 }),
  tokens: fc.integer({ min: 40, max: 2000 }),
  steps: fc.array(
    fc.record<Step>({
      posts: fc.integer({ min: 0, max: 9 }),
      length: fc.integer({ min: 0, max: 60 }),
      folds: fc.integer({ min: 0, max: 4 }),
    }),
    { minLength: 1, maxLength: 12 },
  ),
});

const counts = (text: string): { earlier: number; summarized: number; older: number; between: number } => {
  const line = text.split("\n").find((each) => each.includes("earlier messages are not shown")) ?? "";
  const [, earlier = "0", why = ""] = /\((\d+) earlier messages are not shown: (.*); read_messages/.exec(line) ?? [];
  const parts = why.split(", ").filter(Boolean);
  const of = (what: RegExp): number => {
    const part = parts.find((each) => what.test(each));
    if (part === undefined) return 0;
    return parts.length === 1 ? Number(earlier) : Number.parseInt(part, 10);
  };
  return {
    earlier: Number(earlier),
    summarized: of(/summarized below/),
    older: of(/from before the summary/),
    between: of(/beyond context\.|not summarized yet/),
  };
};

test("[K7] each message of a space is in the window, in its summary, or counted with the reason", () => {
  fc.assert(
    fc.property(life, ({ historyMessages, chunkSize, past, backlog, tokens, steps }) => {
      const config: WindowConfig = { historyMessages, chunkSize };
      const lengths = Array.from({ length: past }, () => 1);
      let row: { base: number; upTo: number } | undefined;
      for (const { posts, length, folds } of steps) {
        lengths.push(...Array.from({ length: posts }, () => length));
        const total = lengths.length;
        const summary = row && row.upTo > row.base ? { messages: row.upTo - row.base, upTo: row.upTo } : undefined;
        const size = windowSize({ total, summary }, config);
        const entries = lengths.map((each, index) => entry(index + 1, each)).slice(total - size);
        const history = { space, entries, total, summary: summary && { ...summary, text: "It went well." } };
        const bounds = { newest: historyMessages, tokens, rule: "historyTokens", asTurns: false } as const;
        const { section, unshown } = showHistory(
          history,
          { agentId: "", triggerId: null, replyIds: new Set() },
          bounds,
        );

        const shown = [...section.text.matchAll(/\[msg_(\d+)\]/g)].map(([, place]) => Number(place));
        const told = counts(section.text);
        // The window is the newest messages, and one line counts all the others by what stands for them.
        expect(shown).toEqual(Array.from({ length: shown.length }, (_, index) => total - shown.length + index + 1));
        expect(told.earlier + shown.length).toBe(total);
        expect(told.summarized + told.older + told.between).toBe(told.earlier);
        const start = total - shown.length;
        expect(told.summarized).toBe(summary ? Math.min(start, summary.upTo) - Math.min(start, row?.base ?? 0) : 0);
        // Nothing lies between summary and window but what does not fit, or waits for a model that fails.
        const fits = shown.length === size;
        const behind = total - (summary?.upTo ?? 0);
        if (chunkSize !== null && fits && behind <= historyMessages + 2 * chunkSize) expect(told.between).toBe(0);

        if (chunkSize === null) continue;
        const from = Math.max(0, unshown.messages - backlog);
        const wanted = summaryWanted(unshown, row?.upTo ?? from, chunkSize);
        if (wanted === null) continue;
        expect(wanted).toBeLessThanOrEqual(total);
        row ??= { base: from, upTo: from };
        for (let fold = 0; fold < folds && wanted - row.upTo >= chunkSize; fold += 1) row.upTo += chunkSize;
      }
    }),
    { numRuns: 1000 },
  );
});

test("[K7] a window that tokens cut has its summary folded one chunk ahead", () => {
  // Three of the five newest messages fit.
  expect(accountOf({ total: 13, summary: { messages: 8, upTo: 8 } }, 3)).toMatchObject({ summarized: 8, between: 2 });
  expect(summaryWanted({ total: 13, messages: 10, between: 2 }, 8, 4)).toBe(12);
  expect(accountOf({ total: 13, summary: { messages: 12, upTo: 12 } }, 3)).toMatchObject({ between: 0 });
  expect(summaryWanted({ total: 10, messages: 9, between: 1 }, 8, 4)).toBe(null);
});

test("[K7] the line names each reason once", () => {
  const summary = { messages: 8, upTo: 12 };
  expect(unshownLine({ total: 15, summary: undefined }, 3, "historyMessages")).toBe(
    "(12 earlier messages are not shown: beyond context.historyMessages; read_messages with offset 3 reads them)",
  );
  expect(unshownLine({ total: 18, summary }, 4, "historyTokens")).toBe(
    "(14 earlier messages are not shown: 4 from before the summary, 8 summarized below, 2 beyond context.historyTokens; read_messages with offset 4 reads them)",
  );
  expect(unshownLine({ total: 3 }, 3, "historyMessages")).toBe(null);
});
