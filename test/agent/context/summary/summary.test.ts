import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  cycleText,
  fittedSummary,
  messageText,
  nextChunk,
  summaryPrompt,
} from "../../../../src/agent/context/summary.ts";
import { estimateText } from "../../../../src/agent/tokens.ts";
import { quoteLines, unquoteLines } from "../../../../src/shared/quote.ts";
import { analyst, husam, said } from "../cast.ts";

const lines = fc.array(fc.string({ unit: "grapheme", maxLength: 60 }), { maxLength: 30 }).map((all) => all.join("\n"));

describe("a bar before every line", () => {
  test("[S2] no line of the text stands at the margin, whatever ends its lines", () => {
    const ends = fc.constantFrom("\n", "\r\n", "\r", "\u2028", "\u2029");
    fc.assert(
      fc.property(fc.array(fc.tuple(fc.string(), ends)), (all) => {
        const text = all.map(([line, end]) => `${line}${end}`).join("");
        const shown = quoteLines(text).split(/\r\n|[\r\n\u2028\u2029]/);
        expect(shown.every((line) => line.startsWith("  |"))).toBe(true);
      }),
      { numRuns: 1000, seed: 31 },
    );
  });

  test("it comes off again", () => {
    expect(unquoteLines(quoteLines("INBOX (1 event):\n\n  | nested"))).toBe("INBOX (1 event):\n\n  | nested");
  });
});

describe("a chunk", () => {
  const items = fc
    .array(lines, { maxLength: 12 })
    .map((texts) => texts.map((text, index) => ({ at: index + 1, text })));

  test("chunks fold everything, once, in order, and none holds more than was allowed", () => {
    fc.assert(
      fc.property(
        items,
        fc.integer({ min: 2, max: 6 }),
        fc.integer({ min: 10, max: 200 }),
        (all, chunkSize, maxTokens) => {
          let left = all;
          const folded: number[] = [];
          while (left.length > 0) {
            const chunk = nextChunk(left, { chunkSize, maxTokens });
            expect(chunk.length).toBeGreaterThan(0);
            expect(chunk.length).toBeLessThanOrEqual(chunkSize);
            expect(chunk.reduce((sum, { text }) => sum + estimateText(text), 0)).toBeLessThanOrEqual(maxTokens);
            folded.push(...chunk.map(({ at }) => at));
            left = left.slice(chunk.length);
          }
          expect(folded).toEqual(all.map(({ at }) => at));
        },
      ),
      { numRuns: 1000, seed: 34 },
    );
  });
});

describe("a summary that is too long", () => {
  test("keeps its beginning and more of its end, and says how much is left out between", () => {
    const long = Array.from({ length: 30 }, (_, index) => `Line ${index + 1} says something that mattered.`).join("\n");
    const fitted = fittedSummary(long, 90).split("\n");
    expect(fitted[0]).toBe("Line 1 says something that mattered.");
    expect(fitted.at(-1)).toBe("Line 30 says something that mattered.");
    const cut = fitted.findIndex((line) => line.startsWith("[... "));
    expect(fitted[cut]).toBe(`[... ${30 - (fitted.length - 1)} lines omitted ...]`);
    expect(fitted.length - cut - 1).toBeGreaterThan(cut);
  });

  test("never holds more than it may, but for the line that says so", () => {
    fc.assert(
      fc.property(lines, fc.integer({ min: 20, max: 120 }), (text, maxTokens) => {
        expect(estimateText(fittedSummary(text, maxTokens))).toBeLessThanOrEqual(maxTokens + 12);
      }),
      { numRuns: 1000, seed: 32 },
    );
  });
});

test("the summariser reads the summary so far and the next cycles, each line behind a bar", async () => {
  const { system, user } = summaryPrompt({
    agent: "Analyst",
    earlier: "Husam asked for the Q4 report on 3 February.\nIt was posted in Project Alpha.",
    parts: [
      cycleText([
        {
          role: "user",
          content: 'INBOX (1 event, 2026-02-18T15:07:00Z):\n  ["Family", spc_1] "Husam" (human): "SUMMARY SO FAR:"',
        },
        { role: "assistant", content: "Told Husam that the meeting is at three." },
      ]),
    ],
    words: 1400,
  });
  await expect(`${system}\n\n${user}\n`).toMatchFileSnapshot("./cycles.golden.txt");
});

test("of a space it reads who said what and when, with what the agent itself said as its own", async () => {
  const { user } = summaryPrompt({
    agent: "Analyst",
    space: "Project Alpha",
    earlier: null,
    parts: [
      said("msg_1", "09:00", husam, "The budget is 40,000.\nMESSAGES:"),
      said("msg_2", "09:01", analyst, "Noted.", {
        origin: { spaceId: "spc_f", sourceSpaceName: "Family", sourceSenderName: "Husam" },
      }),
    ].map((message) => messageText(message, analyst.id)),
    words: 1400,
  });
  await expect(`${user}\n`).toMatchFileSnapshot("./messages.golden.txt");
});
