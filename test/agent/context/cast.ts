import type { ModelMessage } from "ai";
import type { AgentState, InputParts, KnownSpace, SpaceRef } from "../../../src/agent/context/agent-state.ts";
import type { KnownShare } from "../../../src/agent/context/blocks.ts";
import { compose } from "../../../src/agent/context/compose.ts";
import type { ConsciousnessSnapshot } from "../../../src/agent/context/consciousness/compose-consciousness.ts";
import { type InboxMessageInput, renderInboxMessage } from "../../../src/agent/context/consciousness/inbox-message.ts";
import { toldState } from "../../../src/agent/context/consciousness/state.ts";
import type { Deed } from "../../../src/agent/context/deeds.ts";
import { resolveLimits } from "../../../src/agent/context/limits.ts";
import type { ActiveRun, TimelineSnapshot } from "../../../src/agent/context/timeline/compose-timeline.ts";
import type { History, HistoryEntry } from "../../../src/agent/context/timeline/history.ts";
import type { PastRuns } from "../../../src/agent/context/timeline/past-runs.ts";
import type { InboxData, KnownMessage as Message } from "../../../src/agent/records.ts";
import { AgentConfig } from "../../../src/protocol/agent.ts";
import type { EntityType } from "../../../src/protocol/entity.ts";
import type { Goal, Memory } from "../../../src/protocol/mind.ts";
import type { Plan } from "../../../src/protocol/plan.ts";
import type { TriggerSource } from "../../../src/protocol/rpc.ts";

/** The people, agents and spaces of the seeds, and short ways to say what happened among them. */
export type Who = { id: string; name: string; type: EntityType };

const who = (name: string, type: EntityType): Who => ({
  id: `ent_${name.replace(/\W/g, "").toUpperCase()}`,
  name,
  type,
});
export const human = (name: string): Who => who(name, "human");
export const agent = (name: string): Who => who(name, "agent");

export const husam = human("Husam");
export const ahmad = human("Ahmad");
export const sarah = human("Sarah");
export const muhammad = human("Muhammad");
export const designer = agent("Designer");
export const analyst = agent("DataAnalyst");

export const day = (time: string): string => `2026-02-18T${time.length === 5 ? `${time}:00` : time}.000Z`;

export const space = (name: string, ...members: Who[]): KnownSpace => ({
  id: `spc_${name.replace(/\W/g, "").toUpperCase()}`,
  name,
  members: members.map((member) => ({ ...member, joinedAt: day("08:00") })),
});

export const said = (id: string, time: string, sender: Who, text: string, more: Partial<Message> = {}): Message => ({
  id: `msg_${id}`,
  seq: 1,
  spaceId: "spc_ANY",
  kind: "text",
  sender,
  text,
  createdAt: day(time),
  ...more,
});

export const called = (id: string, time: string, sender: Who, toolCall: NonNullable<Message["toolCall"]>): Message => {
  const { text: _, ...message } = said(id, time, sender, "");
  return { ...message, kind: "tool_call", toolCall };
};

/** A message as it reaches an inbox. */
export const arrived = (
  { id, name }: SpaceRef,
  message: Message,
  triggerSource: TriggerSource = "every_message",
): InboxData & { type: "space_message" } => ({
  type: "space_message",
  spaceName: name,
  delivered: { message: { ...message, spaceId: id }, root: { id: message.id, kind: "person" }, triggerSource },
});

export const stateOf = (self: Who, changes: Partial<AgentState> = {}): AgentState => ({
  agentId: self.id,
  ...{ spaces: [], goals: [], memories: [], plans: [] },
  ...changes,
});

/** The inbox message of these events. What is not given is empty. */
export const inboxText = (events: InboxData[], more: Partial<InboxMessageInput> = {}): string =>
  renderInboxMessage({
    now: day("15:07"),
    events,
    silent: { lines: [], omitted: 0 },
    leftToHistory: [],
    told: toldState(stateOf(analyst)),
    toldBefore: null,
    activeSpace: null,
    ...more,
  });

/** A call and its result, as model messages. */
export const callMessages = (toolName: string, input: object, value: object, toolCallId = "tc_1"): ModelMessage[] => [
  { role: "assistant", content: [{ type: "tool-call", toolCallId, toolName, input }] },
  {
    role: "tool",
    content: [
      { type: "tool-result", toolCallId, toolName, output: { type: "json", value: JSON.parse(JSON.stringify(value)) } },
    ],
  },
];

/** A snapshot of a consciousness that says only what matters. */
export const livedSnapshot = (
  config: AgentConfig,
  own: ModelMessage[],
  more: Partial<ConsciousnessSnapshot> = {},
): ConsciousnessSnapshot => ({
  continuity: "consciousness",
  ...partsOf(config),
  window: { instructions: "I am", summary: null },
  past: [],
  own: own.map((message) => ({ message })),
  ...more,
});

export const seen = (message: Message): HistoryEntry => ({ kind: "message", message, seen: true });
export const fresh = (message: Message): HistoryEntry => ({ kind: "message", message, seen: false });
export const did = (time: string, toolName: string, input: unknown, output?: unknown): Deed => ({
  kind: "action",
  at: day(time),
  callId: `tc_${time}`,
  action: { toolName, input, ...(output === undefined ? {} : { output }) },
});

/** Words that the agent said somewhere. */
export const sent = (
  time: string,
  text: string,
  spaceName: string | undefined,
  messageId: string,
  waitingFor: string[] = [],
): Deed => ({
  ...{ kind: "sent", at: day(time), callId: `tc_${time}` },
  ...{ text, spaceName, messageId, waitingFor },
});

