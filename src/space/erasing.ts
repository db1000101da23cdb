import * as z from "zod";
import { erasedMark, erasedName } from "../protocol/entity.ts";
import type { ErasedPart, ErasureOf } from "../protocol/erasure.ts";
import { Message } from "../protocol/message.ts";
import type { AwaitedAnswer } from "../protocol/tool-call.ts";
import { isoTime } from "../shared/clock.ts";
import { ColloquyError, suspendedError } from "../shared/errors.ts";
import { sameJson } from "../shared/same-json.ts";
import { type Was, wordIn } from "../shared/stretches.ts";
import { maxErasedRows, maxErasedScan, maxForgottenCharacters } from "./bounds.ts";
import { removeMember, removeSpace } from "./lifecycle.ts";
import { type LogRow, messageOf, tombstoneOf } from "./log/log.ts";
import { type Changed, change, endOfCall } from "./message-changes.ts";
import { wasOf, wordsOf } from "./message-words.ts";
import type { SpaceServices } from "./services.ts";
import { toldLeft } from "./told-origins.ts";

/**
 * Erases from a space, go by go, the messages, the answers and the name of one entity, or everything. The workspace
 * asks, until all is done here and every agent that had it has heard.
 *
 * Invariants
 * 1. A go is one transaction. The same go again changes nothing more and answers the same.
 * 2. A message becomes a tombstone as by its deletion; its words wait in `was` until each agent has heard.
 */
type Named = { entityId: string; names: Set<string> };

/** How a text names somebody's block. */
const named = / "(?:[^"\\]|\\.)*" \((ent_\w+)\)/g;

/** The value without the entity's name and notes, wherever an object is about it. */
const withoutName = (value: unknown, erased: Named): unknown => {
  if (typeof value !== "object" || value === null) return value;
  if (Array.isArray(value)) return value.map((each) => withoutName(each, erased));
  const isIts = [Reflect.get(value, "id"), Reflect.get(value, "entityId")].includes(erased.entityId);
  const entries = Object.entries(value).flatMap(([key, held]): [string, unknown][] => {
    if (isIts && key === "note") return [];
    if (key === "text" && "hidden" in value && typeof held === "string") {
      return [[key, held.replace(named, (all, id) => (id === erased.entityId ? ` "${erasedName}" (${id})` : all))]];
    }
    if (!isIts || key !== "name" || typeof held !== "string") return [[key, withoutName(held, erased)]];
    if (held !== erasedName) erased.names.add(held);
    return [[key, erasedName]];
  });
  return Object.fromEntries(entries);
};

/** Tells agents that forget whose words these are, and under which name. The mark is no words of the message. */
const marked = (entityId: string, name: string, was: Was[]): Was[] => [erasedMark, entityId, name, ...was];

/** The message as it is once it is erased. Undefined: its call is not over. */
const erasedMessage = (services: SpaceServices, row: LogRow, before: Message, erased: Named): Changed | undefined => {
  const updatedSeq = endOfCall(services, row, before.sender.id);
  if (updatedSeq === "open") return undefined;
  erased.names.add(before.sender.name);
  const { clientKey: _, ...left } = tombstoneOf(before, { at: isoTime(services.clock.now()) });
  const message = { ...left, sender: { ...before.sender, name: erasedName } };
  return { row, before, message, updatedSeq, was: marked(erased.entityId, before.sender.name, wasOf(before, row)) };
};

/** The result of an approved call tells who approved, and their notes. */
const Approved = z.looseObject({ approval: z.looseObject({ by: z.array(z.string()), notes: z.array(z.string()) }) });

const withoutNote = (output: unknown, { name, note }: AwaitedAnswer["answers"][number]): unknown => {
  const { data } = Approved.safeParse(output);
  if (!data) return output;
  const by = data.approval.by.map((each) => (each === name ? erasedName : each));
  return { ...data, approval: { ...data.approval, by, notes: data.approval.notes.filter((each) => each !== note) } };
};

/** A message of somebody else, without what the entity is called and has answered there. */
const withoutAnswers = (before: Message, erased: Named): Message => {
  const message = Message.parse(withoutName(before, erased));
  const { answers = [], kind } = before.toolCall?.awaits ?? {};
  const answer = answers.find(({ entityId }) => entityId === erased.entityId);
  if (!message.toolCall || !answer) return message;
  const { output, error, ...toolCall } = message.toolCall;
  const left = kind === "approval" && output !== undefined ? { output: withoutNote(output, answer) } : {};
  const failed = error && { error: kind === "approval" ? error : { ...error, message: erasedName } };
  return { ...message, toolCall: { ...toolCall, ...left, ...failed } };
};

