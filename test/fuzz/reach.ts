import { vi } from "vitest";
import * as z from "zod";
import { type JournalRow, messagesOf } from "../../src/agent/journal.ts";
import { composingOf, kindOf } from "../../src/agent/run/composing.ts";
import { consciousness } from "../../src/agent/run/continuity/consciousness.ts";
import { timeline } from "../../src/agent/run/continuity/timeline.ts";
import type { LiveRun } from "../../src/agent/run/run-services.ts";
import { contextOf } from "../../src/agent/run/tool-context.ts";
import { estimateText } from "../../src/agent/tokens.ts";
import { findTool } from "../../src/agent/tools/registry.ts";
import type { CallOptions } from "../../src/models/language-model.ts";
import { maxSearchLimit } from "../../src/protocol/search.ts";
import { ColloquyError } from "../../src/shared/errors.ts";

/**
 * Everything that can be reached from one input. It is what stands in it, and what its tools return when they are
 * called with what it or an earlier answer names.
 *
 * The tools are executed as the run itself would, in the run, at the step that reads the input. They have its services,
 * its room and its spaces. The model does not call them, because their answers would then be part of the life. Each
 * later input of a consciousness would hold all that was ever looked up.
 */
export type Reader = { live: LiveRun; step: number; activeSpaceId: string | null };

/** Keeps the run whose input was composed last. Its model is asked next. */
export const watchInputs = (): { taken(): Reader | undefined; stop(): void } => {
  let newest: Reader | undefined;
  const spies = [consciousness, timeline].map((continuity) => {
    const { compose } = continuity;
    return vi.spyOn(continuity, "compose").mockImplementation(async (live, step, activeSpaceId) => {
      await compose(live, step, activeSpaceId);
      newest = { live, step, activeSpaceId };
    });
  });
  return {
    taken: () => {
      const reader = newest;
      newest = undefined;
      return reader;
    },
    stop: () => void spies.map((spy) => spy.mockRestore()),
  };
};

const Runs = z.object({ runs: z.array(z.object({ runId: z.string() }).loose()), omitted: z.string().optional() });
const Messages = z.object({ messages: z.array(z.unknown()), total: z.number() });
const Hits = z.object({ results: z.array(z.object({ createdAt: z.string() })), omitted: z.string().optional() });
const Blocks = z.object({ blocks: z.array(z.object({ label: z.string() })) });

const Versions = z.object({ versions: z.array(z.object({ version: z.number() })) });

const estimateIn = (prompt: CallOptions["prompt"]): number =>
  prompt.reduce(
    (sum, { content }) => sum + estimateText(typeof content === "string" ? content : JSON.stringify(content)),
    0,
  );

const named = (text: string, pattern: RegExp): string[] => [...new Set(text.match(pattern))];

