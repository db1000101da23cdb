import type { ModelMessage } from "ai";
import { expect, test } from "vitest";
import { compose } from "../../../../src/agent/context/compose.ts";
import type { Cycle } from "../../../../src/agent/context/consciousness/compaction.ts";
import { compact } from "../../../../src/agent/context/consciousness/compaction.ts";
import { prefixReuse } from "../../../../src/agent/context/sections.ts";
import { correct } from "../../../../src/agent/tokens.ts";
import { AgentConfig } from "../../../../src/protocol/agent.ts";
import { livedSnapshot } from "../cast.ts";

const config = AgentConfig.parse({ name: "A", context: { maxTokens: 4000, reservedResponseTokens: 500 } });

const cycle = (name: string, words: number): Cycle => ({
  runId: name,
  messages: [
    { role: "user", content: `INBOX ${name} ${"word ".repeat(words)}` },
    { role: "assistant", content: `Did ${name}.` },
  ],
});

const own: ModelMessage[] = [{ role: "user", content: "INBOX now" }];

test("the input is the summary, the past untouched, and the running cycle", () => {
  const past = [cycle("one", 5), cycle("two", 5)];
  const composed = compose(livedSnapshot(config, own, { window: { instructions: "I am", summary: "- before" }, past }));
  expect(composed.instructions).toBe("I am");
  expect(composed.messages.slice(1)).toEqual([...past.flatMap(({ messages }) => messages), ...own]);
  expect(composed.messages[0]?.content).toContain("- before");
  expect(composed.dropped).toEqual([]);
});

test("what does not fit is left out from the oldest on, whole, and named", () => {
  const past = Array.from({ length: 20 }, (_, index) => cycle(`c${index}`, 300));
  const composed = compose(livedSnapshot(config, own, { past }));
  expect(composed.tokens).toBeLessThanOrEqual(3500);
  expect(composed.firstCycle).toBeGreaterThan(0);
  expect(composed.messages).toHaveLength((20 - composed.firstCycle) * 2 + 1);
  expect(composed.dropped[0]?.name).toBe("earlier_cycles");
});

test("the running cycle is never left out", () => {
  const huge: ModelMessage[] = [{ role: "user", content: "word ".repeat(10_000) }];
  expect(compose(livedSnapshot(config, huge, { past: [cycle("a", 1)] })).messages).toEqual(huge);
});

test("a compaction keeps the newest cycles whole and each older one's own last words", () => {
  const past = ["a", "b", "c", "d"].map((name) => cycle(name, 3));
  const compaction = compact(past, "- Did z.", { strategy: "self_summaries", keepRecent: 2, maxTokens: 10_000 });
  expect(compaction).toEqual({ summary: "- Did z.\n- Did a.\n- Did b.", keptFrom: 2 });
});

test("an appended input repeats all of the earlier one", () => {
  const earlier = { instructions: "I am", messages: cycle("a", 2).messages };
  const later = { instructions: "I am", messages: [...earlier.messages, ...own] };
  expect(prefixReuse(earlier, later)).toBe(1);
  expect(prefixReuse(earlier, { ...later, instructions: "Once" })).toBe(0);
});

test("the correction of token estimates heeds no nonsense and moves slowly", () => {
  expect(correct(1, 100, 0)).toBe(1);
  expect(correct(1, 100, Number.NaN)).toBe(1);
  expect(correct(1, 100, 200)).toBeCloseTo(1.2);
  expect(correct(1, 1, 1_000_000)).toBeCloseTo(1.4);
});
