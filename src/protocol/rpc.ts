import type { Outcome } from "../shared/errors.ts";
import type { Agent, AgentConfig, TriggerAgent, UpdateAgent } from "./agent.ts";
import type { ArchivalEntry, CreateArchival } from "./archival.ts";
import type { BlockRpc } from "./block-rpc.ts";
import type { ChannelOpen } from "./channel.ts";
import type { CreateEntity, Entity, EntityType, Member, Role, UpdateEntity } from "./entity.ts";
import type { HookSettings, UpdateHook } from "./hook.ts";
import type { Message, MessageRouting, Origin, PostMessage, ReadReceipt } from "./message.ts";
import type { Goal, Memory, PutGoal } from "./mind.ts";
import type { Page, PageRequest } from "./page.ts";
import type { Plan, PutPlan } from "./plan.ts";
import type { Principal } from "./principal.ts";
import type { ContextView, InboxItem, Run, RunStatus } from "./run.ts";
import type { SearchAnswer, SearchQuery } from "./search.ts";
import type { CreateSpace, ShareOrigin, Space, UpdateSpace, WakePolicy } from "./space.ts";
import type {
  AnsweredToolCall,
  AwaitedAnswer,
  ClaimToolCall,
  ToolAnswer,
  ToolCall,
  WaitingToolCall,
} from "./tool-call.ts";
import type { TransferRpc } from "./transfer-rpc.ts";
import type { Key, Workspace } from "./workspace.ts";

export type { Page, PageRequest } from "./page.ts";

/**
 * The RPC of the actors, for each other and for the routes. Every method answers an `Outcome`: an expected refusal is
 * a value, a rejection means that the object could not be reached or has a bug. Times on the wire are ISO 8601.
 */

/** A page of an inbox: the events in that `status`, or all. */
export type InboxRequest = PageRequest & { status?: InboxItem["status"] | undefined };

/**
 * The start of a chain of wakes. `person`, `service` and `plan` (a standing plan set by a person) are roots that a
 * person answers for; `agent` is a recurring plan that an agent set itself.
 */
export type Root = { id: string; kind: "person" | "service" | "plan" | "agent" };

/** Why a message wakes an agent; `none` where it is only delivered. */
export type TriggerSource = "every_message" | "mention" | "auto" | "proactive_router" | "none";

/** A space as its subscribers know it; `version` is the `seq` of the last event that changed it. */
export type SpaceSnapshot = {
  id: string;
  workspaceId: string;
  name: string;
  shareOrigin: ShareOrigin;
  wakePolicy: WakePolicy;
  createdAt: string;
  version: number;
  members: Member[];
};

/** One message as one agent gets it. */
export type DeliveredMessage = { message: Message; root: Root; triggerSource: TriggerSource };

/**
 * All that is pending for one agent in one space. `after` < every `seq` ≤ `cursor`; a receiver that has come to
 * `cursor` already ignores it. `left` means that the agent is no member any more (or the space is gone).
 */
export type Delivery = {
  space: SpaceSnapshot;
  messages: DeliveredMessage[];
  /** People's decisions about this agent's own calls, in the log's order. */
  answers?: ToolCallOutcome[] | undefined;
  after: number;
  cursor: number;
  left: boolean;
};

/** A delivery as JSON: a call clones its arguments object by object, which takes ten times as long as the text of many. */
export type DeliveryText = string;

/** People's decision about a call that waited for them. `seq` is its place in the space's log. */
export type ToolCallOutcome = {
  seq: number;
  toolCallId: string;
  outcome: "approved" | "rejected" | "answered" | "failed" | "expired";
  /** The answer. */
  output?: unknown;
  /** The note of the person who decided, or the error that was answered. */
  note?: string | undefined;
  /** The people who approved, rejected or answered, each with their note. */
  by: { id: string; name: string; note?: string | undefined }[];
};

/** A space's state, delivered to the workspace's index. */
export type IndexDelivery = { space: SpaceSnapshot; createdBy?: string | undefined; cursor: number; deleted: boolean };

export type SpaceWindow = {
  space: SpaceSnapshot;
  /** Oldest first. */
  messages: Message[];
  /** The number of messages in the space. */
  total: number;
};

/**
 * Messages of a space after a place in its log, oldest first, and the one `before` them. They reach up to `cursor`;
 * `more` follow it.
 */
export type SpaceHistory = {
  name: string;
  before: Message | null;
  messages: Message[];
  cursor: number;
  more: boolean;
};

