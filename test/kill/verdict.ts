import type { Message } from "../../src/protocol/message.ts";
import type { RunStep } from "../../src/protocol/run.ts";
import { answerIn, commandsIn } from "./commands.ts";
import type { AgentEvidence, ClientEvidence, Evidence, SpaceEvidence } from "./evidence.ts";
import { judgeFollowers } from "./followers-verdict.ts";
import type { Payment } from "./refund-desk.ts";
import { counted, once, type Wrong } from "./wrong.ts";

export type Verdict = Wrong & {
  payments: { refund: PaymentFigures; credit: PaymentFigures };
  /** How much was looked at: none of the figures above means anything if these are small. */
  counts: {
    messages: number;
    events: number;
    runs: number;
    connections: number;
    notifications: number;
    deliveries: number;
  };
};

export type PaymentFigures = {
  calls: number;
  /** Payments that took place: requests, or different keys where the server goes by them. */
  effects: number;
  /** Payments of one call after its first. */
  repeated: number;
  /** Calls whose model was told that nobody knows, and how many of them had paid. */
  unknown: number;
  unknownPaid: number;
};

/** D1: what was acknowledged is in the log once; so is every answer. */
const judgeLog = (wrong: Wrong, { name, log, clients }: SpaceEvidence): void => {
  const texts = counted(log.map(({ text }) => text ?? ""));
  const sent = clients.flatMap((client) => client.sent);
  const acknowledged = sent.filter((one) => one.acknowledgedAt !== undefined).map(({ text }) => text);
  once(wrong, acknowledged, texts, (text) => `${name}: the message "${text}"`);
  for (const { text, acknowledgedAt, refused } of sent) {
    if (refused !== undefined) wrong.stuck.push(`${name}: "${text}" was refused: ${refused}`);
    else if (acknowledgedAt === undefined) wrong.stuck.push(`${name}: "${text}" was never acknowledged`);
  }
  const answers = counted(log.flatMap(({ text = "" }) => answerIn(text)?.id ?? []));
  const asked = log.flatMap(({ text = "" }) => commandsIn(text).map(({ id }) => id));
  once(wrong, asked, answers, (id) => `${name}: the answer to #${id}`);
  for (const { toolCall } of log) {
    if (toolCall && (toolCall.status === "running" || toolCall.status === "requires_action")) {
      wrong.stuck.push(`${name}: the call ${toolCall.id} shows as ${toolCall.status}`);
    }
  }
};

/** D3, D4: the log's sequence, without gap or double, and nothing half said. */
const judgeClient = (wrong: Wrong, where: string, log: Message[], client: ClientEvidence): void => {
  const { saw, shows, openStreams, waiting, wire } = client;
  const ids = log.map(({ id }) => id);
  once(wrong, ids, counted(saw), (id) => `${where} saw ${id}`);
  if (saw.join() !== ids.filter((id) => saw.includes(id)).join()) wrong.lost.push(`${where}: saw another order`);
  if (shows.join() !== ids.join()) wrong.lost.push(`${where}: shows another sequence than the log`);
  if (wire.doubled > 0) wrong.doubled.push(`${where}: ${wire.doubled} events came again on a socket`);
  if (wire.forgotten > 0) wrong.lost.push(`${where}: ${wire.forgotten} cursors were unknown to the space`);
  if (openStreams > 0) wrong.stuck.push(`${where}: ${openStreams} open streams`);
  if (waiting > 0) wrong.stuck.push(`${where}: ${waiting} messages still waiting to be sent`);
};

/** A deleted note is a tombstone, and every other note is there. */
const judgeNotes = (wrong: Wrong, { name, log, notes }: SpaceEvidence): void => {
  for (const { text, id, isDeleted } of notes) {
    const found = log.find((message) => message.id === id);
    if (isDeleted && (found?.deleted === undefined || found.text !== undefined)) {
      wrong.lost.push(`${name}: the deletion of ${id}`);
    }
    if (!isDeleted && found?.text !== text) wrong.lost.push(`${name}: the note ${id}, which nobody deleted`);
  }
};

const overStates = new Set(["completed", "skipped"]);

