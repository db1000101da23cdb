import type { WaitOutcome } from "../agent/context/grammar.ts";

/** The facts of a prompt as data, the same that any model reads there. */
export type PersonKind = "human" | "agent" | "service";

type Message = {
  spaceId: string;
  spaceName: string;
  senderName: string;
  senderKind: PersonKind;
  text: string;
  triggerSource: string;
  messageId: string;
  /** The sender waits for an answer. Only an agent whose messaging is threaded is told. */
  isAwaited: boolean;
};
export type MessageEvent = Message & { kind: "message" };
/** A message that answers a question of a cycle before. */
export type AnswerEvent = Message & { kind: "answer" };
/** Those who did not answer one. */
export type UnansweredEvent = { kind: "unanswered"; spaceId: string; names: string[] };
export type ServiceEvent = { kind: "service"; service: string; payload: string };
export type PlanEvent = { kind: "plan"; name: string; instruction: string };
/** The result of a call that had answered `pending`. */
export type ToolResultEvent = { kind: "tool_result"; tool: string; toolCallId: string; result: ActionResult };
/** An event that no rule is about. */
export type OtherEvent = { kind: "other" };
export type InboxEvent =
  | (MessageEvent | AnswerEvent | UnansweredEvent)
  | (ServiceEvent | PlanEvent | ToolResultEvent | OtherEvent);

export type SpaceView = { id: string; name: string; members: { name: string; kind: PersonKind }[] };
export type GoalView = { id: string; description: string; status: string };
export type MemoryView = { key: string; value: string };

export type ActionResult = { ok: true; value: unknown } | { ok: false; message: string; code?: string };
/** A tool call of the running cycle, with its result. */
export type PastAction = { toolName: string; input: unknown; result: ActionResult };
/** A call that answered `pending`, and the space that was active then. */
export type PendingCall = PastAction & { spaceId: string | undefined };

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
  /** The active space at the beginning of the running cycle. */
  activeSpaceId: string | undefined;
  now: string | undefined;
  /** The batch of the running cycle, or what triggered the run. */
  events: InboxEvent[];
  /** The tool calls of the running cycle, or of this invocation of the run, in order. */
  actions: PastAction[];
  /** Why the run goes on after a wait, and the answers that it got. */
  resume: WaitOutcome | undefined;
  replies: ReplyView[];
  /** There is an inbox or a trigger. */
  hasInbox: boolean;
  /** All tool calls so far, so that the next one gets an id of its own. */
  callCount: number;
  /** By tool call id, of all cycles that can be read. */
  pending: ReadonlyMap<string, PendingCall>;
};