/** A message that an agent says. `messageId` derives from run and call, so saying it again changes nothing. */
export type AgentMessage = {
  workspaceId: string;
  agentId: string;
  runId: string;
  messageId: string;
  text: string;
  root: Root;
  streamId?: string | undefined;
  origin?: Origin | undefined;
  /** A message of the same space. */
  replyTo?: string | undefined;
  /** The agent waits for an answer. */
  expectsReply?: boolean | undefined;
  /** When its run stops waiting, in milliseconds since the epoch: what has not been said by then is `unavailable`. */
  until?: number | undefined;
};

/** A visible call as it stands. `messageId` derives from space and call: telling it again changes nothing. */
export type AgentToolCall = {
  workspaceId: string;
  agentId: string;
  runId: string;
  messageId: string;
  toolCallId: string;
  name: string;
  input: unknown;
  status: ToolCall["status"];
  output?: unknown;
  error?: { code: string; message: string } | undefined;
  awaits?: Omit<AwaitedAnswer, "answers"> | undefined;
  root: Root;
  streamId?: string | undefined;
  origin?: Origin | undefined;
  /** When its agent stops waiting, in milliseconds since the epoch: what does not show by then is `unavailable`. */
  until?: number | undefined;
};

export type EntityRef = { id: string; name: string; type: EntityType };

export interface SpaceRpc {
  create(input: {
    id: string;
    workspaceId: string;
    settings: Omit<CreateSpace, "members">;
    members: EntityRef[];
    createdBy?: string | undefined;
  }): Promise<Outcome<Space>>;
  describe(principal: Principal): Promise<Outcome<Space>>;
  update(principal: Principal, changes: UpdateSpace): Promise<Outcome<Space>>;
  /** Deletes the space: tells its subscribers, closes its sockets with 4404, then keeps nothing but its tombstone. */
  remove(principal: Principal): Promise<Outcome<null>>;
  addMember(principal: Principal, entity: EntityRef): Promise<Outcome<Member>>;
  removeMember(principal: Principal, entityId: string): Promise<Outcome<null>>;
  /** From the workspace: an entity's name changed. */
  renameMember(workspaceId: string, entityId: string, name: string): Promise<Outcome<null>>;
  post(principal: Principal, input: PostMessage): Promise<Outcome<{ message: Message; created: boolean }>>;
  list(
    principal: Principal,
    page: { before?: number | undefined; after?: number | undefined; limit: number },
  ): Promise<Outcome<Page<Message>>>;
  markRead(principal: Principal, messageId: string): Promise<Outcome<null>>;
  /** The members whose read mark has come to a message, its sender aside. */
  reads(principal: Principal, messageId: string): Promise<Outcome<ReadReceipt[]>>;
  /** The router's decision about a message; `not_found` where the router was not asked. */
  routing(principal: Principal, messageId: string): Promise<Outcome<MessageRouting>>;
  /**
   * A person answers a call that waits. The same answer again is `created: false`; another, or one that comes when
   * others have decided, is a `conflict`; one after its time, or when the call is canceled, `gone`.
   */
  answerToolCall(
    principal: Principal,
    toolCallId: string,
    answer: ToolAnswer,
  ): Promise<Outcome<{ message: Message; created: boolean }>>;
  /** For lists of spaces: the newest message, and how many the entity has not read (at most 99). */
  latest(
    principal: Principal,
  ): Promise<Outcome<{ lastMessage?: Message | undefined; unreadCount?: number | undefined }>>;

  /** For agents. */
  window(workspaceId: string, agentId: string, page: { limit: number; offset: number }): Promise<Outcome<SpaceWindow>>;
  history(workspaceId: string, agentId: string, page: { after: number; limit: number }): Promise<Outcome<SpaceHistory>>;
  speak(open: ChannelOpen, frames: ReadableStream<Uint8Array>): Promise<Outcome<null>>;
  append(message: AgentMessage): Promise<Outcome<Message>>;
  /** Shows a tool call, or how it stands now, once for each state; answers the message as it is then. */
  recordToolCall(call: AgentToolCall): Promise<Outcome<Message>>;
}

/** A hook to be made. `version` names the creation: the same one again changes nothing. */
export type NewHook = Omit<HookSettings, "createdAt" | "updatedAt" | "previousSecretUntil"> & {
  sealed: string;
  version: string;
};
export type HookRotation = { sealed: string; version: string; graceMs: number };

