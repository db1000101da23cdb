import { actionResultIn } from "./action-result.ts";
import { kindOf, parseString, quotedText } from "./parse-lines.ts";
import type { InboxEvent, ReplyView, ResumeView } from "./prompt-view.ts";

/**
 * The grammar of a timeline's own lines: the fields under TRIGGER, the messages marked ← REPLY and the line that says
 * why a run goes on. As in parse-lines: names and texts are JSON strings, and what does not fit is `undefined`.
 */
const text = (quoted: string | undefined): string | undefined => parseString(quoted ?? "");

/** `message: "…"` */
export const parseField = (line: string): [name: string, value: string] | undefined => {
  const [, name, value] = /^(\w+): (.*)$/.exec(line) ?? [];
  return name === undefined || value === undefined ? undefined : [name, value];
};

const labelled = (value: string | undefined, label: RegExp): [name: string, label: string] | undefined => {
  const [, quoted, rest = ""] = new RegExp(`^(${quotedText}) (.*)$`).exec(value ?? "") ?? [];
  const name = text(quoted);
  const found = label.exec(rest)?.[1];
  return name === undefined || found === undefined ? undefined : [name, found];
};

/** What the fields under TRIGGER tell: the event that a run is for. */
export const triggerEvent = (fields: ReadonlyMap<string, string>): InboxEvent | undefined => {
  const type = fields.get("type");
  if (type === "service") {
    const service = text(fields.get("service"));
    return service === undefined ? undefined : { kind: "service", service, payload: fields.get("payload") ?? "" };
  }
  if (type === "plan") {
    const plan = labelled(fields.get("plan"), /^\(id: ([^)]*)\)$/);
    const instruction = text(fields.get("instruction"));
    return plan && instruction !== undefined ? { kind: "plan", name: plan[0], instruction } : undefined;
  }
  if (type === "tool_result") {
    const tool = text(fields.get("tool"));
    const result = fields.get("result");
    if (tool === undefined || result === undefined) return undefined;
    return { kind: "tool_result", tool, toolCallId: fields.get("toolCallId") ?? "", result: actionResultIn(result) };
  }
  const space = labelled(fields.get("space"), /^\(id: (\w+)\)$/);
  const sender = labelled(fields.get("sender"), /^\((\w+), id: \w+\)$/);
  const words = text(fields.get("message"));
  if (type !== "space_message" || !space || !sender || words === undefined) return undefined;
  const noted = ["triggerSource", "messageId", "senderExpectsReply"];
  return {
    kind: "message",
    spaceId: space[1],
    spaceName: space[0],
    senderName: sender[0],
    senderKind: kindOf(sender[1]),
    text: words,
    notes: Object.fromEntries(noted.flatMap((name) => (fields.has(name) ? [[name, fields.get(name) ?? ""]] : []))),
  };
};

const marks = String.raw`\[(?:NEW|SEEN)\](?: ← TRIGGER)? ← REPLY$`;
/** `[msg_…] [time] "Ahmad" (human, id: ent_…): "text"  [NEW] ← REPLY`, and the same as a turn of a talk. */
const replyPatterns = [
  new RegExp(String.raw`^\[\w+\] \[[^\]]*\] (${quotedText}) \(\w+, id: \w+\): (${quotedText})  ${marks}`),
  new RegExp(String.raw`^\[(${quotedText}) \(\w+\)\] (${quotedText})  \[\w+\] \[[^\]]*\] ${marks}`),
];

export const parseReply = (line: string): ReplyView | undefined => {
  for (const pattern of replyPatterns) {
    const [, quotedName, quotedWords] = pattern.exec(line) ?? [];
    const [name, words] = [text(quotedName), text(quotedWords)];
    if (name !== undefined && words !== undefined) return { name, text: words };
  }
  return undefined;
};

const names = `${quotedText}(?:, ${quotedText})*`;
const resumePattern = new RegExp(
  String.raw`^← RESUME: (?:(${names}) replied\. )?(?:(${names}) did not reply in time\. )?Continue from here\.$`,
);

const namesIn = (list = ""): string[] =>
  [...list.matchAll(new RegExp(quotedText, "g"))].flatMap(([quoted]) => text(quoted) ?? []);

/** `← RESUME: "Designer" replied. "Ahmad" did not reply in time. Continue from here.` */
export const parseResume = (line: string): ResumeView | undefined => {
  const match = resumePattern.exec(line);
  return match ? { replied: namesIn(match[1]), timedOut: namesIn(match[2]) } : undefined;
};
