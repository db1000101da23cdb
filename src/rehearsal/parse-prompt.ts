import * as z from "zod";
import * as grammar from "../agent/context/grammar.ts";
import type { ModelPrompt, PromptMessage } from "../models/language-model.ts";
import { actionResultIn, actionResultOf, pendingCallOf } from "./action-result.ts";
import type {
  ActionResult,
  GoalView,
  InboxEvent,
  PastAction,
  PendingCall,
  PersonKind,
  PromptView,
  ReplyView,
  SpaceView,
} from "./prompt-view.ts";

/**
 * Reads a prompt as every model reads it. STATE tells all, STATE CHANGES what is new. The last inbox begins the running
 * cycle, and the tool calls after it are what that cycle did so far. In a timeline the trigger begins the run.
 */
type Section = "none" | "inbox" | "state" | "spaces" | "goals" | "memories" | "thisRun" | "answers" | "trigger";

const sections = new Map<string, Section>([
  [grammar.headings.state, "state"],
  [`${grammar.stateSections.spaces}:`, "spaces"],
  [`${grammar.stateSections.goals}:`, "goals"],
  [`${grammar.stateSections.memories}:`, "memories"],
  [grammar.headings.thisRun, "thisRun"],
  [grammar.headings.answers, "answers"],
  [grammar.headings.trigger, "trigger"],
]);

const sectionOf = (line: string): Section | undefined =>
  sections.get(line) ?? (grammar.inboxHeading.read(line) ? "inbox" : grammar.isHeading(line) ? "none" : undefined);

const kindOf = (type: string): PersonKind => (type === "agent" || type === "service" ? type : "human");

const eventOf = (line: string): InboxEvent | undefined => {
  const message = grammar.inboxEvents.message.read(line);
  if (message) {
    const { spaceId, spaceName, senderName, senderType, triggerSource, messageId, content } = message;
    const said = grammar.quoted.read(content);
    const from = { spaceId, spaceName, senderName, senderKind: kindOf(senderType), triggerSource, messageId };
    const isAwaited = message.notes.endsWith(grammar.expectsReply);
    const kind = message.answers === "" ? "message" : "answer";
    return said ? { kind, ...from, ...said, isAwaited } : { kind: "other" };
  }
  const unanswered = grammar.inboxEvents.unanswered.read(line);
  if (unanswered) {
    const names = grammar.eachName.readAll(unanswered.silent).map(({ name }) => name);
    return { kind: "unanswered", spaceId: unanswered.spaceId, names };
  }
  const service = grammar.inboxEvents.service.read(line);
  if (service) return { kind: "service", ...service };
  const plan = grammar.inboxEvents.plan.read(line);
  if (plan) return { kind: "plan", ...plan };
  const toolResult = grammar.inboxEvents.toolResult.read(line);
  if (toolResult) return { kind: "tool_result", ...toolResult, result: actionResultIn(toolResult.result) };
  return line.startsWith("[") ? { kind: "other" } : undefined;
};

const triggerOf = (fields: ReadonlyMap<string, string>): InboxEvent | undefined => {
  const field = (name: grammar.TriggerField): string => fields.get(name) ?? "";
  const text = (name: grammar.TriggerField): string | undefined => grammar.quoted.read(field(name))?.text;
  const [service, tool, instruction, said] = [text("service"), text("tool"), text("instruction"), text("message")];
  const plan = grammar.named.read(field("plan"));
  const space = grammar.named.read(field("space"));
  const from = grammar.sender.read(field("sender"));
  if (service !== undefined) return { kind: "service", service, payload: field("payload") };
  if (tool !== undefined) {
    return { kind: "tool_result", tool, toolCallId: field("toolCallId"), result: actionResultIn(field("result")) };
  }
  if (plan && instruction !== undefined) return { kind: "plan", name: plan.name, instruction };
  if (!space || !from || said === undefined) return undefined;
  return {
    kind: "message",
    spaceId: space.id,
    spaceName: space.name,
    senderName: from.name,
    senderKind: kindOf(from.type),
    text: said,
    triggerSource: field("triggerSource"),
    messageId: field("messageId"),
    isAwaited: field("senderExpectsReply") === "true",
  };
};

const replyOf = (line: string): ReplyView | undefined => {
  const message = grammar.historyMessage.read(line);
  const found = message
    ? { ...message, name: grammar.sender.read(message.from)?.name }
    : grammar.historyTurn.read(line);
  const words = found?.marks.endsWith(grammar.marks.reply) ? grammar.quoted.read(found.content)?.text : undefined;
  return found?.name === undefined || words === undefined ? undefined : { name: found.name, text: words };
};

const spaceOf = (item: string): SpaceView | undefined => {
  const space = grammar.spaceItem.read(item);
  if (!space) return undefined;
  const members = grammar.member.readAll(space.members).map(({ name, type }) => ({ name, kind: kindOf(type) }));
  return { id: space.id, name: space.name, members };
};

const goalOf = (item: string): GoalView | undefined => {
  const goal = grammar.goalItem.read(item);
  return goal && { id: goal.id, description: goal.description, status: goal.status };
};

const memoryOf = (item: string): { key: string; value: string } | undefined => {
  const memory = grammar.memoryItem.read(item);
  return memory && { key: memory.key, value: memory.value };
};

/** The list after a line of it: a new item, a changed one in its old place, or one that is gone. */
const updated = <Item>(
  list: Item[],
  line: string,
  read: (item: string) => Item | undefined,
  keyOf: (item: Item) => string,
  gone: { read(item: string): { key: string } | undefined },
): Item[] => {
  if (line === grammar.emptyList) return [];
  const written = grammar.listItem.read(line)?.item ?? "";
  const item = read(written);
  const key = item === undefined ? gone.read(written)?.key : keyOf(item);
  const place = list.findIndex((each) => keyOf(each) === key);
  const kept = list.filter((_, index) => index !== place);
  return item === undefined ? kept : kept.toSpliced(place === -1 ? kept.length : place, 0, item);
};