/** Those of the words that cannot be reached. */
export const unreachable = async (
  { live, step, activeSpaceId }: Reader,
  { tools = [], prompt }: CallOptions,
  words: Iterable<string>,
): Promise<string[]> => {
  const input = JSON.stringify(prompt);
  let left = [...words].filter((word) => !input.includes(word));
  const { journal } = live.services;
  const soFar = journal.ofRun(live.run);
  const last = soFar.at(-1);
  if (!last) throw new Error("a run that is asked has an input");
  const own = prompt.length - messagesOf(soFar).length;
  const tokens = estimateIn(prompt);
  const past = estimateIn(prompt.slice(input.includes("EARLIER CYCLES") ? 2 : 1, own));
  /** The row that this very step will have, once it has made the call: a result has the room that it leaves. */
  const asStep: JournalRow = {
    ...{ ...last, seq: last.seq + 1, kind: "assistant", content: { role: "assistant", content: "" } },
    meta: {
      ...{ kind: "assistant", text: "", calls: [], usage: { inputTokens: tokens, outputTokens: 0, estimated: true } },
      ...{ durationMs: 0, finishReason: "tool-calls", estimatedInput: tokens, firstCycle: 0, windowId: 0, modelId: "" },
      input: {
        sections: [{ name: "earlier_cycles", tokens: past }],
        dropped: [],
        tokens,
        limits: composingOf(live.services).limits,
      },
    },
  };
  const services = { ...live.services, journal: { ...journal, ofRun: () => [...soFar, asStep] } };
  const offered = new Set(tools.map(({ name }) => name));
  const ask = async <Value>(toolName: string, schema: z.ZodType<Value>, asked: object): Promise<Value | undefined> => {
    const tool = offered.has(toolName) ? findTool(toolName, kindOf(services, live.run)) : undefined;
    if (!tool || left.length === 0) return undefined;
    const call = { callId: "tc_looked", index: 0, toolName, input: asked };
    const execution = { ...live, services, step, call, begunAt: undefined, activeSpaceId, speech: undefined };
    try {
      const { value } = await tool.execute(asked, contextOf(execution, services.clock.now()));
      const answer = JSON.stringify(value);
      left = left.filter((word) => !answer.includes(word));
      return schema.parse(value);
    } catch (error) {
      if (error instanceof ColloquyError) return undefined;
      throw error;
    }
  };

  await ask("get_memories", z.unknown(), {});
  await ask("get_plans", z.unknown(), {});
  for (const { label } of (await ask("block_list", Blocks, {}))?.blocks ?? []) {
    await ask("block_load", z.unknown(), { label });
    const changes = await ask("block_history", Versions, { label, limit: 50 });
    for (const { version } of changes?.versions ?? []) await ask("block_load", z.unknown(), { label, version });
  }

  for (const spaceId of named(input, /spc_\w+/g)) {
    let offset = 0;
    for (;;) {
      const page = await ask("read_messages", Messages, { spaceId, offset, limit: 50 });
      offset += page?.messages.length ?? 0;
      if (!page || page.messages.length === 0 || offset >= page.total) break;
    }
  }

  /** Looks for what was said, done and told in a span, and halves the span where an answer leaves something out. */
  const look = async (query: string, between: { from?: string; to?: string }): Promise<void> => {
    const hits = await ask("search", Hits, { query, limit: maxSearchLimit, ...between });
    if (!hits || (hits.omitted === undefined && hits.results.length < maxSearchLimit)) return;
    const times = [...new Set(hits.results.map(({ createdAt }) => createdAt))].sort();
    const middle = times[Math.floor(times.length / 2)];
    if (middle === undefined || middle === between.from || middle === between.to) return;
    await look(query, { ...between, to: middle });
    await look(query, { ...between, from: middle });
  };
  for (const query of named(input, /NOW: \d{4}/g)) await look(query.slice(-4), {});
  /** The rest of a run's values that were cut, and its earlier calls. */
  const readOn = async (run: { runId: string }, place: { actionsBefore?: number; offset?: number }): Promise<void> => {
    const told = JSON.stringify(run);
    const next = async (more: typeof place): Promise<void> => {
      const page = await ask("get_my_runs", Runs, { limit: 10, runId: run.runId, offset: 0, ...place, ...more });
      if (page?.runs[0]) await readOn(page.runs[0], { ...place, ...more });
    };
    for (const offset of named(told, /(?<=ask with runId[^"]* offset: )\d+/g)) await next({ offset: Number(offset) });
    if (place.offset !== undefined) return;
    const [earlier] = named(told, /(?<=with runId and actionsBefore: )\d+/g).map(Number);
    if (earlier !== undefined && earlier !== place.actionsBefore) await next({ actionsBefore: earlier });
  };
  let before: { before?: string } = {};
  for (;;) {
    const page = await ask("get_my_runs", Runs, { limit: 50, offset: 0, ...before });
    if (page?.runs[0]) await readOn(page.runs[0], {});
    const last = page?.runs.at(-1)?.runId;
    if (last === undefined || last === before.before) break;
    before = { before: last };
  }
  return left;
};
