import * as z from "zod";
import { pendingCallOf } from "./action-result.ts";
import type { ActionResult } from "./prompt-view.ts";
import { wordsOfName } from "./tool-view.ts";

const mostCharacters = 600;

const Approved = z.strictObject({
  result: z.unknown(),
  approval: z.object({ by: z.array(z.string()), notes: z.array(z.string()) }),
});
const Chosen = z.union([z.strictObject({ choice: z.unknown() }), z.strictObject({ choices: z.unknown() })]);

const said = (value: unknown): string => {
  if (typeof value === "string") return value;
  if (value === null || value === undefined) return "nothing";
  if (typeof value === "boolean") return value ? "yes" : "no";
  if (Array.isArray(value)) return value.map(said).join(", ") || "nothing";
  if (typeof value !== "object") return String(value);
  const { data: chosen } = Chosen.safeParse(value);
  if (chosen) return said("choice" in chosen ? chosen.choice : chosen.choices);
  return (
    Object.entries(value)
      .map(([name, each]) => `${wordsOfName(name).join(" ") || name}: ${said(each)}`)
      .join("; ") || "nothing"
  );
};

/** A tool's answer, or its input, as a person would say it; a long one is cut. */
const inWords = (value: unknown): string => {
  const { data: { result = value, approval } = {} } = Approved.safeParse(value);
  const notes = approval?.notes.map((note) => `"${note}"`).join(", ");
  const words = said(result) + (approval ? ` (approved by ${approval.by.join(", ")}: ${notes})` : "");
  return words.length <= mostCharacters ? words : `${words.slice(0, mostCharacters).toWellFormed()}…`;
};

/** `deploy (website, production)` */
const subjectOf = (toolName: string, input: unknown): string => {
  const texts = input instanceof Object ? Object.values(input).filter((value) => typeof value === "string") : [];
  const title = wordsOfName(toolName).join(" ") || toolName;
  return texts.length === 0 ? title : `${title} (${inWords(texts)})`;
};

const failure = (subject: string, { message, code }: Extract<ActionResult, { ok: false }>): string => {
  if (code === "approval_rejected") return `It was not approved, so I did not ${subject}: ${message}`;
  if (code === "gone") return `Nobody answered in time: ${subject}`;
  if (code === "outcome_unknown") return `I cannot say whether this was done: ${subject}: ${message}`;
  return `That did not work: ${subject}: ${message}`;
};

const answers: Record<string, string> = { choose: "The choice is", form: "Filled in" };

/** The outcome of a call, in words for the space where it was made. */
export const outcomeInWords = (toolName: string, input: unknown, result: ActionResult): string => {
  const subject = subjectOf(toolName, input);
  if (!result.ok) return failure(subject, result);
  if (pendingCallOf(result) !== undefined) return `It is under way: ${subject}. I will say here what comes of it.`;
  return `${answers[toolName] ?? `Done: ${subject}`}: ${inWords(result.value)}`;
};