const addTo = <Item>(list: Item[], item: Item | undefined): void => {
  if (item !== undefined) list.push(item);
};

const textOf = (message: PromptMessage): string => {
  if (message.role === "system") return message.content;
  return message.content.map((part) => (part.type === "text" ? part.text : "")).join("\n");
};

/** All texts of one role in a prompt. */
export const promptText = (prompt: ModelPrompt, role: "system" | "user"): string =>
  prompt.flatMap((message) => (message.role === role ? [textOf(message)] : [])).join("\n");

const readSystem = (view: PromptView, text: string): void => {
  const lines = text.split("\n");
  const below = (heading: string): string[] => {
    const from = lines.indexOf(heading) + 1;
    const length = lines.slice(from).findIndex((line) => line !== "" && !line.startsWith("  "));
    return from === 0 ? [] : lines.slice(from, length === -1 ? undefined : from + length).map((line) => line.trim());
  };
  const [name] = below(grammar.headings.identity).flatMap((line) => grammar.identityName.read(line) ?? []);
  view.name = name?.name ?? view.name;
  view.role = below(grammar.headings.role).join("\n").trim() || view.role;
};

const beginSection = (view: PromptView, section: Section): void => {
  if (section === "state") Object.assign(view, { spaces: [], goals: [], memories: [] });
  if (section !== "inbox" && section !== "trigger") return;
  if (section === "trigger") view.continuity = "timeline";
  Object.assign(view, { hasInbox: true, events: [], actions: [] });
};

/** Reads a line of an answer that no history shows: its sender comes before its words. */
const readAnswer = (view: PromptView, line: string): void => {
  const { field, value = "" } = grammar.triggerField.read(line) ?? {};
  const name = field === "sender" ? grammar.sender.read(value)?.name : undefined;
  const text = field === "message" ? grammar.quoted.read(value)?.text : undefined;
  const last = view.replies.at(-1);
  if (name !== undefined) view.replies.push({ name, text: "" });
  else if (text !== undefined && last) last.text = text;
};

const readLine = (view: PromptView, section: Section, line: string): void => {
  const { goneItems } = grammar;
  if (section === "inbox") addTo<InboxEvent>(view.events, eventOf(line));
  else if (section === "spaces") view.spaces = updated(view.spaces, line, spaceOf, ({ id }) => id, goneItems.spaces);
  else if (section === "goals") view.goals = updated(view.goals, line, goalOf, ({ id }) => id, goneItems.goals);
  else if (section === "memories") {
    view.memories = updated(view.memories, line, memoryOf, ({ key }) => key, goneItems.memories);
  } else if (section === "thisRun") {
    if (grammar.earlierCall.read(grammar.listItem.read(line)?.item ?? "")) view.callCount += 1;
    view.resume = grammar.resumeLine.read(line) ?? view.resume;
  } else if (section === "answers") readAnswer(view, line);
  else addTo(view.replies, replyOf(line));
};

const readUser = (view: PromptView, text: string): void => {
  let section: Section = "none";
  const trigger = new Map<string, string>();
  for (const line of text.split("\n").map((each) => each.trim())) {
    const [space, now, begun] = [grammar.activeSpace.read(line), grammar.nowLine.read(line), sectionOf(line)];
    if (space || line === grammar.noActiveSpace) view.activeSpaceId = space?.id;
    else if (now) view.now = now.now;
    else if (begun) beginSection(view, begun);
    else if (section === "trigger") {
      const { field, value } = grammar.triggerField.read(line) ?? { field: line, value: "" };
      trigger.set(field, value);
    } else readLine(view, section, line);
    if (space || line === grammar.noActiveSpace || now) section = "none";
    else section = begun ?? section;
  }
  addTo<InboxEvent>(view.events, triggerOf(trigger));
};

type ToolOutput = Extract<
  Extract<PromptMessage, { role: "tool" }>["content"][number],
  { type: "tool-result" }
>["output"];

const resultOf = (output: ToolOutput): ActionResult => {
  if (output.type === "json") return actionResultOf(output.value);
  if (output.type === "text") return actionResultIn(output.value);
  if (output.type === "content") return { ok: true, value: output.value };
  if (output.type === "execution-denied") return { ok: false, message: output.reason ?? "it was denied" };
  return { ok: false, message: typeof output.value === "string" ? output.value : JSON.stringify(output.value) };
};

/** A call without a result counts as failed: nothing is waited for. */
const noResult: ActionResult = { ok: false, message: "no result" };

const Entered = z.object({ spaceId: z.string() });

/** The active space after a call. */
const placeAfter = ({ toolName, input, result }: PastAction, before: string | undefined): string | undefined => {
  if (!result.ok) return before;
  if (toolName === "leave_space") return undefined;
  return toolName === "enter_space" ? (Entered.safeParse(input).data?.spaceId ?? before) : before;
};

export const parsePrompt = (prompt: ModelPrompt): PromptView => {
  const pending = new Map<string, PendingCall>();
  const view: PromptView = {
    continuity: "consciousness",
    name: "",
    role: "",
    spaces: [],
    goals: [],
    memories: [],
    activeSpaceId: undefined,
    now: undefined,
    events: [],
    actions: [],
    resume: undefined,
    replies: [],
    hasInbox: false,
    callCount: 0,
    pending,
  };
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
          const pendingId = pendingCallOf(action.result);
          if (pendingId !== undefined) pending.set(pendingId, { ...action, spaceId: place });
        }
      }
    }
  }
  return view;
};
