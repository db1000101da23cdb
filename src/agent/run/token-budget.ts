import { estimateMessages } from "../context/tokens.ts";
import { messagesOf } from "../journal.ts";
import type { RunRow } from "../runs.ts";
import { composingOf } from "./composing.ts";
import type { RunServices } from "./run-services.ts";

/** What a result may hold where an input is full already: enough to say what it is. */
const leastTokens = 250;

/** The estimated tokens that the model's next input has room for, beside all that the run holds by now. */
export const roomOf = (services: RunServices, run: RunRow): number => {
  const { config, correction } = composingOf(services);
  const rows = services.journal.ofRun(run);
  const from = rows.findLastIndex((row) => row.kind === "assistant");
  const meta = rows[from]?.meta;
  const before = meta?.kind === "assistant" ? meta.input.tokens / correction : 0;
  const since = estimateMessages(messagesOf(rows.slice(Math.max(0, from))));
  const budget = (config.context.maxTokens - config.context.reservedResponseTokens) / correction;
  return Math.max(leastTokens, Math.floor(budget - before - since));
};
