/** What the rehearsal model sees in a prompt: the same facts that any model reads there, as data. */
export type PersonKind = "human" | "agent" | "service";

export type MessageEvent = {
  kind: "message";
  spaceId: string;
  spaceName: string;
  senderName: string;
  senderKind: PersonKind;
  text: string;
  /** `[key: value]` suffixes of the line, such as `triggerSource: mention`; of a trigger, its fields. */
  notes: Record<string, string>;
};
export type ServiceEvent = { kind: "service"; service: string; payload: string };
export type PlanEvent = { kind: "plan"; name: string; instruction: string };
/** What came of a call that answered `pending`. */
export type ToolResultEvent = { kind: "tool_result"; tool: string; toolCallId: string; result: ActionResult };
/** An event that no rule is about, by its label. */
export type OtherEvent = { kind: "other"; label: string; body: string };
export type InboxEvent = MessageEvent | ServiceEvent | PlanEvent | ToolResultEvent | OtherEvent;

export type SpaceMember = { name: string; kind: PersonKind };
export type SpaceView = { id: string; name: string; members: SpaceMember[]; includesYou: boolean };
export type GoalView = { id: string; description: string; status: string };
export type MemoryView = { key: string; value: string };

export type ActionResult = { ok: true; value: unknown } | { ok: false; message: string; code?: string };
/** A tool call of the running cycle, with its result. */
export type PastAction = { toolName: string; input: unknown; result: ActionResult };
/** A call that answered `pending`, and the space that was active then. */
export type PendingCall = PastAction & { spaceId: string | undefined };

/** Who answered what a run waited for, and who did not in time, by name. */
export type ResumeView = { replied: string[]; timedOut: string[] };
/** A message that a run waited for. */
export type ReplyView = { name: string; text: string };

export type PromptView = {
  continuity: "consciousness" | "timeline";
  name: string;
  /** The agent's own instructions, as its owner wrote them. */
  role: string;
  spaces: SpaceView[];
  goals: GoalView[];
  memories: MemoryView[];
  /** Where the running cycle began. */
  activeSpaceId: string | undefined;
  now: string | undefined;
  /** Events that were read in skipped cycles, newest last; they are answered no more. */
  readSilently: InboxEvent[];
  /** The running cycle's events and what it did so far. */
  events: InboxEvent[];
  actions: PastAction[];
  /** Set where the run goes on after a wait. */
  resume: ResumeView | undefined;
  replies: ReplyView[];
  /** Whether an inbox or a trigger was found at all. */
  hasInbox: boolean;
  /** Tool calls in the whole prompt: numbers the next one. */
  callCount: number;
  /** By their ids, those of earlier cycles too. */
  pending: Map<string, PendingCall>;
};
