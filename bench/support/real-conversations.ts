import { globSync, readFileSync } from "node:fs";
import { join, parse } from "node:path";
import * as z from "zod";
import type { Conversations, Said } from "./conversations.ts";

/**
 * Labelled conversations from outside, in the form of LoCoMo (`locomo10.json`, or a folder with a file for each talk).
 * Each has two people, a few dozen sessions, and questions that name their evidence. Not kept here: its licence forbids
 * it. `CONVERSATIONS=FOLDER npm run bench -- recall` measures them beside the generated ones.
 */
const Turn = z.object({ speaker: z.string(), dia_id: z.string(), text: z.string() });
const Asked = z.object({ question: z.string(), evidence: z.array(z.string()), category: z.int() });
const Talk = z.looseObject({ qa: z.array(Asked), conversation: z.looseObject({}).optional() });

const kinds: Record<number, string> = {
  1: "real, evidence in several messages",
  2: "real, when it was",
  3: "real, what it suggests",
  4: "real, a single message",
  5: "real, asked of the wrong person",
};

export const isReal = (kind: string): boolean => kind.startsWith("real");

/** "1:56 pm on 8 May, 2023", as milliseconds since 1970. */
const timeOf = (text: string): number => {
  const [, clock, day] = /^(.+) on (.+)$/.exec(text) ?? [];
  return Date.parse(`${day} ${clock} UTC`);
};

/** Messages of a session stand a minute apart. What evidence names no message of the talk is left out. */
export const conversationOf = (read: unknown, space: string): Conversations => {
  const { qa, conversation, ...rest } = Talk.parse(read);
  const talk: Record<string, unknown> = conversation ?? rest;
  const said = new Map<string, Said>();
  for (let session = 1; `session_${session}` in talk; session += 1) {
    const begins = timeOf(z.string().parse(talk[`session_${session}_date_time`]));
    for (const [index, turn] of z.array(Turn).parse(talk[`session_${session}`]).entries()) {
      const { speaker: sender, dia_id, text } = turn;
      said.set(dia_id, { sender, space, text, at: begins + index * 60_000 });
    }
  }
  const questions = qa.flatMap(({ question, evidence, category }) => {
    const named = new Set(evidence.flatMap((each) => each.match(/D\d+:\d+/g) ?? []));
    const messages = [...named].flatMap((id) => said.get(id) ?? []);
    return messages.length === 0 ? [] : [{ kind: kinds[category] ?? "real", text: question, evidence: messages }];
  });
  return {
    people: [...new Set([...said.values()].map(({ sender }) => sender))],
    spaces: [space],
    said: [...said.values()],
    questions,
  };
};

export const realConversations = (folder: string): Conversations[] =>
  globSync("*.json", { cwd: folder })
    .sort()
    .flatMap((file) => {
      const read: unknown = JSON.parse(readFileSync(join(folder, file), "utf8"));
      const talks = Array.isArray(read) ? read : [read];
      return talks.map((talk, index) => conversationOf(talk, `Talk ${parse(file).name} ${index + 1}`));
    });
