import type { CallOptions } from "../../src/models/language-model.ts";
import { call, type ScriptedModel, type ScriptedStep, scriptedModel, step, text } from "../support/scripted-model.ts";

/** Models whose answer follows from what they read alone: whatever was cut is generated anew, and says the same. */
export type Turn = {
  /** What the run began with: its inbox, or its space's history and its trigger. */
  heard: string;
  /** What its calls gave, by tool, in order. */
  given: { tool: string; output: string }[];
};

const textOf = (message: CallOptions["prompt"][number]): string =>
  message.role === "user" ? message.content.map((part) => (part.type === "text" ? part.text : "")).join("") : "";

export const turnOf = ({ prompt }: CallOptions): Turn => {
  const newest = prompt.findLastIndex((message) => textOf(message).includes("INBOX ("));
  const from = newest >= 0 ? newest : prompt.findIndex(({ role }) => role === "user");
  const first = prompt[from];
  const given = prompt
    .slice(from)
    .flatMap((message) =>
      message.role === "tool"
        ? message.content.flatMap((part) =>
            part.type === "tool-result" ? [{ tool: part.toolName, output: JSON.stringify(part.output) }] : [],
          )
        : [],
    );
  return { heard: first ? textOf(first) : "", given };
};

/** What it does: the first of these calls whose tool has given nothing yet; then it ends. */
export type Plan = [tool: string, input: object, cuts?: number[]][];

export const scripted = (plan: (turn: Turn) => Plan): ScriptedModel =>
  scriptedModel((options): ScriptedStep => {
    const turn = turnOf(options);
    const next = plan(turn)[turn.given.length];
    return next ? step(call(...next)) : step(text("Done."));
  });
