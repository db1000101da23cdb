import { resolveLimits } from "../../../src/agent/context/limits.ts";
import type { JournalRow } from "../../../src/agent/journal.ts";
import { readRows } from "../../../src/agent/run/run-rows.ts";
import { ContextConfig } from "../../../src/protocol/context-config.ts";
import type { AssistantMeta, CallRequest, JournalMeta, ResultMeta } from "../../../src/protocol/exported-history.ts";

/** Rows of a run, as its journal holds them. */
export type Row = Omit<JournalRow, "seq" | "createdAt" | "runOrdinal">;

const userRow = (kind: "inbox" | "preview", step: number, meta: JournalMeta): Row => ({
  ...{ kind, step, content: { role: "user", content: "" }, meta },
});

export const inbox = userRow("inbox", 0, { kind: "inbox", lines: [] });
export const reminder = (step: number): Row => userRow("preview", step, { kind: "reminder" });

export const callOf = (callId: string, toolName: string, extra: Partial<CallRequest> = {}): CallRequest => ({
  ...{ callId, index: 0, toolName, input: {}, ...extra },
});

const limits = resolveLimits(ContextConfig.parse({}), { name: "m", window: null }, undefined);

export const assistant = (step: number, calls: CallRequest[], usage = { inputTokens: 100, outputTokens: 10 }): Row => {
  const meta: AssistantMeta = {
    ...{ kind: "assistant", text: "", calls, usage: { ...usage, estimated: false }, estimatedInput: 100 },
    ...{ firstCycle: 1, windowId: 1, modelId: "m", input: { sections: [], dropped: [], tokens: 100, limits } },
    ...{ durationMs: 1, finishReason: "stop" },
  };
  return { kind: "assistant", step, content: { role: "assistant", content: "" }, meta };
};

export const started = (step: number, callId: string, toolName = "x"): Row => ({
  ...{ kind: "call", step, content: { callId, toolName }, meta: null },
});

export const result = (step: number, callId: string, facts: Partial<ResultMeta> = {}): Row => ({
  ...{ kind: "result", step, content: { role: "tool", content: [] } },
  meta: { kind: "result", callId, toolName: "x", error: false, ...facts },
});

export const journaled = (rows: Row[]): JournalRow[] =>
  rows.map((row, index) => ({ ...row, seq: index + 1, createdAt: index + 1, runOrdinal: 1 }));

export const viewOf = (rows: Row[]) => readRows(journaled(rows));
