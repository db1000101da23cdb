import type { ModelMessage } from "ai";
import fc from "fast-check";
import { expect, test } from "vitest";
import { compose } from "../../../../src/agent/context/compose.ts";
import type { Cycle } from "../../../../src/agent/context/consciousness/compaction.ts";
import { compact } from "../../../../src/agent/context/consciousness/compaction.ts";
import { summaryMessage } from "../../../../src/agent/context/consciousness/compose-consciousness.ts";
import { estimateMessages, estimateText } from "../../../../src/agent/tokens.ts";
import { analyst, callMessages, configOf, livedSnapshot } from "../cast.ts";

const words = (count: number): string => "word ".repeat(count);

/** A cycle as it is journaled: inbox, steps with calls and their results, last words. */
const cycle = fc
  .record({
    inbox: fc.integer({ min: 0, max: 200 }),
    steps: fc.array(fc.record({ calls: fc.integer({ min: 1, max: 3 }), result: fc.integer({ min: 0, max: 150 }) }), {
      maxLength: 4,
    }),
    last: fc.option(fc.string({ unit: "grapheme", maxLength: 2000 }), { nil: undefined }),
  })
  .map(({ inbox, steps, last }): ModelMessage[] => [
    { role: "user", content: `INBOX ${words(inbox)}` },
    ...steps.flatMap(({ calls, result }, step): ModelMessage[] => {
      const ids = Array.from({ length: calls }, (_, index) => `${step}-${index}`);
      return [
        {
          role: "assistant",
          content: ids.map((toolCallId) => ({ type: "tool-call", toolCallId, toolName: "read_messages", input: {} })),
        },
        ...ids.map(
          (toolCallId): ModelMessage => ({
            role: "tool",
            content: [
              {
                type: "tool-result",
                toolCallId,
                toolName: "read_messages",
                output: { type: "text", value: words(result) },
              },
            ],
          }),
        ),
      ];
    }),
    ...(last === undefined ? [] : [{ role: "assistant", content: last } as const]),
  ]);

const past = fc
  .array(cycle, { minLength: 1, maxLength: 15 })
  .map((cycles) => cycles.map((messages, index): Cycle => ({ runId: `run_${index}`, messages })));

const limits = fc.record({
  strategy: fc.constantFrom("self_summaries" as const, "truncate" as const),
  keepRecent: fc.integer({ min: 1, max: 12 }),
  maxTokens: fc.integer({ min: 500, max: 8000 }),
});

/** Ids of calls and of results, in order: paired where each call is followed by its own result. */
const idsOf = (messages: ModelMessage[], type: "tool-call" | "tool-result"): string[] =>
  messages.flatMap(({ content }) =>
    typeof content === "string"
      ? []
      : content.flatMap((part) => (part.type === type && "toolCallId" in part ? [part.toolCallId] : [])),
  );

const own: ModelMessage[] = [
  { role: "user", content: "INBOX now" },
  ...callMessages("read_messages", {}, ["all"], "own"),
];

test("a compaction keeps the newest cycles, whole, in order, and within the budget", () => {
  fc.assert(
    fc.property(past, limits, fc.option(fc.string({ maxLength: 3000 }), { nil: null }), (cycles, limit, earlier) => {
      const compaction = compact(cycles, earlier, limit);
      if (compaction === null) {
        expect(cycles.length).toBeLessThanOrEqual(limit.keepRecent);
        return;
      }
      const kept = cycles.slice(compaction.keptFrom);
      expect(kept.length).toBeLessThanOrEqual(limit.keepRecent);
      const tokens = kept.reduce((sum, { messages }) => sum + estimateMessages(messages), 0);
      expect(tokens + estimateText(compaction.summary)).toBeLessThanOrEqual(limit.maxTokens);
      const newest = estimateMessages(cycles.at(-1)?.messages ?? []);
      if (newest <= limit.maxTokens / 2) expect(kept.length).toBeGreaterThan(0);
      const oneMore = estimateMessages(cycles[compaction.keptFrom - 1]?.messages ?? []);
      if (kept.length < limit.keepRecent) expect(tokens + oneMore).toBeGreaterThan(limit.maxTokens / 2);
    }),
    { numRuns: 1000, seed: 3 },
  );
});

test("a compacted input never parts a call from its result, nor touches the running cycle", () => {
  fc.assert(
    fc.property(past, limits, (cycles, limit) => {
      const compaction = compact(cycles, null, limit);
      const summary = compaction?.summary ?? null;
      const kept = cycles.slice(compaction?.keptFrom ?? 0);
      const context = { maxTokens: limit.maxTokens + 1000, reservedResponseTokens: 300 };
      const config = configOf(analyst, { continuity: "consciousness", context });
      const composed = compose(livedSnapshot(config, own, { window: { instructions: "I am", summary }, past: kept }));
      const whole = kept.slice(composed.firstCycle).flatMap(({ messages }) => messages);
      expect(composed.messages).toEqual([...summaryMessage(summary), ...whole, ...own]);
      expect(idsOf(composed.messages, "tool-result")).toEqual(idsOf(composed.messages, "tool-call"));
      expect(composed.tokens).toBeLessThanOrEqual(context.maxTokens - context.reservedResponseTokens);
      if (compaction) expect(composed.firstCycle).toBe(0);
    }),
    { numRuns: 1000, seed: 4 },
  );
});

test("a compaction keeps as many summaries as fit, the newest of them", () => {
  const cycles = Array.from(
    { length: 400 },
    (_, index): Cycle => ({
      runId: `run_${index}`,
      messages: [{ role: "assistant", content: `Did ${index}.` }],
    }),
  );
  const compaction = compact(cycles, "- Did something before.", {
    strategy: "self_summaries",
    keepRecent: 1,
    maxTokens: 4000,
  });
  const lines = compaction?.summary.split("\n") ?? [];
  expect(lines.at(-1)).toBe("- Did 398.");
  expect(lines.length).toBeGreaterThan(100);
  expect(lines.length).toBeLessThan(300);
});

test("a cycle too large to be kept at all is summarised too", () => {
  const huge: Cycle = {
    runId: "run_1",
    messages: [
      { role: "user", content: words(5000) },
      { role: "assistant", content: "Read a very long text." },
    ],
  };
  expect(compact([huge], null, { strategy: "self_summaries", keepRecent: 10, maxTokens: 4000 })).toEqual({
    summary: "- Read a very long text.",
    keptFrom: 1,
  });
});