/** A hook's settings and its valid secrets, sealed, the newest first: enough to verify a delivery. */
export type SealedHook = { workspaceId: string; agentId: string; settings: HookSettings; sealed: string[] };

/** A webhook that its sender was proven for, as the agent reads it. One that has no id is told by its body. */
export type ProvenDelivery = {
  name: { id: string } | { bodyHash: string };
  payload: TriggerAgent["payload"];
};

export interface AgentRpc extends BlockRpc, TransferRpc {
  /** Whether an agent could be created with this config. Stores nothing, of an object that is no agent yet either. */
  check(config: AgentConfig): Promise<Outcome<null>>;
  create(input: { id: string; workspaceId: string; config: AgentConfig }): Promise<Outcome<Agent>>;
  /** Whether `update` would take the changes. Stores nothing. */
  checkUpdate(workspaceId: string, changes: UpdateAgent): Promise<Outcome<null>>;
  describe(workspaceId: string): Promise<Outcome<Agent>>;
  update(workspaceId: string, changes: UpdateAgent): Promise<Outcome<Agent>>;
  remove(workspaceId: string): Promise<Outcome<null>>;
  /** The workspace's sealed secrets, all of them, by name; kept sealed. */
  setSecrets(workspaceId: string, sealed: Record<string, string>): Promise<Outcome<null>>;

  /** From a space. Never waits for the model. Answers up to where this agent has come in that space. */
  deliver(delivery: DeliveryText): Promise<Outcome<{ cursor: number }>>;
  trigger(workspaceId: string, event: TriggerAgent, idempotencyKey?: string): Promise<Outcome<{ eventId: string }>>;

  inbox(workspaceId: string, request: InboxRequest): Promise<Outcome<Page<InboxItem>>>;
  /** Retries a dead event; `conflict` where it is not dead, as for `discardEvent`. */
  retryEvent(workspaceId: string, eventId: string): Promise<Outcome<InboxItem>>;
  retryDeadEvents(workspaceId: string): Promise<Outcome<{ retried: number }>>;
  discardEvent(workspaceId: string, eventId: string): Promise<Outcome<null>>;
  /** Newest first, without the steps' inputs. */
  runs(workspaceId: string, page: PageRequest & { status?: RunStatus | undefined }): Promise<Outcome<Page<Run>>>;
  /** With the steps' inputs, as many steps from `fromStep` on as one answer holds. */
  run(workspaceId: string, runId: string, fromStep?: number): Promise<Outcome<Run>>;
  cancelRun(workspaceId: string, runId: string): Promise<Outcome<Run>>;
  context(workspaceId: string): Promise<Outcome<ContextView>>;

  /** From a server that executes `external` tools. `conflict` while another holds it, `gone` when it is over. */
  claimToolCall(workspaceId: string, toolCallId: string, claim: ClaimToolCall): Promise<Outcome<WaitingToolCall>>;
  /** The first answer wins; the same again is `created: false`, another a `conflict`. */
  answerToolCall(workspaceId: string, toolCallId: string, answer: ToolAnswer): Promise<Outcome<AnsweredToolCall>>;

  memories(workspaceId: string): Promise<Outcome<Memory[]>>;
  putMemory(workspaceId: string, key: string, value: string): Promise<Outcome<Memory>>;
  deleteMemory(workspaceId: string, key: string): Promise<Outcome<null>>;
  goals(workspaceId: string): Promise<Outcome<Goal[]>>;
  putGoal(workspaceId: string, id: string, goal: PutGoal): Promise<Outcome<Goal>>;
  deleteGoal(workspaceId: string, id: string): Promise<Outcome<null>>;
  plans(workspaceId: string): Promise<Outcome<Plan[]>>;
  putPlan(workspaceId: string, id: string, plan: PutPlan): Promise<Outcome<Plan>>;
  deletePlan(workspaceId: string, id: string): Promise<Outcome<null>>;

  search(workspaceId: string, query: SearchQuery): Promise<Outcome<SearchAnswer>>;
  /** Newest first. */
  archival(workspaceId: string, page: PageRequest): Promise<Outcome<Page<ArchivalEntry>>>;
  /** The same `id` again changes nothing. */
  archive(workspaceId: string, id: string, entry: CreateArchival): Promise<Outcome<ArchivalEntry>>;
  deleteArchival(workspaceId: string, id: string): Promise<Outcome<null>>;

