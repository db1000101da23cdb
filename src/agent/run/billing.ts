import { correct } from "../context/tokens.ts";
import type { JournalRow } from "../journal.ts";
import type { Billed } from "../ledger.ts";
import type { AssistantMeta } from "../records.ts";
import type { RunRow } from "../runs.ts";

/** The name of a step in the ledger. */
export const stepName = (run: RunRow, step: number): string => `${run.ordinal}:${step}`;

const assistants = (rows: JournalRow[]): { step: number; meta: AssistantMeta }[] =>
  rows.flatMap(({ step, meta }) => (meta?.kind === "assistant" ? [{ step, meta }] : []));

/** The bill of the newest finished step. */
export const lastBilled = (run: RunRow, rows: JournalRow[]): Billed | undefined => {
  const last = assistants(rows).at(-1);
  if (!last) return undefined;
  const { inputTokens, outputTokens } = last.meta.usage;
  return { step: stepName(run, last.step), tokens: inputTokens + outputTokens };
};

type Correction = { correction: number; correctionModel: string | null };

/** The correction of our estimates after this run: each step whose provider reported its usage moves it. */
export const correctionAfter = (before: Correction, rows: JournalRow[]): Correction =>
  assistants(rows)
    .filter(({ meta }) => !meta.usage.estimated)
    .reduce(
      (known, { meta }) => ({
        correctionModel: meta.modelId,
        correction: correct(
          known.correctionModel === meta.modelId ? known.correction : 1,
          meta.estimatedInput,
          meta.usage.inputTokens,
        ),
      }),
      before,
    );
