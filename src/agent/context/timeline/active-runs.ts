import { callLine } from "../call-line.ts";
import { excerpt, quote } from "../quote.ts";
import type { ActiveRun } from "./snapshot.ts";

const textCharacters = 80;

const begunBy = ({ type, name, spaceName, text }: ActiveRun["begunBy"]): string => {
  const kind = type === "space_message" ? "" : `${type} `;
  const where = spaceName === undefined ? "" : ` in ${quote(spaceName)}`;
  return `${kind}${quote(name)}${where}: ${quote(excerpt(text, textCharacters))}`;
};

const awaited = { approval: "somebody's approval", answer: "somebody's answer", server: "its server" } as const;

const waitingFor = (waiting: NonNullable<ActiveRun["waiting"]>): string => {
  if ("call" in waiting) {
    const where = waiting.spaceName === undefined ? "" : ` in ${quote(waiting.spaceName)}`;
    return `${callLine(waiting.call)}${where}, waiting for ${awaited[waiting.awaits]}`;
  }
  const { text, spaceName, names } = waiting;
  return `sent ${quote(excerpt(text, textCharacters))} in ${quote(spaceName)}, waiting for ${names.map(quote).join(", ")}`;
};

/** What this agent is doing right now, so that it begins nothing twice and is not surprised by itself. */
export const activeRunLines = (runs: ActiveRun[], more = 0): string[] => [
  "ACTIVE RUNS:",
  ...runs.map(
    (run) =>
      `  - ${run.runId} (${run.isThis ? "this run" : run.status}) — ${run.waiting ? waitingFor(run.waiting) : begunBy(run.begunBy)}`,
  ),
  ...(more === 0 ? [] : [`  - and ${more} earlier ones that wait for their tools; get_my_runs lists them`]),
];