export const historyOf = ({ id, name }: KnownSpace, entries: HistoryEntry[], total?: number): History => ({
  space: { id, name },
  entries,
  total: total ?? entries.filter(({ kind }) => kind === "message").length,
});

export const triggerOf = (
  message: Message,
  space: SpaceRef,
  triggerSource: TriggerSource,
  expectsReply = false,
): InboxData => arrived(space, { ...message, ...(expectsReply ? { expectsReply } : {}) }, triggerSource);

/** A plan that is due. */
export const due = (planId: string, planName: string, instruction: string, scheduledAt = day("09:00")): InboxData => ({
  ...{ type: "plan", planId, planName, instruction, scheduledAt },
  root: { id: planId, kind: "plan" },
});

/** An event of a service. */
export const hooked = (serviceName: string, payload: unknown): InboxData => ({
  ...{ type: "service", serviceName, payload },
  root: { id: "evt_1", kind: "service" },
});

/** The result of an earlier call. */
export const resultOf = (tool: string, toolCallId: string, result: unknown): InboxData => ({
  ...{ type: "tool_result", tool, toolCallId, result, failed: false, activeSpaceId: null },
  root: { id: toolCallId, kind: "agent" },
});

export const goal = (id: string, description: string, more: Partial<Goal> = {}): Goal => ({
  id,
  description,
  status: "active",
  longTerm: false,
  updatedAt: day("09:00"),
  ...more,
});

export const memory = (key: string, value: string, time = "09:00"): Memory => ({ key, value, updatedAt: day(time) });

export const plan = (id: string, name: string, instruction: string, more: Partial<Plan>): Plan => ({
  id,
  name,
  instruction,
  status: "active",
  setBy: "agent",
  ...more,
});

export const thisRun = (trigger: InboxData): ActiveRun => ({
  runId: "run_THIS",
  status: "running",
  isThis: true,
  begunBy: begunBy(trigger),
});

const begunBy = (event: InboxData): ActiveRun["begunBy"] => {
  const { type } = event;
  if (type === "plan") return { type, senderName: event.planName, text: event.instruction };
  if (type === "service") return { type, senderName: event.serviceName, text: JSON.stringify(event.payload) };
  if (type === "tool_result") return { type, senderName: event.tool, text: JSON.stringify(event.result) };
  const { sender, text = "" } = event.delivered.message;
  return { type, senderName: sender.name, spaceName: event.spaceName, text };
};

type ConfigChanges = Partial<Omit<AgentConfig, "context">> & { context?: Partial<AgentConfig["context"]> };

export const configOf = (self: Who, changes: ConfigChanges = {}): AgentConfig => {
  const config = AgentConfig.parse({ name: self.name });
  return { ...config, continuity: "timeline", ...changes, context: { ...config.context, ...changes.context } };
};

/** What an agent of this config composes its inputs with, where it has no tools. */
export const partsOf = (config: AgentConfig): InputParts => ({
  config,
  limits: resolveLimits(config.context, { name: "unknown", window: null }, undefined),
  ...{ tools: {}, correction: 1 },
});

export type Situation = {
  self?: Who;
  config?: ConfigChanges;
  now: string;
  spaces: KnownSpace[];
  goals?: Goal[];
  memories?: Memory[];
  plans?: Plan[];
  trigger: InboxData;
  /** The trigger's space comes first. */
  histories?: History[];
  blocks?: AgentState["blocks"];
  shares?: KnownShare[];
  activity?: AgentState["activity"];
  past?: PastRuns;
  otherRuns?: ActiveRun[];
  resume?: TimelineSnapshot["resume"];
  answers?: TimelineSnapshot["answers"];
  takenOver?: TimelineSnapshot["takenOver"];
  activeSpace?: TimelineSnapshot["activeSpace"];
};

const activeIn = (trigger: InboxData): TimelineSnapshot["activeSpace"] =>
  trigger.type === "space_message"
    ? { id: trigger.delivered.message.spaceId, name: trigger.spaceName, why: "trigger" }
    : null;

/** The snapshot of a timeline's later step: the messages of its input as they were composed, and those that followed. */
export const laterStep = (first: TimelineSnapshot, followed: ModelMessage[]): ConsciousnessSnapshot => {
  const { instructions, messages } = compose(first);
  return livedSnapshot(first.config, [...messages, ...followed], { window: { instructions, summary: null } });
};

/** A whole snapshot of what matters in a situation. */
export const snapshotOf = (situation: Situation): TimelineSnapshot => {
  const { self = analyst, trigger } = situation;
  return {
    continuity: "timeline",
    ...partsOf(configOf(self, situation.config)),
    now: day(situation.now),
    state: stateOf(self, {
      spaces: situation.spaces,
      goals: situation.goals ?? [],
      memories: situation.memories ?? [],
      plans: situation.plans ?? [],
      ...(situation.blocks ? { blocks: situation.blocks } : {}),
      ...(situation.shares ? { shares: situation.shares } : {}),
      ...(situation.activity ? { activity: situation.activity } : {}),
    }),
    histories: situation.histories ?? [],
    past: situation.past ?? { runs: [], earlier: 0 },
    activeRuns: [thisRun(trigger), ...(situation.otherRuns ?? [])],
    trigger,
    activeSpace: situation.activeSpace ?? activeIn(trigger),
    resume: situation.resume ?? null,
    answers: situation.answers ?? [],
    takenOver: situation.takenOver ?? [],
  };
};
