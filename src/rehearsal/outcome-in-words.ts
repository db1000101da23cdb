import { pendingCallOf } from "./action-result.ts";
import { inWords } from "./in-words.ts";
import type { ActionResult } from "./prompt-view.ts";
import { wordsOfName } from "./tool-view.ts";

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

/** What came of a call, in words for the space where it was made. */
export const outcomeInWords = (toolName: string, input: unknown, result: ActionResult): string => {
  const subject = subjectOf(toolName, input);
  if (!result.ok) return failure(subject, result);
  if (pendingCallOf(result) !== undefined) return `It is under way: ${subject}. I will say here what comes of it.`;
  return `${answers[toolName] ?? `Done: ${subject}`}: ${inWords(result.value)}`;
};
