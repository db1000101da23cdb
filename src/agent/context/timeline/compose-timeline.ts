import type { ModelMessage } from "ai";
import type { Dropped } from "../../records.ts";
import { activitySection } from "../activity.ts";
import { earlierCall, headings, listItem, nowLine, resumeLine } from "../grammar.ts";
import { renderInstructions, rulesSection } from "../instructions.ts";
import { callLine, excerpt, quote } from "../quote.ts";
import {
  type Composed,
  type Cut,
  keepFitting,
  linesTokens,
  lineTokens,
  type Section,
  sectionOf,
  sectionOfBlocks,
  systemSections,
  tokensIn,
  told,
} from "../sections.ts";
import { shortTime } from "../time.ts";
import { asMessages, historySections, marksOf } from "./history.ts";
import type { ActiveRun, Resume, TimelineSnapshot } from "./snapshot.ts";
import { goalsSection, memoriesSection, plansSection, spacesSection } from "./state-sections.ts";
import { activeSpaceLine, triggerLines } from "./trigger.ts";

/** Blank lines, and what a message costs beside its text. */
const frameTokens = 16;
/** Kept free for the headings and notes of sections that have no room for anything else. */
const headingTokens = 320;
/** The history leaves this share of the budget to the results of the run's calls, up to `mostForCalls` tokens. */
const callsShare = 0.15;
const mostForCalls = 4000;

const textOf = (sections: Section[]): string => sections.map(({ text }) => text).join("\n");

/**
 * Every timeline run reads the space's history, from stable to volatile. Trigger, active space and time come last.
 * Trigger, runs and the invocation so far are never cut. The room that they leave goes to spaces, goals, plans and the
 * run's earlier calls, then to memories, activity and the history, which leaves some to the run.
 * If the model refused an input as too long, everything that may be cut is halved, whatever the config allows.
 */
export const composeTimeline = (snapshot: TimelineSnapshot): Composed => {
  const { base, toolRules, tools, context, correction, state, own, refused } = snapshot;
  const instructions = renderInstructions(state.agentId, { ...base, toolRules });
  const system = systemSections(instructions, [rulesSection(toolRules)]);
  const invocation = told("this_invocation", own);
  const runs = sectionOf("active_runs", activeRunLines(snapshot.activeRuns, snapshot.moreRuns));
  const last = [
    sectionOf("trigger", triggerLines(snapshot.trigger, base.messaging)),
    sectionOf("active_space", [activeSpaceLine(snapshot.activeSpace)]),
    sectionOf("now", [nowLine.write({ now: shortTime(snapshot.now) })]),
  ];

  const uncut = tokensIn([...system, invocation, runs, ...last]);
  const usual = (context.maxTokens - context.reservedResponseTokens) / correction;
  const budget = refused === undefined ? usual : Math.min(usual, uncut + (refused - uncut) / 2);
  let room = budget - frameTokens - headingTokens - uncut;
  const dropped: Dropped[] =
    refused === undefined ? [] : [{ name: "history", reason: `the model refused about ${refused} tokens as too long` }];
  const take = (cut: Cut): Section => {
    room -= cut.section.tokens;
    dropped.push(...cut.dropped);
    return cut.section;
  };
  const { shown: blocks, dropped: withheld } = state.blocks ?? { shown: [], dropped: [] };
  const documents = take({ section: sectionOfBlocks(blocks.map(({ text }) => text)), dropped: withheld });
  const spaces = take(spacesSection(snapshot, room));
  const goals = take(goalsSection(snapshot, room));
  const plans = take(plansSection(snapshot, room));
  const thisRun = snapshot.resume === null ? [] : [take(resumeSection(snapshot.resume, room))];
  const memories = take(memoriesSection(snapshot, room, context.memoryTokens / correction - documents.tokens));
  const { activity } = state;
  const others = activity ? [take(activitySection(activity, snapshot.now, room))] : [];
  const marks = marksOf(snapshot);
  const forCalls = Math.max(0, Math.min(mostForCalls, budget * callsShare) - invocation.tokens);
  const histories = historySections(snapshot, marks, room - forCalls);
  dropped.push(...histories.flatMap((history) => history.dropped));

  const head = [...(blocks.length === 0 ? [] : [documents]), spaces, goals, memories];
  const tail = [plans, runs, ...thisRun, ...others.filter(({ text }) => text !== ""), ...last];
  const shown = histories.map((history) => history.shown);
  const inPrompt = [textOf(head), ...histories.map(({ section }) => section.text), textOf(tail)].join("\n\n");
  const input: ModelMessage[] =
    context.history === "messages"
      ? asMessages(textOf(head), shown, textOf(tail), marks)
      : [{ role: "user", content: inPrompt }];
  const sections = [...system, ...head, ...histories.map(({ section }) => section), ...tail, invocation];
  return {
    instructions,
    messages: [...input, ...own],
    tools,
    sections: sections.filter(({ tokens }) => tokens > 0),
    tokens: Math.ceil((tokensIn(sections) + frameTokens) * correction),
    dropped,
    unshown: shown.map(({ history, earlier }) => ({ spaceId: history.space.id, messages: earlier })),
    firstCycle: 0,
  };
};

/** The run's calls before its wait, the newest that fit `room`, and why it goes on. */
const resumeSection = ({ soFar, replies, timedOut, gone = [] }: Resume, room: number): Cut => {
  const heading = headings.thisRun;
  const why = resumeLine.write({ replied: replies.map(({ name }) => name), timedOut, gone });
  const calls = soFar.map((action) => `  ${listItem.write({ item: earlierCall.write({ call: callLine(action) }) })}`);
  const forCalls = room - linesTokens([heading, why]);
  const { kept, left } = keepFitting(calls, forCalls, lineTokens, (_, index) => -index);
  const shown = calls.length === 0 ? ["  (no calls)"] : kept;
  if (left.length === 0) return { section: sectionOf("this_run", [heading, ...shown, why]), dropped: [] };
  const note = `  (${left.length} earlier calls are not shown)`;
  return {
    section: sectionOf("this_run", [heading, note, ...shown, why]),
    dropped: [{ name: "this_run", reason: `${left.length} earlier calls do not fit context.maxTokens` }],
  };
};

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

/** The agent's active runs, so that it begins nothing twice. */
export const activeRunLines = (runs: ActiveRun[], more = 0): string[] => [
  "ACTIVE RUNS:",
  ...runs.map(
    (run) =>
      `  - ${run.runId} (${run.isThis ? "this run" : run.status}) — ${run.waiting ? waitingFor(run.waiting) : begunBy(run.begunBy)}`,
  ),
  ...(more === 0 ? [] : [`  - and ${more} earlier ones that wait for their tools; get_my_runs lists them`]),
];
