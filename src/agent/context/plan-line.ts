import type { Plan } from "../../protocol/plan.ts";
import { excerpt, quote } from "./quote.ts";
import { fromNow, shortTime } from "./time.ts";

const shownCharacters = 200;

/** The plan's kind, and when it is due; relative to `now` too, if that is given. */
const factsOf = (plan: Plan, now: string | undefined): string[] => {
  const facts = [`id: ${plan.id}`];
  if (plan.cron === undefined) facts.push("one-time");
  else facts.push("recurring", `cron: ${plain(plan.cron)}`);
  if (plan.timezone !== undefined) facts.push(`timezone: ${plain(plan.timezone)}`);
  if (plan.status !== "active") facts.push(plan.status);
  else if (plan.nextRunAt !== undefined) {
    facts.push(`${plan.cron === undefined ? "at" : "next"}: ${shortTime(plan.nextRunAt)}`);
    if (now !== undefined) facts.push(fromNow(now, plan.nextRunAt));
  }
  if (plan.lastError !== undefined)
    facts.push(`last error: ${quote(excerpt(plan.lastError.message, shownCharacters))}`);
  return facts;
};

/** A plan with absolute times, for a consciousness: such a line never has to be rewritten. */
export const planLine = (plan: Plan): string =>
  `${quote(plan.name)} (${factsOf(plan, undefined).join(", ")}): ${quote(excerpt(plan.instruction, shownCharacters))}`;

/** A plan with the time until it is due, for an input that is made anew each time. */
export const planLineFrom = (plan: Plan, now: string): string => {
  const how = plan.runAfter === undefined ? "" : `  [created via runAfter: ${quote(plan.runAfter)}]`;
  return `${quote(plan.name)} (${factsOf(plan, now).join(", ")})${how}`;
};

/** A label, a cron or a time zone as it is. Any other text is quoted, so that it cannot pass for more (S2). */
export const plain = (text: string): string =>
  /^[A-Za-z0-9_*?#@/,.+-]+(?: [A-Za-z0-9_*?#@/,.+-]+)*$/.test(text) ? text : quote(text);
