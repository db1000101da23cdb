import type { ModelMessage } from "ai";
import type { Answers, Dropped } from "../../../protocol/exported-history.ts";
import type { RunStatus } from "../../../protocol/run.ts";
import { maxRecentRunsTokens } from "../../bounds.ts";
import type { InboxData } from "../../records.ts";
import { activitySection } from "../activity.ts";
import {
  type AgentState,
  type InputParts,
  type SpaceRef,
  type StateLine,
  type StateLines,
  stateLines,
} from "../agent-state.ts";
import { blocksText, type KnownShare, shareLines } from "../blocks.ts";
import { type Action, type BegunBy, begunByLine } from "../deeds.ts";
import * as grammar from "../grammar.ts";
import { renderInstructions, rulesSection } from "../instructions.ts";
import { forCalls, inputBudget } from "../limits.ts";
import {
  type Composed,
  type Cut,
  listSection,
  type Section,
  sectionOf,
  systemSections,
  textSection,
  tokensIn,
} from "../sections.ts";
import { brief, callLine, quote, quoteJson, shortTime } from "../wording.ts";
import { asMessages, type History, type ShownHistory, showHistory } from "./history.ts";
import { type PastRuns, recentRunsSection } from "./past-runs.ts";

/** A run of this agent that is under way or waits. */
export type ActiveRun = {
  runId: string;
  status: RunStatus;
  isThis: boolean;
  begunBy: BegunBy;
  /** Its question and whose answers it waits for, or its call and what that waits for. */
  waiting?:
    | { callId: string; text: string; spaceName: string; names: string[] }
    | { call: Action; spaceName: string | undefined; awaits: "approval" | "answer" | "server" }
    | undefined;
};

/** The data of one invocation's input. `now` is when it began, so that its steps share a prefix. */
export type TimelineSnapshot = InputParts & {
  continuity: "timeline";
  /** ISO 8601. */
  now: string;
  state: AgentState;
  /** The history of the trigger's space, and of the space where it waited, if another. Empty for a plan or a service. */
  histories: History[];
  /** Runs of this agent that have ended. */
  past: PastRuns;
  /** This one too. */
  activeRuns: ActiveRun[];
  /** How many more runs wait for tools. */
  moreRuns?: number;
  trigger: InboxData;
  /** `why`: the trigger's space, where the run was when it began to wait, or where the call was made whose result came. */
  activeSpace: (SpaceRef & { why: keyof typeof whys }) | null;
  /** The run goes on after a wait, in a fresh invocation. `soFar`: its earlier calls, oldest first. */
  resume: (Answers & { soFar: Action[] }) | null;
  /** The answers to the run's questions. */
  answers: InboxData[];
  /** The runs that this one absorbed before it was composed, and what began them. */
  takenOver: { runId: string; event: InboxData }[];
  /** Lines about messages that were edited or deleted since the run before this one was told of them. */
  changes?: string[];
  /** Estimated tokens of the input that the model refused as too long, where this one is composed instead. */
  refused?: number | undefined;
};

/** Blank lines, and what a message costs beside its text. */
const frameTokens = 16;
/** Kept free for the headings and notes of sections that have no room for anything else. */
const headingTokens = 320;
/** The history leaves this share of the budget to what the agent's runs did elsewhere. */
const pastShare = 0.15;

const textOf = (sections: Section[]): string => sections.map(({ text }) => text).join("\n");

/**
 * Every timeline run reads the space's history, from stable to volatile. Trigger, active space and time come last.
 * Trigger and active runs are never cut. The room that they leave goes first to spaces, goals, plans, the run's earlier
 * calls and what it took over. Then come memories, activity and the history, which leaves some to recent runs and the
 * run. If the model refused an input as too long, everything that may be cut is halved, whatever the config allows.
 */
