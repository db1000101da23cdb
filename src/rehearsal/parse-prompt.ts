import { z } from "zod";
import type { ModelPrompt, PromptMessage } from "../models/language-model.ts";
import { actionResultIn, actionResultOf, pendingCallOf } from "./action-result.ts";
import { parseEvent, parseGoal, parseGone, parseMemory, parseSpace, parseString } from "./parse-lines.ts";
import type { ActionResult, InboxEvent, PastAction, PromptView, ReplyView } from "./prompt-view.ts";
import { parseField, parseReply, parseResume, triggerEvent } from "./timeline-lines.ts";

/**
 * A prompt as data. A prompt is read as every model reads it: STATE tells all, STATE CHANGES what is new, the last
 * inbox begins the running cycle, and the tool calls after it are what that cycle did so far. In a timeline the trigger
 * is what begins it.
 */
type Section = "none" | "silent" | "inbox" | "state" | "spaces" | "goals" | "memories" | "thisRun" | "trigger";

const headings: [RegExp, Section][] = [
  [/^READ, NOTHING SAID:/, "silent"],
  [/^INBOX \(/, "inbox"],
  [/^INBOX PREVIEW\b/, "none"],
  [/^STATE:/, "state"],
  [/^YOUR SPACES:/, "spaces"],
  [/^GOALS:/, "goals"],
  [/^MEMORIES:/, "memories"],
  [/^THIS RUN SO FAR:/, "thisRun"],
  [/^TRIGGER:/, "trigger"],
  [/^[A-Z][A-Z ,]+(?: \(.*\))?:$/, "none"],
];

const textOf = (message: PromptMessage): string => {
  if (message.role === "system") return message.content;
  return message.content.map((part) => (part.type === "text" ? part.text : "")).join("\n");
};

const emptyView = (): PromptView => ({
  continuity: "consciousness",
  name: "",
  role: "",
  spaces: [],
  goals: [],
  memories: [],
  activeSpaceId: undefined,
  now: undefined,
  readSilently: [],
  events: [],
  actions: [],
  resume: undefined,
  replies: [],
  hasInbox: false,
  callCount: 0,
  pending: new Map(),
});

const readSystem = (view: PromptView, text: string): void => {
  const lines = text.split("\n").map((line) => line.trim());
  const identity = lines.indexOf("IDENTITY:");
  const name = identity === -1 ? undefined : lines.slice(identity).find((line) => line.startsWith("name: "));
  view.name = parseString(name?.slice("name: ".length) ?? "") ?? view.name;
  const role = lines.indexOf("YOUR ROLE:");
  if (role !== -1)
    view.role =
      parseString(lines[role + 1] ?? "") ??
      lines
        .slice(role + 1)
        .join("\n")
        .trim();
};

const addTo = <Item>(list: Item[], item: Item | undefined): void => {
  if (item !== undefined) list.push(item);
};

/** The list with what a line tells: a new or changed thing in its old one's place, a thing that is gone, or nothing. */
const told = <Item>(list: Item[], keyOf: (item: Item) => string, line: string, item: Item | undefined): Item[] => {
  if (line === "(none)") return [];
  const key = item === undefined ? parseGone(line) : keyOf(item);
  const place = list.findIndex((each) => keyOf(each) === key);
  const kept = list.filter((_, index) => index !== place);
  return item === undefined ? kept : kept.toSpliced(place === -1 ? kept.length : place, 0, item);
};

const beginSection = (view: PromptView, section: Section): void => {
  if (section === "state") {
    view.spaces = [];
    view.goals = [];
    view.memories = [];
  }
  if (section === "trigger") view.continuity = "timeline";
  else if (section !== "inbox") return;
  view.hasInbox = true;
  view.events = [];
  view.actions = [];
};

const readLine = (view: PromptView, section: Section, line: string): void => {
  if (section === "silent") addTo<InboxEvent>(view.readSilently, parseEvent(line));
  else if (section === "inbox") addTo<InboxEvent>(view.events, parseEvent(line));
  else if (section === "spaces") view.spaces = told(view.spaces, ({ id }) => id, line, parseSpace(line));
  else if (section === "goals") view.goals = told(view.goals, ({ id }) => id, line, parseGoal(line));
  else if (section === "memories") view.memories = told(view.memories, ({ key }) => key, line, parseMemory(line));
  else if (section === "thisRun") {
    if (line.startsWith("- called ")) view.callCount += 1;
    view.resume = parseResume(line) ?? view.resume;
  } else addTo<ReplyView>(view.replies, parseReply(line));
};

const readUser = (view: PromptView, text: string): void => {
  let section: Section = "none";
  const trigger = new Map<string, string>();
  for (const line of text.split("\n").map((each) => each.trim())) {
    const active = /^ACTIVE SPACE: (?:none|"(?:[^"\\]|\\.)*" \(id: (\w+)\))/.exec(line);
    const now = /^NOW: (\S+)/.exec(line);
    const heading = headings.find(([pattern]) => pattern.test(line));
    if (active) view.activeSpaceId = active[1];
    else if (now) view.now = now[1];
    else if (heading) beginSection(view, heading[1]);
    else if (section === "trigger") trigger.set(...(parseField(line) ?? [line, ""]));
    else readLine(view, section, line);
    if (active || now) section = "none";
    else if (heading) section = heading[1];
  }
  addTo<InboxEvent>(view.events, triggerEvent(trigger));
};

type ToolOutput = Extract<
  Extract<PromptMessage, { role: "tool" }>["content"][number],
  { type: "tool-result" }
>["output"];

const resultOf = (output: ToolOutput): ActionResult => {
  switch (output.type) {
    case "json":
      return actionResultOf(output.value);
    case "text":
      return actionResultIn(output.value);
    case "error-text":
      return { ok: false, message: output.value };
    case "error-json":
      return { ok: false, message: JSON.stringify(output.value) };
    case "execution-denied":
      return { ok: false, message: output.reason ?? "it was denied" };
    case "content":
      return { ok: true, value: output.value };
  }
};

/** A call whose result never came counts as failed: nothing is waited for. */
const noResult: ActionResult = { ok: false, message: "no result" };

const Entered = z.object({ spaceId: z.string() });

/** Where the agent is after a call. */
const placeAfter = ({ toolName, input, result }: PastAction, before: string | undefined): string | undefined => {
  if (!result.ok) return before;
  if (toolName === "leave_space") return undefined;
  return toolName === "enter_space" ? (Entered.safeParse(input).data?.spaceId ?? before) : before;
};

export const parsePrompt = (prompt: ModelPrompt): PromptView => {
  const view = emptyView();
  const open = new Map<string, PastAction>();
  let place: string | undefined;
  for (const message of prompt) {
    if (message.role === "system") readSystem(view, message.content);
    else if (message.role === "user") {
      readUser(view, textOf(message));
      place = view.activeSpaceId;
    } else {
      for (const part of message.content) {
        if (part.type === "tool-call") {
          const action: PastAction = { toolName: part.toolName, input: part.input, result: noResult };
          view.callCount += 1;
          view.actions.push(action);
          open.set(part.toolCallId, action);
        } else if (part.type === "tool-result") {
          const action = open.get(part.toolCallId);
          if (!action) continue;
          action.result = resultOf(part.output);
          place = placeAfter(action, place);
          const pending = pendingCallOf(action.result);
          if (pending !== undefined) view.pending.set(pending, { ...action, spaceId: place });
        }
      }
    }
  }
  return view;
};