/** The same as a change, where words of the entity go by it. */
const answersErased = (
  { toolCalls }: SpaceServices,
  row: LogRow,
  before: Message,
  erased: Named,
): Changed | undefined => {
  const message = withoutAnswers(before, erased);
  const left = new Set(wordsOf(message));
  const words = wasOf(before, row).filter((each) => !left.has(wordIn(each)) && !erased.names.has(wordIn(each)));
  // An option, a number or a yes is an answer too, and a name may stand beside another's notes.
  const [was, now] = [before, message].map(({ toolCall }) => [toolCall?.output ?? null, toolCall?.error ?? null]);
  if (words.length === 0 && sameJson(was, now)) return undefined;
  const { name = "" } = before.toolCall?.awaits?.answers.find(({ entityId }) => entityId === erased.entityId) ?? {};
  const { updatedSeq } = toolCalls.at(row.seq) ?? {};
  return { row, before, message, updatedSeq, was: marked(erased.entityId, name, words) };
};

/** The next rows of (`after`, `upTo`] that are the entity's. */
const eraseRows = (
  services: SpaceServices,
  { entityId, after, upTo }: { entityId: string; after: number; upTo: number },
): Pick<ErasedPart, "after" | "rows" | "names"> => {
  const { log, toolCalls } = services;
  const erased: Named = { entityId, names: new Set() };
  const end = Math.min(upTo, after + maxErasedScan);
  const found = log.about(entityId, after, end, maxErasedRows);
  const changes: Changed[] = [];
  const renamed: [LogRow, string][] = [];
  let [length, last, rows] = [0, found.length < maxErasedRows ? end : (found.at(-1)?.seq ?? end), 0];
  for (const row of found) {
    // A call's own event is of before anybody had answered it.
    const of = row.type === "space.message.updated" ? log.findMessage(messageOf(row.frame).id) : row;
    const [before] = of?.type === "space.message" ? toolCalls.current([messageOf(of.frame)]) : [];
    const isOwn = of === row && before?.sender.id === entityId && !before.deleted;
    const isAnswered = of && before?.toolCall && !changes.some(({ row: { seq } }) => seq === of.seq);
    const next = isOwn
      ? erasedMessage(services, row, before, erased)
      : isAnswered && answersErased(services, of, before, erased);
    if ((isOwn && !next) || length > maxForgottenCharacters) {
      last = row.seq - 1;
      break;
    }
    rows += 1;
    if (next) {
      changes.push(next);
      length += next.was?.reduce((sum, each) => sum + wordIn(each).length, 0) ?? 0;
      continue;
    }
    const frame = JSON.stringify(withoutName(JSON.parse(row.frame), erased));
    if (frame !== row.frame) renamed.push([row, frame]);
  }
  services.transaction(() => {
    for (const [row, frame] of renamed) log.reframe(row, frame);
    if (changes.length > 0) change(services, changes);
    if (last >= upTo) toolCalls.reshape(entityId, (message) => withoutAnswers(message, erased));
  });
  return { after: last, rows, names: [...erased.names] };
};

/** One go of an erasure. */
export const erase = (services: SpaceServices, workspaceId: string, of: ErasureOf | null): ErasedPart => {
  const { settings, members, log, toolCalls, forgetting, formerAgents, delivery, decisions, router, record } = services;
  const space = settings.find();
  if (space?.workspaceId !== workspaceId) throw new ColloquyError("not_found", "There is no such space: check its id");
  const workspace = { kind: "key", workspaceId, keyId: "workspace" } as const;
  if (of === null && space.deletedSeq === null) removeSpace(services, workspace);
  const { deletedSeq = null } = settings.find() ?? {};
  if (deletedSeq !== null) {
    // All of it goes, and what the entity said here with it.
    const rows = of === null ? deletedSeq - 1 : 0;
    return {
      after: 0,
      upTo: 0,
      rows,
      names: [],
      objects: of === null ? 1 + log.agents().length : 1,
      isDone: forgetting.isOver() && formerAgents.left() === 0 && toldLeft(services) === 0,
    };
  }
  if (!of) throw new Error("a space that is to be erased is deleted by now");
  const { entityId, after, upTo } = of;
  if (members.find(entityId)) removeMember(services, workspace, entityId);
  const nothing = { after, rows: 0, names: [] };
  // Nothing goes before the workspace has stored how far it goes: what this appends is not counted.
  if (upTo === undefined) {
    const end = log.everHad(entityId) || toolCalls.name(entityId) ? log.head().seq : 0;
    return { ...nothing, upTo: end, objects: 1, isDone: end === 0 };
  }
  // Agents hear nothing that lies behind what is undecided, and nobody decides until it is resumed.
  if (space.suspended && decisions.pending().length > 0) record((append) => router.giveUp(suspendedError(), append));
  const done = after < upTo ? eraseRows(services, { entityId, after, upTo }) : nothing;
  // A delivery that was under way brings no name to an agent that has forgotten it: by now each has heard a later one.
  const isTold = done.after >= upTo && delivery.hasTold(upTo);
  const isLetGo = !log.keepsWords() && formerAgents.left() === 0 && toldLeft(services) === 0;
  return { ...done, upTo, objects: 1, isDone: isTold && isLetGo };
};