/** D2, R1, R7: each event in one run, each run ended, nothing left. */
const judgeAgent = (wrong: Wrong, log: Message[], agent: AgentEvidence): number => {
  const { id, name, state, runs, inbox, read } = agent;
  const coming = log.filter(({ sender }) => sender.id !== id);
  const texts = coming.filter(({ kind }) => kind === "text");
  // A message deleted before it was read wakes nobody, or wakes and is not read.
  const waking = texts.filter(({ deleted }) => deleted === undefined).map((message) => message.id);
  const gone = texts.length - waking.length;
  const asked = counted(read.flat());
  once(wrong, waking, asked, (messageId) => `${name} was given ${messageId}`);
  const left = inbox.filter(({ wakes }) => wakes).length;
  if (left > 0) wrong.stuck.push(`${name}: ${left} events left in its inbox`);
  if (state !== "idle") wrong.stuck.push(`${name} is ${state}`);
  for (const run of runs.filter(({ status }) => !overStates.has(status))) {
    wrong.stuck.push(`${name}: the run ${run.id} is ${run.status} (${run.error?.message ?? "no error"})`);
  }
  const taken = runs.reduce((sum, { trigger }) => sum + trigger.eventCount, 0);
  const expected = agent.continuity === "timeline" ? texts.length : coming.length - inbox.length;
  if (taken < expected - gone) wrong.lost.push(`${name}: its runs took ${taken} of ${expected} events`);
  if (taken > expected) wrong.doubled.push(`${name}: its runs took ${taken} events, there were ${expected}`);
  return coming.length;
};

type Call = RunStep["toolCalls"][number];

const isUnknown = (call: Call): boolean => JSON.stringify(call.output ?? null).includes("outcome_unknown");

/** R2, R3: a call pays once; one whose outcome is unknown at most once; and no order is paid by two calls. */
const judgePayments = (wrong: Wrong, tool: Payment["tool"], calls: Call[], payments: Payment[]): PaymentFigures => {
  const requests = payments.filter((payment) => payment.tool === tool);
  const paid = tool === "credit" ? [...new Map(requests.map((request) => [request.key, request])).values()] : requests;
  const byOrder = counted(paid.map(({ order }) => order));
  const byKey = counted(paid.map(({ key }) => key));
  const figures = { calls: calls.length, effects: paid.length, repeated: 0, unknown: 0, unknownPaid: 0 };
  for (const call of calls) {
    const times = byKey.get(call.id) ?? 0;
    if (isUnknown(call)) {
      figures.unknown += 1;
      if (times > 0) figures.unknownPaid += 1;
      if (tool === "credit") wrong.lost.push(`${call.id}: an idempotent call was given up as outcome_unknown`);
    } else if (call.status !== "complete") {
      wrong.stuck.push(`${call.id} (${tool}) is ${call.status}: ${JSON.stringify(call.output ?? null)}`);
    } else if (times === 0) {
      wrong.lost.push(`${call.id} says that it paid, and has not`);
    }
    if (times > 1) figures.repeated += times - 1;
  }
  for (const [order, times] of byOrder) {
    if (times > 1) wrong.doubled.push(`the order ${order} was paid ${times} times (${tool})`);
  }
  const known = new Set(calls.map(({ id }) => id));
  for (const key of byKey.keys())
    if (!known.has(key)) wrong.doubled.push(`${key} (${tool}) paid, and is no call of any run`);
  return figures;
};

export const judge = ({ spaces, payments, signedOut, unsealed, followers }: Evidence): Verdict => {
  const wrong: Wrong = { lost: [], doubled: [], stuck: [] };
  let events = 0;
  for (const space of spaces) {
    judgeLog(wrong, space);
    judgeNotes(wrong, space);
    for (const [index, client] of space.clients.entries()) {
      judgeClient(wrong, `${space.name}, client ${index}`, space.log, client);
    }
    for (const agent of space.agents) events += judgeAgent(wrong, space.log, agent);
  }
  for (const status of signedOut) if (status !== 401) wrong.lost.push(`a sign-out: its token gets ${status}`);
  if (unsealed > 0) wrong.lost.push(`the workspace's secret, in ${unsealed} payments`);
  const followed = judgeFollowers(spaces, followers);
  wrong.lost.push(...followed.lost);
  wrong.doubled.push(...followed.doubled);
  wrong.stuck.push(...followed.stuck);
  const agents = spaces.flatMap((space) => space.agents);
  const calls = agents.flatMap(({ runs }) => runs.flatMap(({ steps }) => steps.flatMap((step) => step.toolCalls)));
  const callsOf = (tool: string): Call[] => calls.filter(({ name }) => name === tool);
  const paid = {
    refund: judgePayments(wrong, "refund", callsOf("refund"), payments),
    credit: judgePayments(wrong, "credit", callsOf("credit"), payments),
  };
  const counts = {
    messages: spaces.reduce((sum, { log }) => sum + log.length, 0),
    events,
    runs: agents.reduce((sum, { runs }) => sum + runs.length, 0),
    connections: spaces.flatMap(({ clients }) => clients).reduce((sum, { wire }) => sum + wire.connections, 0),
    notifications: followers.lines.reduce((sum, { told }) => sum + told.length, 0),
    deliveries: followers.receivers.reduce((sum, { tries }) => sum + tries.length, 0),
  };
  return { ...wrong, payments: paid, counts };
};