export const composeTimeline = (snapshot: TimelineSnapshot): Composed => {
  const { config, limits, tools, correction, state, resume, refused, now } = snapshot;
  const instructions = renderInstructions(state.agentId, config, [], state.compartmentSpaceId);
  const system = systemSections(instructions, [rulesSection(config.toolRules)]);
  const runs = sectionOf("active_runs", activeRunLines(snapshot));
  const last = [
    sectionOf("trigger", triggerLines(snapshot)),
    sectionOf("active_space", [activeSpaceLine(snapshot)]),
    sectionOf("now", [grammar.nowLine.write({ now: shortTime(now) })]),
  ];

  const uncut = tokensIn([...system, runs, ...last]);
  const usual = inputBudget(snapshot);
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
  const documents = take({ section: textSection("blocks", blocksText(blocks)), dropped: withheld });
  const shares = state.shares && state.shares.length > 0 ? [take(sharesSection(state.shares, room))] : [];
  const lists = stateLines(state, now, snapshot.activeSpace?.id);
  const spaces = take(stateSection("spaces", lists.spaces, room));
  const goals = take(stateSection("goals", lists.goals, room));
  const plans = take(stateSection("plans", lists.plans, room));
  const thisRun = resume === null ? [] : [take(resumeSection(resume, room))];
  const takenOver = take(takenOverSection(snapshot, room));
  const forMemories = limits.memoryTokens / correction - documents.tokens;
  const memories = take(stateSection("memories", lists.memories, room, forMemories));
  const changes = take(changesSection(snapshot, room));
  const others = state.activity ? [take(activitySection(state.activity, now, room))] : [];

  const { past } = snapshot;
  const forPast = past.runs.length === 0 ? 0 : Math.max(0, Math.min(maxRecentRunsTokens, budget * pastShare));
  const each = snapshot.histories.length;
  const ofHistory = limits.historyTokens / correction / each;
  const marks = {
    agentId: state.agentId,
    triggerId: snapshot.trigger.type === "space_message" ? snapshot.trigger.delivered.message.id : null,
    replyIds: new Set(resume?.replies.map(({ messageId }) => messageId)),
  };
  const asTurns = config.context.history === "messages";
  const newest = config.context.historyMessages;
  const historiesIn = (tokens: number): ShownHistory[] => {
    const ofRoom = (tokens - forCalls(budget) - forPast) / each;
    const rule = ofRoom < ofHistory ? "maxTokens" : "historyTokens";
    const most = { newest, tokens: Math.min(ofRoom, ofHistory), rule, asTurns } as const;
    return snapshot.histories.map((history) => showHistory(history, marks, most));
  };
  const { cut: besides, histories } = withAnswers(snapshot, room, historiesIn);
  const answers = take(besides);
  const shown = histories.map(({ section }) => section);
  // ACTIVE RUNS tells these questions.
  const asked = snapshot.activeRuns.flatMap(({ waiting }) => (waiting && "callId" in waiting ? [waiting.callId] : []));
  const standing = new Set([...asked, ...histories.flatMap((history) => history.standing)]);
  const recent = recentRunsSection(past, standing, Math.min(forPast, room));

  const head = [...(blocks.length === 0 ? [] : [documents]), ...shares, spaces, goals, memories];
  const told = [recent.section, plans, runs, ...thisRun, answers, takenOver, changes, ...others, ...last];
  const tail = told.filter(({ text }) => text !== "");
  // A blank line parts the recent runs from what follows, as it parts the histories.
  const end = [recent.section.text, textOf(tail.filter((each) => each !== recent.section))]
    .filter(Boolean)
    .join("\n\n");
  const inPrompt = [textOf(head), ...shown.map(({ text }) => text), end].join("\n\n");
  const messages: ModelMessage[] = asTurns
    ? asMessages(textOf(head), histories, end)
    : [{ role: "user", content: inPrompt }];
  const sections = [...system, ...head, ...shown, ...tail];
  return {
    instructions,
    messages,
    tools,
    sections: sections.filter(({ tokens }) => tokens > 0),
    tokens: Math.ceil((tokensIn(sections) + frameTokens) * correction),
    dropped: [...dropped, ...histories.flatMap((history) => history.dropped), ...recent.dropped],
    unshown: histories.map(({ unshown }) => unshown),
    firstCycle: 0,
  };
};

/** The blocks of others that are not in this input. */
const sharesSection = (shares: KnownShare[], room: number): Cut => {
  const { lines, more } = shareLines(shares);
  return listSection(room, {
    ...{ name: "shares", heading: `${grammar.stateSections.blocks}:` },
    lines: lines.map((item) => `  ${grammar.listItem.write({ item })}`),
    ranks: [...lines.keys()],
    note: (left) => `  (${left.length} more are not shown: block_list lists them)`,
    ...(more[0] === undefined ? {} : { end: `  ${more[0]}` }),
    reason: (left) => `${left} do not fit context.maxTokens: block_list lists them`,
  });
};

