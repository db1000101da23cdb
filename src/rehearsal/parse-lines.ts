import { actionResultIn } from "./action-result.ts";
import type { GoalView, InboxEvent, MemoryView, PersonKind, SpaceMember, SpaceView } from "./prompt-view.ts";

/**
 * The grammar of single lines of a prompt. Names and texts are JSON strings, so a line's structure cannot come
 * from a participant; what does not fit its form is `undefined`, never a guess.
 */
export const quotedText = String.raw`"(?:[^"\\]|\\.)*"`;

export const parseString = (text: string): string | undefined => {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "string" ? value : undefined;
  } catch {
    return undefined;
  }
};

export const kindOf = (text: string | undefined): PersonKind =>
  text === "agent" || text === "service" ? text : "human";

/** What participants said inside a note is quoted, and is no note. */
const parseNotes = (text: string): Record<string, string> =>
  Object.fromEntries(
    [...text.replace(new RegExp(quotedText, "g"), '""').matchAll(/\[([a-zA-Z ]+?):? +([^\]]*)\]/g)].map(
      ([, key = "", value = ""]) => [key.trim(), value.trim()],
    ),
  );

const messagePattern = new RegExp(
  String.raw`^\[(${quotedText}), (\w+)\] (?:\[\w+\] )?(${quotedText}) \((\w+)[^)]*\): (${quotedText})(.*)$`,
);
const labelledPattern = new RegExp(String.raw`^\[(Service|Plan) (${quotedText})[^\]]*\] (.*)$`);
const toolResultPattern = /^\[Tool result ([\w.-]+), (tc_\w+)\] (.*)$/;
const otherPattern = /^\[([^\]]+)\] (.*)$/;

/** `["Family", spc_…] "Husam" (human, id: ent_…, msg_…): "text" [triggerSource: mention]` and its kin. */
export const parseEvent = (line: string): InboxEvent | undefined => {
  const message = messagePattern.exec(line);
  if (message) {
    const [, space = "", spaceId = "", sender = "", kind, body = "", notes = ""] = message;
    const [spaceName, senderName, text] = [parseString(space), parseString(sender), parseString(body)];
    if (spaceName === undefined || senderName === undefined || text === undefined) return undefined;
    return {
      kind: "message",
      spaceId,
      spaceName,
      senderName,
      senderKind: kindOf(kind),
      text,
      notes: parseNotes(notes),
    };
  }
  const labelled = labelledPattern.exec(line);
  if (labelled) {
    const [, type = "", quoted = "", body = ""] = labelled;
    const name = parseString(quoted) ?? "";
    if (type === "Service") return { kind: "service", service: name, payload: body };
    const instruction = parseString(body);
    return instruction === undefined ? undefined : { kind: "plan", name, instruction };
  }
  const [, tool, toolCallId, result] = toolResultPattern.exec(line) ?? [];
  if (tool !== undefined && toolCallId !== undefined && result !== undefined) {
    return { kind: "tool_result", tool, toolCallId, result: actionResultIn(result) };
  }
  const other = otherPattern.exec(line);
  return other ? { kind: "other", label: other[1] ?? "", body: other[2] ?? "" } : undefined;
};

/** `- "Family" (id: spc_…) — "Husam" (human), "Designer" (agent), You` */
export const parseSpace = (line: string): SpaceView | undefined => {
  const match = new RegExp(String.raw`^- (${quotedText}) \(id: (\w+)\)[^—]*(?:— (.*))?$`).exec(line);
  const name = match?.[1] === undefined ? undefined : parseString(match[1]);
  if (!match || name === undefined) return undefined;
  const list = match[3] ?? "";
  const members: SpaceMember[] = [...list.matchAll(new RegExp(String.raw`(${quotedText}) \((\w+)[^)]*\)`, "g"))].map(
    ([, quoted = "", kind]) => ({ name: parseString(quoted) ?? "", kind: kindOf(kind) }),
  );
  const outsideQuotes = list.replace(new RegExp(quotedText, "g"), "");
  return { id: match[2] ?? "", name, members, includesYou: /\bYou\b/.test(outsideQuotes) };
};

/** `- "Complete Q4" (id: q4, active, priority: 2)` */
export const parseGoal = (line: string): GoalView | undefined => {
  const match = new RegExp(String.raw`^- (${quotedText}) \(id: ([\w-]+), (\w+)`).exec(line);
  const description = match?.[1] === undefined ? undefined : parseString(match[1]);
  if (!match || description === undefined) return undefined;
  return { id: match[2] ?? "", description, status: match[3] ?? "active" };
};

/** `- "project_alpha_deadline": "Q4 report due Feb 28"` */
export const parseMemory = (line: string): MemoryView | undefined => {
  const match = new RegExp(`^- (${quotedText}): (${quotedText})`).exec(line);
  const [key, value] = [parseString(match?.[1] ?? ""), parseString(match?.[2] ?? "")];
  return key === undefined || value === undefined ? undefined : { key, value };
};

/** What a line of STATE CHANGES takes away: `- (id: spc_…) you are no longer a member`, `- "key" was cleared`. */
export const parseGone = (line: string): string | undefined => {
  const match = new RegExp(String.raw`^- (?:\(id: ([\w-]+)\)|(${quotedText})) (?:you are no longer|was )`).exec(line);
  return match?.[1] ?? (match?.[2] === undefined ? undefined : parseString(match[2]));
};
