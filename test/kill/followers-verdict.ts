import type { Message } from "../../src/protocol/message.ts";
import type { FollowerEvidence, LineEvidence, ReceiverEvidence, SpaceEvidence } from "./evidence.ts";
import type { Told } from "./receivers.ts";
import { counted, once, type Wrong } from "./wrong.ts";

const mostCounted = 99;
const mostNeeds = 50;

const isText = ({ kind, deleted }: Message): boolean => kind === "text" && deleted === undefined;

/** The notifications that a full read of the log says this person is due. */
const addressedTo = (personId: string, log: Message[]): string[] => {
  const own = new Set(log.filter(({ sender }) => sender.id === personId).map(({ id }) => id));
  return log
    .filter((message) => isText(message) && message.sender.id !== personId)
    .flatMap(({ id, mentions, replyTo }) => {
      if (mentions?.includes(personId)) return `mention ${id}`;
      return replyTo !== undefined && own.has(replyTo) ? `reply ${id}` : [];
    });
};

/** I1, I3, I5. Who was away as something was said is shown it among what needs them. */
const judgeLine = (wrong: Wrong, log: Message[], line: LineEvidence): void => {
  const where = `the line of ${line.name}`;
  const due = addressedTo(line.personId, log);
  const open = line.isReader ? [] : due;
  const others = log.filter(({ deleted, sender }) => !deleted && sender.id !== line.personId).length;
  const same = (what: string, found: number, expected: number): void => {
    if (found !== expected) wrong.lost.push(`${where}: ${what} is ${found}, not ${expected}`);
  };
  for (const [id, times] of counted(line.told)) {
    if (times > 1) wrong.doubled.push(`${where}: "${id}" was told ${times} times`);
    if (!due.includes(id)) wrong.doubled.push(`${where}: "${id}" was told, and never said`);
  }
  // What was read before it was told is no news.
  const known = new Set([...line.told, ...line.shown]);
  for (const id of open) if (!known.has(id)) wrong.lost.push(`${where}: "${id}" was never told`);
  for (const id of [...line.left, ...line.kept]) {
    if (!open.includes(id)) wrong.stuck.push(`${where}: "${id}" is left, and was read`);
  }
  once(wrong, open.slice(-mostNeeds), counted(line.needs), (id) => `${where}: "${id}" among what needs them`);
  for (const id of line.needs) if (!open.includes(id)) wrong.stuck.push(`${where}: "${id}" needs them, and was read`);
  const unread = line.isReader ? 0 : Math.min(mostCounted, others);
  same("unread", line.unread, unread);
  same("unread as listed", line.listed, unread);
  same("mentions", line.mentions, Math.min(mostCounted, open.length));
  if (!line.isOpen) wrong.stuck.push(`${where} is closed`);
  if (!line.frames) return;
  const ids = log.map(({ id }) => id);
  if (line.frames.saw.join() !== ids.join()) wrong.lost.push(`${where}: saw another sequence than the log`);
  if (line.frames.doubled > 0) wrong.doubled.push(`${where}: ${line.frames.doubled} events came again`);
  if (line.frames.forgotten > 0)
    wrong.lost.push(`${where}: ${line.frames.forgotten} cursors were unknown to the space`);
};

/** What a space has to tell an endpoint, in the log's order, and the ends of its runs. */
const eventsOf = ({ log, agents }: SpaceEvidence): string[] => [
  ...log.map(({ id }) => `space.message ${id}`),
  ...log.flatMap(({ id, deleted }) => (deleted ? `message.deleted ${id}` : [])),
  ...agents.flatMap(({ runs }) => runs.map(({ id }) => `run.completed ${id}`)),
];

/** E1: each event is taken at least once, always under the same id, and is handled once by who remembers ids. */
const judgeReceiver = (wrong: Wrong, spaces: SpaceEvidence[], receiver: ReceiverEvidence): void => {
  const where = `the endpoint "${receiver.name}"`;
  const { tries } = receiver;
  const contents = new Map<string, string>();
  for (const { webhookId, events } of tries) {
    const content = events.map(({ id }) => id).join();
    if ((contents.get(webhookId) ?? content) !== content) wrong.lost.push(`${where}: ${webhookId} has other events`);
    contents.set(webhookId, content);
  }
  const handled = new Map<string, Told>();
  for (const event of tries.flatMap(({ events }) => events)) if (!handled.has(event.id)) handled.set(event.id, event);
  const times = counted([...handled.values()].map(({ about }) => about));
  const taken = new Set(tries.flatMap(({ isTaken, events }) => (isTaken ? events.map(({ about }) => about) : [])));
  const inSpaces = [...handled.values()].map(({ spaceId }) => spaceId);
  for (const space of spaces) {
    const expected = eventsOf(space);
    const runs = new Map(space.agents.flatMap((agent) => agent.runs).map((run) => [`run.completed ${run.id}`, run]));
    once(wrong, expected, times, (about) => {
      const run = runs.get(about);
      return `${where}: ${about}${run ? `, ${run.status}, begun by ${run.trigger.type}` : ""}`;
    });
    for (const about of expected) if (times.has(about) && !taken.has(about)) wrong.stuck.push(`${where}: ${about}`);
    const known = new Set(expected);
    for (const { id, about, spaceId } of handled.values()) {
      if (spaceId === space.id && !known.has(about)) wrong.doubled.push(`${where}: ${id} is ${about}, which never was`);
    }
  }
  for (const spaceId of new Set(inSpaces)) {
    const places = [...handled.values()].flatMap((event) => (event.spaceId === spaceId ? (event.place ?? []) : []));
    if (places.some((place, index) => place < (places[index - 1] ?? 0))) wrong.lost.push(`${where}: another order`);
  }
  if (receiver.unsigned > 0) wrong.lost.push(`${where}: ${receiver.unsigned} deliveries without a signature`);
  if (receiver.isDisabled) wrong.stuck.push(`${where} is disabled`);
};

export const judgeFollowers = (spaces: SpaceEvidence[], { lines, receivers }: FollowerEvidence): Wrong => {
  const wrong: Wrong = { lost: [], doubled: [], stuck: [] };
  for (const line of lines) judgeLine(wrong, spaces.find(({ name }) => name === line.space)?.log ?? [], line);
  for (const receiver of receivers) judgeReceiver(wrong, spaces, receiver);
  return wrong;
};