const namedKeys = 3;

/** A list of the agent's state as the section that fits `room`, and `most` if that is given. */
const stateSection = (
  name: keyof StateLines,
  items: StateLine[],
  room: number,
  most = Number.POSITIVE_INFINITY,
): Cut => {
  const rule = room < most ? "context.maxTokens" : "context.memoryTokens";
  const hint = (left: number[]): string => {
    if (name !== "memories") return `more ${name} are not shown${name === "plans" ? ": get_plans reads them" : ""}`;
    const keys = left.slice(0, namedKeys).map((index) => quote(items[index]?.key ?? ""));
    return `older ones are not shown: get_memories reads them, such as ${keys.join(", ")}`;
  };
  return listSection(Math.min(room, most), {
    ...{ name, heading: `${grammar.stateSections[name]}:`, empty: `  ${grammar.emptyList}` },
    lines: items.map(({ line }) => `  ${grammar.listItem.write({ item: line })}`),
    ranks: items.map(({ rank }) => rank),
    note: (left) => `  (${left.length} ${hint(left)})`,
    reason: (left) => `${left} do not fit ${rule}`,
  });
};

/** The run's calls before its wait, the newest that fit `room`, and why it goes on. */
const resumeSection = (
  { soFar, replies, timedOut, gone = [], apart = [], sealed = [] }: NonNullable<TimelineSnapshot["resume"]>,
  room: number,
): Cut =>
  listSection(room, {
    ...{ name: "this_run", heading: grammar.headings.thisRun, empty: "  (no calls)" },
    lines: soFar
      .map((action) => grammar.earlierCall.write({ call: callLine(action) }))
      .map((item) => `  ${grammar.listItem.write({ item })}`),
    note: ({ length }) => `  (${length} earlier calls are not shown)`,
    end: grammar.resumeLine.write({ replied: replies.map(({ name }) => name), timedOut, gone, apart, sealed }),
    reason: (left) => `${left} earlier calls do not fit context.maxTokens`,
  });

const eventFields = (
  trigger: InboxData,
  { messaging }: TimelineSnapshot["config"],
): Partial<Record<grammar.TriggerField, string>> => {
  const { type } = trigger;
  if (type === "plan") {
    const { planName: name, planId: id, instruction, scheduledAt } = trigger;
    const plan = grammar.named.write({ name, id });
    return { type, plan, instruction: quote(instruction), scheduledAt: quote(shortTime(scheduledAt)) };
  }
  if (type === "service") return { type, service: quote(trigger.serviceName), payload: quoteJson(trigger.payload) };
  if (type === "tool_result") {
    const { tool, toolCallId, result } = trigger;
    return { type, tool: quote(tool), toolCallId, result: quoteJson(result) };
  }
  const { message, triggerSource } = trigger.delivered;
  const isExpected = message.expectsReply === true && triggerSource !== "proactive_router";
  const answers = trigger.answers?.map(({ messageId, text }) => `${messageId} ${quote(text)}`).join(", ");
  return {
    type,
    ...(answers === undefined ? {} : { answers }),
    triggerSource: triggerSource === "none" ? "every_message" : triggerSource,
    space: grammar.named.write({ name: trigger.spaceName, id: message.spaceId }),
    sender: grammar.sender.write(message.sender),
    message: quote(message.text ?? ""),
    messageId: message.id,
    timestamp: quote(shortTime(message.createdAt)),
    ...(messaging === "threaded" ? { senderExpectsReply: String(isExpected) } : {}),
  };
};

const eventLines = (event: InboxData, config: TimelineSnapshot["config"]): string[] =>
  Object.entries(eventFields(event, config)).map(([field, value]) => grammar.triggerField.write({ field, value }));

