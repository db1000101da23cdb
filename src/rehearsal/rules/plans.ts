import { jsonOf } from "../../shared/quote.ts";
import type { PlanEvent, SpaceView } from "../prompt-view.ts";
import { announce, type CycleState, callAndTell, type Doing, type Rule, type Turn } from "../turn.ts";
import { escaped, longestNameFirst } from "../words.ts";

/** Plans: "remind me in 2 minutes to …", "every day at 9 …"; and what is said when one is due. */
const duration = String.raw`in\s+((?:an?|one|\d+(?:\.\d+)?)\s*[a-z]+(?:\s+and\s+\d+\s*[a-z]+)?)`;
const remindFirst = new RegExp(String.raw`^\s*remind\s+(me|us)\s+${duration}\s+(?:to|that|about)\s+(.+)$`, "is");
const remindLast = new RegExp(
  String.raw`^\s*remind\s+(me|us)\s+(?:to|that|about)\s+(.+?)\s+${duration}\s*[.!]*$`,
  "is",
);
const daily =
  /^\s*(?:remind (?:me|us)\s+)?every\s+(day|weekday|morning)\s+at\s+(\d{1,2})(?::(\d\d))?\s*(am|pm)?(?:\s+(?:in\s+)?([A-Z]\w+\/\w+|UTC))?\s*,?\s+(.+)$/is;
const hourly = /^\s*every\s+hour\s*,?\s+(.+)$/is;

const withoutEnd = (text: string): string => text.trim().replace(/[.!\s]+$/, "");

/** The words of "say good morning" are `good morning`; "to stretch" is a reminder. */
const wordsOf = (task: string): string => {
  const said = /^(?:say|post|announce|write|tell us)\b[:,]?\s+(.+)$/is.exec(task)?.[1];
  return said ?? `A reminder: ${withoutEnd(task.replace(/^(?:remind (?:me|us) )?(?:to|that|about)\s+/i, ""))}`;
};

const plan = (turn: Turn, name: string, words: string, times: Record<string, string>, when: string): Doing => {
  const instruction = `In ${JSON.stringify(turn.event.spaceName)}, say: ${JSON.stringify(words)}`;
  return callAndTell(
    turn,
    "set_plans",
    { plans: [{ name: name.slice(0, 60), instruction, ...times }] },
    [`I will say so ${when}.`, `planned it ${when}`],
    (reason) => [`I could not plan that: ${reason}`, "could not plan it"],
  );
};

const remindOf = (turn: Turn): Doing | undefined => {
  const first = remindFirst.exec(turn.request);
  const last = remindLast.exec(turn.request);
  const [whom, runAfter, task] = first ? [first[1], first[2], first[3]] : [last?.[1], last?.[3], last?.[2]];
  if (whom === undefined || runAfter === undefined || task === undefined) return undefined;
  const reminder = `a reminder: ${withoutEnd(task)}`;
  const words = /us/i.test(whom) ? reminder.replace("a", "A") : `${turn.event.senderName}, ${reminder}`;
  return plan(turn, withoutEnd(task), words, { runAfter }, `in ${runAfter}`);
};

const recurringOf = (turn: Turn): Doing | undefined => {
  const everyHour = hourly.exec(turn.request)?.[1];
  if (everyHour !== undefined)
    return plan(turn, withoutEnd(everyHour), wordsOf(everyHour), { cron: "0 * * * *" }, "every hour");
  const [, day = "", hours, minutes = "00", half, zone, task] = daily.exec(turn.request) ?? [];
  if (hours === undefined || task === undefined) return undefined;
  const hour = half === undefined ? Number(hours) : (Number(hours) % 12) + (/pm/i.test(half) ? 12 : 0);
  const weekday = /weekday/i.test(day);
  const times = {
    cron: `${Number(minutes)} ${hour} * * ${weekday ? "1-5" : "*"}`,
    ...(zone === undefined ? {} : { timezone: zone }),
  };
  const clock = `${String(hour).padStart(2, "0")}:${minutes}`;
  const when = `every ${weekday ? "weekday" : "day"} at ${clock} ${zone ?? "UTC"}`;
  return plan(turn, withoutEnd(task), wordsOf(task), times, when);
};

export const remind: Rule = { forAgents: false, match: (turn) => remindOf(turn) ?? recurringOf(turn) };

/** The words that a plan's instruction has said in a space: `In "Family", say: "…"`, `Say … in Family`, or the whole where a space is named. */
const saidIn = (instruction: string, { name }: SpaceView): string | undefined => {
  const space = String.raw`(?:the\s+)?["“]?${escaped(name)}["”]?(?![\p{L}\p{N}_])`;
  const verb = "(?:say|post|announce|write)";
  const before = new RegExp(String.raw`^\s*in\s+${space}[\s,:]*${verb}\b[:,]?\s+(.+)$`, "isu").exec(instruction)?.[1];
  const after = new RegExp(String.raw`^\s*${verb}\b[:,]?\s+(.+?)\s+(?:in|to)\s+${space}[\s.!]*$`, "isu").exec(
    instruction,
  )?.[1];
  const words = before ?? after;
  if (words === undefined)
    return new RegExp(String.raw`\b(?:in|to)\s+${space}`, "iu").test(instruction) ? instruction : undefined;
  const quoted = jsonOf(words);
  return typeof quoted === "string" ? quoted : words;
};

/** Carries out a plan that is due. Undefined if it names none of the agent's spaces. */
export const doPlan = (event: PlanEvent, spaces: SpaceView[], cycle: CycleState): Doing | undefined => {
  for (const space of spaces.toSorted(longestNameFirst)) {
    const words = saidIn(event.instruction, space);
    const outcome = { done: `said so in "${space.name}"`, failed: `could not say so in "${space.name}"` };
    if (words) return announce(cycle, space.id, words, outcome);
  }
  return undefined;
};