  hooks(workspaceId: string): Promise<Outcome<HookSettings[]>>;
  createHook(workspaceId: string, hook: NewHook): Promise<Outcome<HookSettings>>;
  hook(workspaceId: string, id: string): Promise<Outcome<HookSettings>>;
  updateHook(workspaceId: string, id: string, changes: UpdateHook): Promise<Outcome<HookSettings>>;
  rotateHook(workspaceId: string, id: string, rotation: HookRotation): Promise<Outcome<HookSettings>>;
  deleteHook(workspaceId: string, id: string): Promise<Outcome<null>>;
  /** For a caller who has a hook's address only. */
  sealedHook(id: string): Promise<Outcome<SealedHook>>;
  /** Answers once the event is stored; the same delivery again answers the same event (D5). */
  receive(workspaceId: string, hookId: string, delivery: ProvenDelivery): Promise<Outcome<{ eventId: string }>>;
}

export interface WorkspaceRpc {
  /** Creates once: a repeated call with the same id answers `conflict`. */
  create(input: { id: string; name: string; keyId: string; keyHash: string }): Promise<Outcome<Workspace>>;
  describe(): Promise<Outcome<Workspace>>;
  rename(name: string): Promise<Outcome<Workspace>>;
  /** Whether the hash of a presented key is one of this workspace's living keys. */
  verifyKey(keyHash: string): Promise<Outcome<{ keyId: string }>>;
  /** Whether the key was issued here and not revoked. */
  keyLives(keyId: string): Promise<Outcome<boolean>>;
  addKey(input: { keyId: string; keyHash: string }): Promise<Outcome<Key>>;
  revokeKey(keyId: string): Promise<Outcome<null>>;

  putSecret(name: string, sealed: string): Promise<Outcome<null>>;
  deleteSecret(name: string): Promise<Outcome<null>>;
  secretNames(): Promise<Outcome<string[]>>;
  /** For a new agent: what `setSecrets` would bring it. */
  sealedSecrets(): Promise<Outcome<Record<string, string>>>;

  createEntity(id: string, input: CreateEntity): Promise<Outcome<Entity>>;
  /** Reserves an agent's name and id in the directory; called before the agent's own object is created. */
  createAgentEntity(id: string, name: string): Promise<Outcome<Entity>>;
  /** With `visibleTo`, only that entity and those it shares a space with. */
  entities(
    page: PageRequest & { type?: EntityType | undefined; visibleTo?: string | undefined },
  ): Promise<Outcome<Page<Entity>>>;
  entity(id: string): Promise<Outcome<Entity>>;
  /**
   * Those of `ids` that live in this workspace; `unknown_reference` names any that do not. With `visibleTo`, only
   * that entity and those it shares a space with resolve.
   */
  resolve(ids: string[], visibleTo?: string): Promise<Outcome<Entity[]>>;
  /** A new name is carried to every space of the entity, at once or by a timer. */
  updateEntity(id: string, changes: UpdateEntity): Promise<Outcome<Entity>>;
  /** Leaves every space, at once or by a timer; its messages stay. */
  removeEntity(id: string): Promise<Outcome<null>>;
  /** The standing of an entity whose token was verified; `not_found` if it was removed. */
  standing(entityId: string): Promise<Outcome<{ role: Role; type: EntityType }>>;
  shareSpace(entityId: string, otherId: string): Promise<Outcome<boolean>>;

  /** From spaces, in order; what is older than what it has is ignored. */
  /** Whether a space with this id may be made, if it is not there: else `limit_reached`. */
  admitSpace(id: string): Promise<Outcome<null>>;
  follow(delivery: IndexDelivery): Promise<Outcome<null>>;
  /** From agents: a call waits for servers, or does no more. */
  noteToolCall(call: WaitingToolCall, waits: boolean): Promise<Outcome<null>>;
  /** Oldest first. */
  toolCalls(page: PageRequest): Promise<Outcome<Page<WaitingToolCall>>>;

  /** Newest first; with `entityId`, only its own. */
  spaces(page: PageRequest & { entityId?: string | undefined }): Promise<Outcome<Page<Space>>>;

  /** `Idempotency-Key`: begin, then end with what was answered. A begun one that never ended is free after 60 s. */
  beginRequest(input: RequestName & { bodyHash: string }): Promise<Outcome<BegunRequest>>;
  endRequest(input: RequestName & ({ status: number; body: string } | { abandon: true })): Promise<Outcome<null>>;
}

/** A request with an `Idempotency-Key`, and its caller. */
export type RequestName = { principal: string; key: string };
/** With the answer to give again, where it was done before. */
export type BegunRequest = { replay?: { status: number; body: string } };