/** The answers that no history shows, each whole, and the histories beside them: less room shows fewer messages. */
const withAnswers = (
  { answers, config }: TimelineSnapshot,
  room: number,
  historiesIn: (tokens: number) => ShownHistory[],
): { cut: Cut; histories: ShownHistory[] } => {
  const cutOf = (those: InboxData[]): Cut =>
    listSection(room, {
      ...{ name: "answers", heading: grammar.headings.answers },
      lines: those.map((event) => `  - ${eventLines(event, config).join("\n    ")}`),
      note: ({ length }) => `  (${length} more do not fit: get_my_runs reads them)`,
      reason: (left) => `${left} do not fit context.maxTokens`,
    });
  for (let beside: InboxData[] = []; ; ) {
    const cut = cutOf(beside);
    const histories = historiesIn(room - cut.section.tokens);
    const standing = new Set(histories.flatMap((history) => history.standing));
    const unshown = answers.filter((data) => "delivered" in data && !standing.has(data.delivered.message.id));
    if (unshown.length <= beside.length) return { cut, histories };
    beside = unshown;
  }
};

/** Why this run runs. Never cut. */
const triggerLines = ({ trigger, config }: TimelineSnapshot): string[] => [
  grammar.headings.trigger,
  ...eventLines(trigger, config).map((line) => `  ${line}`),
];

/** The events that began the absorbed runs, each whole. */
const takenOverSection = ({ takenOver, config }: TimelineSnapshot, room: number): Cut =>
  listSection(room, {
    ...{ name: "taken_over", heading: "TAKEN OVER (of runs that you absorbed; theirs to answer is yours now):" },
    lines: takenOver.map(({ runId, event }) =>
      [`  - run: ${runId}`, ...eventLines(event, config).map((line) => `    ${line}`)].join("\n"),
    ),
    note: ({ length }) => `  (${length} more do not fit: get_my_runs reads them)`,
    reason: (left) => `${left} do not fit context.maxTokens`,
  });

/** The messages of earlier runs that were edited or deleted since. */
const changesSection = ({ changes = [] }: TimelineSnapshot, room: number): Cut =>
  listSection(room, {
    ...{ name: "state_changes", heading: `${grammar.headings.stateChanges}\n  MESSAGES:` },
    lines: changes.map((item) => `    ${grammar.listItem.write({ item })}`),
    note: ({ length }) => `    (${length} earlier ones are not shown)`,
    reason: (left) => `${left} do not fit context.maxTokens`,
  });

const whys = {
  trigger: "auto-set from trigger",
  wait: "as you left it",
  call: "where you called the tool",
  own: "the space that this run is of",
};

const activeSpaceLine = ({ activeSpace: active }: TimelineSnapshot): string =>
  active === null ? grammar.noActiveSpace : grammar.activeSpace.write({ ...active, why: `  [${whys[active.why]}]` });

const textCharacters = 80;
/** Payloads and results begin with what they have in common. Of a question it is all that this input tells. */
const longCharacters = 200;

const whyOf = ({ begunBy }: ActiveRun): string =>
  begunByLine(begunBy, begunBy.type === "service" || begunBy.type === "tool_result" ? longCharacters : textCharacters);

const awaited = { approval: "somebody's approval", answer: "somebody's answer", server: "its server" } as const;

const waitingFor = (waiting: NonNullable<ActiveRun["waiting"]>): string => {
  if ("call" in waiting) {
    const where = waiting.spaceName === undefined ? "" : ` in ${quote(waiting.spaceName)}`;
    return `${callLine(waiting.call)}${where}, waiting for ${awaited[waiting.awaits]}`;
  }
  const { text, spaceName, names } = waiting;
  return `sent ${brief(text, longCharacters)} in ${quote(spaceName)}, waiting for ${names.map(quote).join(", ")}`;
};

/** The agent's active runs, so that it begins nothing twice. */
const activeRunLines = ({ activeRuns, moreRuns = 0 }: TimelineSnapshot): string[] => [
  "ACTIVE RUNS:",
  ...activeRuns.map(
    (run) =>
      `  - ${run.runId} (${run.isThis ? "this run" : run.status}) — ${run.waiting ? `${waitingFor(run.waiting)}; begun by ` : ""}${whyOf(run)}`,
  ),
  ...(moreRuns === 0 ? [] : [`  - and ${moreRuns} earlier ones that wait for their tools; get_my_runs lists them`]),
];
