import type { ToolRule } from "../../protocol/tool.ts";
import { ruleLine } from "../context/instructions.ts";
import type { JournalRow } from "../journal.ts";
import { endsLoop, goesOn, missingBeforeExit, type PastCall } from "../tools/rules.ts";
import type { Continuity } from "./continuity/continuity.ts";
import type { Progress } from "./progress.ts";

/**
 * Applies the tool rules to the next thing that a run would do, from its journal alone.
 *
 * Invariants
 * 1. Rules end a run, or let it go on, between two steps only: every call of a step has its result by then.
 * 2. The first exit without a required call is answered by a reminder. The next one ends the run.
 */
type Row = Pick<JournalRow, "kind" | "step" | "content" | "meta">;

export type RuledProgress =
  | Progress
  /** Answer the exit with this reminder, as part of step `step`. */
  | { kind: "remind"; step: number; text: string }
  | { kind: "broken"; message: string };

/** The calls of these rows, in the order in which they began. */
export const pastCalls = (rows: Row[]): PastCall[] => {
  const states = new Map<string, PastCall>();
  for (const { kind, content, meta } of rows) {
    if (kind === "call" && "callId" in content) {
      states.set(content.callId, { toolName: content.toolName, state: "open" });
    }
    if (meta?.kind !== "result") continue;
    const began = states.has(meta.callId);
    const state = meta.refused || (meta.error && !began) ? "refused" : meta.error ? "failed" : "succeeded";
    states.set(meta.callId, { toolName: meta.toolName, state });
  }
  return [...states.values()];
};

const sentence = (rules: ToolRule[]): string => rules.map((rule) => `${ruleLine(rule)}.`).join(" ");

/** What happens where the run would end. */
const exit = (rows: Row[], rules: ToolRule[], step: number): RuledProgress => {
  const missing = missingBeforeExit(rules, pastCalls(rows));
  if (missing.length === 0) return { kind: "done" };
  if (rows.some(({ meta }) => meta?.kind === "reminder")) {
    return { kind: "broken", message: `the run ended against its rules, though it was reminded: ${sentence(missing)}` };
  }
  return { kind: "remind", step, text: `REMINDER: ${sentence(missing)} Do that now; the run cannot end before.` };
};

export const enforceToolRules = (
  next: Progress,
  rows: Row[],
  rules: ToolRule[],
  { waitsForAnswers }: Pick<Continuity, "waitsForAnswers">,
): RuledProgress => {
  const last = rows.findLastIndex(({ kind }) => kind === "assistant");
  const step = rows[last]?.step;
  if (rules.length === 0 || step === undefined) return next;
  if (next.kind !== "generate" && next.kind !== "wait" && next.kind !== "done") return next;
  if (rows.slice(last).some(({ meta }) => meta?.kind === "reminder")) return { kind: "generate", step: step + 1 };
  const ofStep = pastCalls(rows.filter((row) => row.step === step));
  if (next.kind === "done" || endsLoop(rules, ofStep)) return exit(rows, rules, step + 1);
  // A run that does not wait for answers ends where it asked for them.
  if (next.kind !== "wait" || waitsForAnswers) return next;
  return goesOn(rules, ofStep) ? { kind: "generate", step: step + 1 } : exit(rows, rules, step + 1);
};
