import type { Snapshot } from "../../src/agent/context/compose.ts";
import { consciousnessSteps, timelineSnapshots } from "./inputs.ts";
import { script } from "./script.ts";

/** Snapshots of an agent in a conversation, each of which shows the same number of its newest messages. */
type Continuity = Snapshot["continuity"];

/** A turn is a question and its answer. */
const messagesInTurn = 2;
const spaces = 3;

const withMessages = (snapshot: Snapshot, messages: number): Snapshot => {
  if (snapshot.continuity === "consciousness") {
    return { ...snapshot, past: snapshot.past.slice(-messages / messagesInTurn) };
  }
  const histories = snapshot.histories.map((each) => ({ ...each, entries: each.entries.slice(-messages) }));
  return { ...snapshot, histories };
};

const isFull = (snapshot: Snapshot, messages: number): boolean =>
  snapshot.continuity === "consciousness"
    ? snapshot.past.length * messagesInTurn >= messages
    : snapshot.histories.some(({ entries }) => entries.length >= messages);

/** Everything in it by other ids and words: no line of it, but a heading, is a line of the snapshot that it was. */
const salted = (snapshot: Snapshot, salt: number): Snapshot =>
  JSON.parse(
    JSON.stringify(snapshot)
      .replaceAll("0".repeat(8), String(salt).padStart(8, "0"))
      .replaceAll(/region|Region|Project|Reports|Team|daily|exact/g, (word) => `${word}${salt}`),
  ) as Snapshot;

/** The inputs of one conversation one after another. */
export const warmSnapshots = (continuity: Continuity, count: number, messages: number, salt: number): Snapshot[] => {
  const turns = script(messages * spaces + count);
  const steps: { snapshot: Snapshot }[] =
    continuity === "timeline" ? timelineSnapshots(turns) : consciousnessSteps(turns);
  return steps
    .map(({ snapshot }) => snapshot)
    .filter((snapshot) => isFull(snapshot, messages))
    .slice(0, count)
    .map((snapshot) => salted(withMessages(snapshot, messages), salt));
};

/** Inputs that have nothing in common. */
export const coldSnapshots = (continuity: Continuity, count: number, messages: number, salt: number): Snapshot[] => {
  const [first] = warmSnapshots(continuity, 1, messages, 0);
  if (!first) throw new Error("no conversation is long enough");
  return Array.from({ length: count }, (_, index) => salted(first, 1 + salt * count + index));
};
