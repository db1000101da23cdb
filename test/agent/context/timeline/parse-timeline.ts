import type { ModelMessage } from "ai";
import { linesOf, Reader, readOrigin } from "../reader.ts";

/** A timeline's prompt as data again, in either rendering. Throws where it is anything but its own grammar. */
type Call = { toolName: string; input: unknown; output?: unknown; status?: string };

export type Entry =
  | {
      kind: "message";
      id: string;
      /** Null is the agent itself. */
      sender: { name: string; type: string } | null;
      content: string | Call;
      marks: string;
      replyTo?: string;
      origin?: ReturnType<typeof readOrigin>;
    }
  | Told;

/** A deed of the agent itself. */
export type Told =
  | { kind: "action"; call: Call }
  | { kind: "sent"; text: string; spaceName: string | undefined; messageId: string };

export type Parsed = { headings: string[]; sections: Map<string, string[]>; entries: Entry[] };

const readCall = (reader: Reader): Call => {
  reader.take("called ");
  const toolName = reader.name();
  reader.take("(");
  const input = reader.json();
  reader.take(")");
  const status = reader.takes(" [") ? reader.match(/\w+/) : undefined;
  if (status !== undefined) reader.take("]");
  const output = reader.takes(" → ") ? { output: reader.json() } : {};
  return { toolName, input, ...output, ...(status === undefined ? {} : { status }) };
};

const readContent = (reader: Reader): string | Call =>
  reader.rest.startsWith('"') ? reader.string() : readCall(reader);

const readMarks = (reader: Reader): string => {
  const marks = reader.match(/\[(?:SEEN|NEW)\](?: ← TRIGGER)?(?: ← REPLY)?/);
  reader.end();
  return marks;
};

const time = /\[2026-[\d:TZ-]+\] /;

const readTold = (reader: Reader): Told => {
  reader.take("You: ");
  let told: Told;
  if (reader.takes("sent ")) {
    const text = reader.string();
    reader.take(" to ");
    const spaceName = reader.string();
    reader.take(" (");
    told = { kind: "sent", text, spaceName, messageId: reader.match(/\w+/) };
    reader.take(")");
  } else told = { kind: "action", call: readCall(reader) };
  reader.end();
  return told;
};

/** A line under RECENT RUNS. */
export const readDeed = (line: string): Told => {
  const reader = new Reader(line);
  reader.take("      ");
  return readTold(reader);
};

const readAction = (reader: Reader): Entry => {
  reader.match(time);
  return readTold(reader);
};

const promptEntry = (line: string): Entry => {
  const reader = new Reader(line);
  reader.take("  ");
  if (!reader.rest.startsWith("[msg_")) return readAction(reader);
  reader.take("[");
  const id = reader.match(/\w+/);
  reader.take("] ");
  reader.match(time);
  let sender: { name: string; type: string } | null = null;
  if (!reader.takes("You: ")) {
    const name = reader.string();
    reader.take(" (");
    sender = { name, type: reader.match(/\w+/) };
    reader.take(", ");
    reader.match(/id: \w+\): /);
  }
  const content = readContent(reader);
  reader.take("  ");
  return { kind: "message", id, sender, content, marks: readMarks(reader) };
};

const turnEntry = (line: string, role: string): Entry => {
  const reader = new Reader(line);
  if (/^\[2026/.test(line)) return readAction(reader);
  let sender: { name: string; type: string } | null = null;
  if (role === "user" && !reader.takes("You: ")) {
    reader.take("[");
    const name = reader.string();
    reader.take(" (");
    sender = { name, type: reader.match(/\w+/) };
    reader.take(")] ");
  }
  const content = readContent(reader);
  reader.take("  [");
  const id = reader.match(/\w+/);
  reader.take("] ");
  reader.match(time);
  return { kind: "message", id, sender, content, marks: readMarks(reader) };
};

const readNote = (line: string, entry: Entry | undefined): void => {
  if (entry?.kind !== "message") throw new Error(`a note without its message: ${line}`);
  const reader = new Reader(line);
  reader.take("      [");
  if (reader.takes("reply to ")) {
    entry.replyTo = reader.match(/\w+/);
    reader.take("]");
  } else entry.origin = readOrigin(reader);
  reader.end();
};

const heading =
  /^(?:(?:YOUR SPACES|GOALS|MEMORIES|PLANS|ACTIVE RUNS|THIS RUN SO FAR|TRIGGER):$|ACTIVITY \(|RECENT RUNS \(|TAKEN OVER \(|SPACE HISTORY \(|ACTIVE SPACE: |NOW: |← RESUME: )/;

export const parseTimeline = (messages: ModelMessage[]): Parsed => {
  const parsed: Parsed = { headings: [], sections: new Map(), entries: [] };
  let section: string[] = [];
  let inHistory = false;
  for (const { role, content } of messages) {
    if (typeof content !== "string") throw new Error("only texts");
    for (const line of linesOf(content)) {
      if (line === "") continue;
      if (role === "user" && heading.test(line)) {
        const name = /^(?:[A-Z ]+[A-Z]|← RESUME)/.exec(line)?.[0] ?? "";
        parsed.headings.push(name);
        section = [line];
        parsed.sections.set(name, section);
        inHistory = name === "SPACE HISTORY";
      } else if (!inHistory) {
        if (!line.startsWith("  ")) throw new Error(`a line of nobody: ${JSON.stringify(line)}`);
        section.push(line);
      } else if (/^ {6}\[/.test(line)) readNote(line, parsed.entries.at(-1));
      else if (line === "  (no messages)") continue;
      else parsed.entries.push(line.startsWith("  ") ? promptEntry(line) : turnEntry(line, role));
    }
  }
  return parsed;
};
