import { describe, expect, test } from "vitest";
import { resolveLimits } from "../../../src/agent/context/limits.ts";
import { contextWindowOf } from "../../../src/models/context-windows.ts";
import { AgentConfig } from "../../../src/protocol/agent.ts";
import type { ContextConfig } from "../../../src/protocol/context-config.ts";

/** The limits of an input, by the agent's config and its model. */
const resolved = (context: unknown, name = "unknown", maxOutputTokens?: number) => {
  const config = AgentConfig.parse({ name: "A", context });
  return resolveLimits(config.context, { name, window: contextWindowOf(name) }, maxOutputTokens);
};

const refusal = (context: unknown): { path: string; message: string }[] => {
  const parsed = AgentConfig.safeParse({ name: "A", context });
  return (parsed.error?.issues ?? []).map(({ path, message }) => ({ path: path.join("."), message }));
};

describe("what a config leaves out follows from the model", () => {
  test("of an unknown model, 100,000 tokens and its shares", () => {
    expect(resolved({})).toEqual({
      model: "unknown",
      maxTokens: 100_000,
      reservedResponseTokens: 4000,
      memoryTokens: 8000,
      historyTokens: 60_000,
      notes: [],
    });
  });

  test("of a small model, its window and shares of it", () => {
    expect(resolved({}, "gpt-4")).toEqual({
      model: "gpt-4",
      window: 8192,
      maxTokens: 8192,
      reservedResponseTokens: 2048,
      memoryTokens: 655,
      historyTokens: 4915,
      notes: [],
    });
  });

  test("a large window is used only where the config says so", () => {
    expect(resolved({}, "gemini-2.5-pro").maxTokens).toBe(100_000);
    expect(resolved({ maxTokens: 900_000 }, "gemini-2.5-pro")).toMatchObject({ maxTokens: 900_000, notes: [] });
  });

  test("the answer's own bound is kept free, up to half of the whole", () => {
    expect(resolved({}, "unknown", 12_000).reservedResponseTokens).toBe(12_000);
    expect(resolved({}, "gpt-4", 12_000).reservedResponseTokens).toBe(4096);
  });
});

describe("[B3] the window of a known model", () => {
  test("is not passed, and what was changed for it is said", () => {
    const limits = resolved({ maxTokens: 200_000, historyTokens: 150_000 }, "gpt-4o-mini");
    expect(limits).toMatchObject({ window: 128_000, maxTokens: 128_000, historyTokens: 124_000 });
    expect(limits.notes).toEqual([
      "maxTokens: 128000 instead of 200000, since the model takes no more",
      "historyTokens: 124000 instead of 150000, since maxTokens is 128000",
    ]);
  });

  test("leaves room for more than the answer and the memories, whatever was configured", () => {
    const limits = resolved({ maxTokens: 100_000, reservedResponseTokens: 30_000, memoryTokens: 30_000 }, "gpt-4");
    expect(limits.reservedResponseTokens + limits.memoryTokens).toBeLessThan(limits.maxTokens);
    expect(limits.notes).toHaveLength(3);
  });

  test("is the owner's to say for a model that is named in full, and that is noted", () => {
    const byModel = { "claude-sonnet-4-5": { maxTokens: 900_000 }, "claude-*": { maxTokens: 300_000 } };
    expect(resolved({ byModel }, "claude-sonnet-4-5")).toMatchObject({
      maxTokens: 900_000,
      notes: ["maxTokens: 900000 as byModel says, though 200000 is known of the model"],
    });
    expect(resolved({ byModel }, "claude-opus-4")).toMatchObject({ maxTokens: 200_000 });
  });
});

test("limits by model: the exact name first, then the longest prefix, then the config's", () => {
  const byModel = {
    "*": { memoryTokens: 1000 },
    "qwen*": { memoryTokens: 2000 },
    "qwen3*": { memoryTokens: 3000, maxTokens: 20_000 },
    "qwen3:8b": { memoryTokens: 4000 },
  };
  const context = { historyTokens: 5000, byModel } satisfies Partial<ContextConfig>;
  expect(resolved(context, "qwen3:8b")).toMatchObject({ memoryTokens: 4000, maxTokens: 100_000, historyTokens: 5000 });
  expect(resolved(context, "qwen3:4b")).toMatchObject({ memoryTokens: 3000, maxTokens: 20_000, historyTokens: 5000 });
  expect(resolved(context, "qwen2")).toMatchObject({ memoryTokens: 2000 });
  expect(resolved(context, "llama")).toMatchObject({ memoryTokens: 1000 });
});

describe("[S4] limits that contradict each other are refused by name", () => {
  test("an answer and memories that fill all there is", () => {
    expect(refusal({ maxTokens: 4000, reservedResponseTokens: 3000, memoryTokens: 2000 })).toEqual([
      {
        path: "context.maxTokens",
        message:
          "maxTokens (4000) does not hold reservedResponseTokens (3000) and memoryTokens (2000) and anything else: raise it, or lower one of those",
      },
    ]);
    expect(refusal({ memoryTokens: 150_000 })[0]?.path).toBe("context.maxTokens");
  });

  test("for one model only", () => {
    const context = { reservedResponseTokens: 6000, byModel: { "gpt-4": { maxTokens: 8000, memoryTokens: 2500 } } };
    expect(refusal(context).map(({ path }) => path)).toEqual(["context.byModel.gpt-4.maxTokens"]);
  });

  test.each([
    ["a star in the middle", { byModel: { "gpt*4": {} } }],
    ["no name", { byModel: { "": {} } }],
    ["an unknown limit", { byModel: { "gpt-4": { historyMessages: 3 } } }],
    ["a limit below its least", { byModel: { "gpt-4": { maxTokens: 10 } } }],
    ["too many models", { byModel: Object.fromEntries(Array.from({ length: 101 }, (_, index) => [`m${index}`, {}])) }],
  ])("%s", (_, context) => {
    expect(refusal(context)).not.toEqual([]);
  });
});

test.each([
  ["@cf/meta/llama-3.3-70b-instruct-fp8-fast", 24_000],
  ["@cf/meta/llama-3.1-8b-instruct-fast", 128_000],
  ["@cf/openai/gpt-oss-120b", 128_000],
  ["@cf/qwen/qwen3-30b-a3b-fp8", 32_768],
  ["gpt-4", 8192],
  ["gpt-4o-2024-11-20", 128_000],
  ["gpt-4.1-mini", 1_047_576],
  ["openai/gpt-5-mini", 400_000],
  ["anthropic/claude-sonnet-4.5", 200_000],
  ["models/gemini-2.5-flash", 1_048_576],
  ["qwen3:8b", null],
  ["@cf/somebody/unheard-of", null],
])("the window of %s is %s", (name, window) => {
  expect(contextWindowOf(name)).toBe(window);
});
