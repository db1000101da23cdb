import type { Outcome } from "../shared/errors.ts";
import type { AuditActor, AuditEntry, AuditFilters, AuditNote } from "./audit.ts";
import type { CredentialMethods } from "./credential-rpc.ts";
import type {
  EndpointMethods,
  EndpointRegistryMethods,
  EndpointSourceMethods,
  FollowingEndpoints,
} from "./endpoint-rpc.ts";
import type { CreateEntity, Entity, EntityType, Member, Role, UpdateEntity } from "./entity.ts";
import type { CreateErasure, ErasedPart, Erasure, ErasureOf } from "./erasure.ts";
import type { Budget, ChannelOpen } from "./events.ts";
import type { LimitMethods } from "./limits.ts";
import type { Follows, Standing } from "./line.ts";
import type { Message, MessageRouting, Origin, PostMessage, ReadReceipt } from "./message.ts";
import type { ForgottenOrigin, MessageChange } from "./message-change.ts";
import type { Principal } from "./principal.ts";
import type { RequestMethods } from "./request-rpc.ts";
import type { Root } from "./root.ts";
import type { ReadSpace } from "./run.ts";
import type { Secret } from "./secret.ts";
import type { CreateSpace, Space, UpdateSpace } from "./space.ts";
import type { AwaitedAnswer, ToolAnswer, ToolCall, WaitingToolCall } from "./tool-call.ts";
import type {
  ImpersonatedApprovals,
  MeterReport,
  RegisteredWorkspace,
  Reseal,
  UpdateWorkspace,
  Workspace,
  WorkspaceOverview,
} from "./workspace.ts";

export type { Root };

/**
 * The RPC of the actors, for each other and for the routes. Methods are written with what they answer on success, and
 * answer it as an `Outcome`. An expected refusal is a value. A rejection means that the object could not be reached or
 * has a bug. Times on the wire are ISO 8601.
 */
export type Rpc<Methods> = {
  [Name in keyof Methods]: Methods[Name] extends (...args: infer Args) => infer Value
    ? (...args: Args) => Promise<Outcome<Value>>
    : never;
};

/** A page of things, oldest first unless it says otherwise; `nextCursor` is null on the last page. */
export type Page<T> = { items: T[]; nextCursor: string | null };
export type PageRequest = { limit: number; cursor?: string | undefined };

/** Why a message wakes an agent; `none` where it is only delivered. */
export type TriggerSource = "every_message" | "mention" | "auto" | "proactive_router" | "none";

/** A space as its subscribers know it; `version` is the `seq` of the last event that changed it. */
export type SpaceSnapshot = Pick<
  Space,
  "id" | "name" | "shareOrigin" | "wakePolicy" | "createdAt" | "confidential" | "release"
> & {
  /** Days for which it keeps messages, by its own setting or its workspace's; left out: until somebody deletes them. */
  retentionDays?: number;
  workspaceId: string;
  version: number;
  members: Member[];
  /** The space is gone, and what was said there with it. */
  deleted?: true;
};

/** Another mind of the agent said it: `let_out` by a confidential space's people, or from `outside` into this one. */
export type OwnWords = "let_out" | "outside";

/** One message as one agent gets it. `repliesToIt`: it replies to a message that the agent said. */
export type DeliveredMessage = {
  message: Message;
  root: Root;
  triggerSource: TriggerSource;
  repliesToIt?: true;
  own?: OwnWords;
};

/**
 * All that is pending for one agent in one space. `after` < every `seq` ≤ `cursor`; a receiver that has come to
 * `cursor` already ignores it. `left` means that the agent is no member any more (or the space is gone).
 */
export type Delivery = {
  space: SpaceSnapshot;
  messages: DeliveredMessage[];
  /** People's decisions about this agent's own calls, in the log's order. */
  answers?: ToolCallOutcome[] | undefined;
  /** Messages that were edited or deleted, in the log's order. */
  changes?: MessageChange[] | undefined;
  after: number;
  cursor: number;
  left: boolean;
  /** To an open mind of a confidential space: the place in the log up to which it hears what is said there. */
  openUpTo?: number | undefined;
  /** Set where only the agent's compartment for this space is told: the compartment, and its agent. */
  compartment?: { mindId: string; agentId: string } | undefined;
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
  /** The arguments that were approved: SHA-256 of their canonical JSON. */
  inputHash?: string | undefined;
};

/** A space's state, delivered to the workspace's index. */
export type IndexDelivery = { space: SpaceSnapshot; createdBy?: string | undefined; cursor: number; deleted: boolean };

export type SpaceWindow = {
  space: SpaceSnapshot;
  /** Oldest first. */
  messages: Message[];
  /** The number of messages that the mind may read. */
  total: number;
};

/** One of its messages. `newer`: how many came after it. */
export type SpaceMessage = Message & { newer: number };

/** Messages of a space after a place in its log, oldest first, up to `cursor`; the one `before` them; whether `more` follow. */
export type SpaceHistory = { name: string; before: Message | null; messages: Message[]; cursor: number; more: boolean };

/** The `cursor` of a history in which its reader finds nothing, and never will. */
export const neverAny = Number.MAX_SAFE_INTEGER;

/** What a run shows in a space. */
type FromRun = {
  workspaceId: string;
  agentId: string;
  /** The compartment whose run it is; left out: the agent's open mind. */
  mindId?: string | undefined;
  runId: string;
  messageId: string;
  root: Root;
  streamId?: string | undefined;
  origin?: Origin | undefined;
  reads?: ReadSpace[] | undefined;
  /** When its agent stops waiting, in milliseconds since the epoch: what does not show by then is `unavailable`. */
  until?: number | undefined;
  /** When its model wrote it, where that is long ago: its agent has the words since then. */
  writtenAt?: number | undefined;
};

/** A message that an agent says. `messageId` derives from run and call, so saying it again changes nothing. */
export type AgentMessage = FromRun & {
  text: string;
  /** A message of the same space. */
  replyTo?: string | undefined;
  /** The agent waits for the answers of these members, who are addressed by that. */
  awaits?: string[] | undefined;
  /** It waits for somebody, where `awaits` names nobody. */
  expectsReply?: boolean | undefined;
  /** People of a confidential space let it out (C20). */
  letOut?: true;
  /** The compartment that said so, where it goes into another confidential space: it is told when that is deleted there. */
  letOutBy?: string | undefined;
  /** They were shown the space as an open one. */
  shownAsOpen?: boolean | undefined;
  /** Whom they were shown as its readers, and when, in milliseconds since the epoch. */
  shownReaders?: string | undefined;
  shownAt?: number | undefined;
};

/** A visible call as it stands. `messageId` derives from space and call: telling it again changes nothing. */
export type AgentToolCall = FromRun & {
  toolCallId: string;
  name: string;
  input: unknown;
  status: ToolCall["status"];
  output?: unknown;
  error?: { code: string; message: string } | undefined;
  awaits?: Omit<AwaitedAnswer, "answers" | "shown" | "inputHash"> | undefined;
  /** Where an approved call goes, in words. */
  target?: string | undefined;
  /** Where words that leave a confidential space go, in place of a target. */
  release?: ToolCall["release"];
  /** Beside the input, what its request holds. */
  request?: Record<string, unknown> | undefined;
};

/** ISO 8601. `personId`: whose share is used up; left out: the agent's whole day is. */
export type BudgetNotice = { resetsAt: string; personId?: string | undefined; budget?: Budget | undefined };

export type EntityRef = { id: string; name: string; type: EntityType };

export type SpaceRpc = Rpc<SpaceMethods>;
interface SpaceMethods extends EndpointSourceMethods {
  create(input: {
    id: string;
    workspaceId: string;
    settings: Omit<CreateSpace, "members" | "confidential"> & Partial<Pick<CreateSpace, "confidential">>;
    members: EntityRef[];
    createdBy?: string | undefined;
    /** Its admission's end: after it the space does not begin, and answers `unavailable`. */
    until?: number | undefined;
  }): Space;
  /** `isFollowed`: for a stream of one of its agents, which is `unavailable` while the workspace's index knows not all members. */
  describe(principal: Principal, isFollowed?: boolean): Space;
  update(principal: Principal, changes: UpdateSpace): Space;
  /** Deletes the space: tells its subscribers, closes its sockets with 4404, then keeps nothing but its tombstone. */
  remove(principal: Principal): null;
  addMember(principal: Principal, entity: EntityRef): Member;
  removeMember(principal: Principal, entityId: string): null;
  /** From the workspace: an entity's name changed. */
  renameMember(workspaceId: string, entityId: string, name: string): null;
  /** From the workspace: from now on nothing is taken here, or again it is. */
  setSuspended(workspaceId: string, suspended: boolean): null;
  /** From the workspace: days for which messages are kept where the space itself does not say; null: for ever. */
  setRetention(workspaceId: string, days: number | null): null;
  /** From workspaces of before: as `proveAgain`. */
  endSession(workspaceId: string, sessionId: string): null;
  /** From the workspace: sockets that hang on this entity, key or session close, unless the workspace says that they hold. */
  proveAgain(workspaceId: string, subject: string): null;
  post(principal: Principal, input: PostMessage, inherited?: Root): { message: Message; created: boolean };
  list(
    principal: Principal,
    page: { before?: number | undefined; after?: number | undefined; limit: number },
  ): Page<Message>;
  /** Those that hold each word of `q`, from the newest before `before` back, as far as one look goes. */
  search(principal: Principal, page: { q: string; before?: number | undefined; limit: number }): Page<Message>;
  /** The calls that wait for an answer of this person. */
  asked(principal: Principal): Message[];
  /** One message, as it stands now. */
  find(principal: Principal, messageId: string, isShown?: boolean): { message: Message; spaceName: string };
  /** Its sender edits a message. The same text again changes nothing. */
  editMessage(principal: Principal, messageId: string, text: string): Message;
  /** Deletes a message; again, it answers the same. `agents`: those that may have heard it, the first `maxAskedAgents`. */
  deleteMessage(
    principal: Principal,
    messageId: string,
  ): { message: Message; agents: string[]; isConfidential: boolean };
  /**
   * From the workspace: one go of an erasure, of an entity's part in the space, or with null of all of it. The same go again
   * changes nothing more.
   */
  erase(workspaceId: string, of: ErasureOf | null): ErasedPart;
  /** From another space, where an agent's message tells one of these as its origin. Answers whether it still says these words. */
  noteTold(workspaceId: string, told: { sourceId: string; messageId: string; words?: string | undefined }): boolean;
  /** From the space of a message that was changed: one here tells no words of it any more. Answers whether all agents have heard. */
  forgetOrigin(workspaceId: string, of: ForgottenOrigin): { isDone: boolean };
  markRead(principal: Principal, messageId: string): null;
  /** The members whose read mark has come to a message, its sender aside. */
  reads(principal: Principal, messageId: string): ReadReceipt[];
  /** The router's decision about a message; `not_found` where the router was not asked. */
  routing(principal: Principal, messageId: string): MessageRouting;
  /**
   * A person answers a call that waits. The same answer again is `created: false`; another answer, or one after others
   * have decided, is a `conflict`. One after its time, or once the call is canceled, is `gone`. `impersonated`: whether
   * the workspace lets a session approve that somebody else made for its person.
   */
  answerToolCall(
    principal: Principal,
    toolCallId: string,
    answer: ToolAnswer,
    impersonated?: ImpersonatedApprovals,
  ): { message: Message; created: boolean };
  /** From a person who looks, or can be reached: has the space tell them from now on. Answers how it stands. */
  attend(workspaceId: string, personId: string, follows: Follows): Standing & { readSeq: number };
  /** For lists of spaces: the newest message, and how many the entity has not read (at most 99). */
  latest(principal: Principal): { lastMessage?: Message | undefined; unreadCount?: number | undefined };

  /** For agents. `mindId`: the compartment that reads; left out: the agent's open mind. */
  window(workspaceId: string, agentId: string, page: { limit: number; offset: number }, mindId?: string): SpaceWindow;
  history(
    workspaceId: string,
    agentId: string,
    page: { after: number; limit: number },
    mindId?: string | undefined,
  ): SpaceHistory;
  message(workspaceId: string, agentId: string, messageId: string, mindId?: string | undefined): SpaceMessage;
  speak(open: ChannelOpen, frames: ReadableStream<Uint8Array>): null;
  append(message: AgentMessage): Message;
  /** An agent answers nobody any more until then, or, of a member's share, not this one: told once for each. */
  noteBudget(workspaceId: string, agentId: string, notice: BudgetNotice): null;
  /** Shows a tool call, or how it stands now, once for each state; answers the message as it is then. */
  recordToolCall(call: AgentToolCall): Message;
}

export type EndpointRpc = Rpc<EndpointMethods>;

export type WorkspaceRpc = Rpc<WorkspaceMethods>;
interface WorkspaceMethods extends CredentialMethods, LimitMethods, RequestMethods, EndpointRegistryMethods {
  /** Creates once: a repeated call with the same id answers `conflict`. */
  create(input: { id: string; name: string; keyId: string; keyHash: string }): Workspace;
  describe(): Workspace;
  /** `by` of this and of others: who does it, for the audit log. */
  update(changes: UpdateWorkspace, by?: AuditActor): Workspace;

  putSecret(name: string, sealed: string, by?: AuditActor): null;
  deleteSecret(name: string, by?: AuditActor): null;
  secretNames(): string[];
  /** By name, without their values. */
  secrets(): Secret[];
  /** For a new agent: what `setSecrets` would bring it. */
  sealedSecrets(): Record<string, string>;
  /** Has all that is sealed here sealed by the ring's first secret, by jobs. */
  beginReseal(): Reseal;
  reseal(): Reseal;

  createEntity(id: string, input: CreateEntity, by?: AuditActor): Entity;
  /** Reserves an agent's name and id in the directory; called before the agent's own object is created. */
  createAgentEntity(id: string, name: string, importedBy?: AuditActor): Entity;
  /** With `visibleTo`, only that entity and those it shares a space with. */
  entities(page: PageRequest & { type?: EntityType | undefined; visibleTo?: string | undefined }): Page<Entity>;
  entity(id: string): Entity;
  /**
   * Those of `ids` that live in this workspace; `unknown_reference` names any that do not. With `visibleTo`, only
   * that entity and those it shares a space with resolve.
   */
  resolve(ids: string[], visibleTo?: string): Entity[];
  /** A new name is carried to every space of the entity, at once or by a timer. */
  updateEntity(id: string, changes: UpdateEntity, by?: AuditActor): Entity;
  /** Leaves every space, at once or by a timer; its messages stay. */
  removeEntity(id: string, by?: AuditActor): null;
  /** The standing of an entity whose token was verified; `not_found` if it was removed. */
  standing(entityId: string): { role: Role; type: EntityType };
  shareSpace(entityId: string, otherId: string): boolean;

  /** From spaces, in order; what is older than what it has is ignored. A workspace of the last release answers null. */
  follow(delivery: IndexDelivery): FollowingEndpoints | null;
  /** From agents: a call waits for servers, or does no more. */
  noteToolCall(call: WaitingToolCall, waits: boolean): null;
  /** Oldest first; with `openOnly`, without those of confidential spaces. */
  toolCalls(page: PageRequest & { openOnly?: boolean | undefined }): Page<WaitingToolCall>;

  /** A person opens a line: from now on it is told of spaces that they join. Answers those that they are in. */
  lineOf(entityId: string): { entity: Entity; spaceIds: string[] };
  /** Newest first; with `entityId`, only its own. */
  spaces(page: PageRequest & { entityId?: string | undefined }): Page<Space>;

  /** For the operator: what there is, also of a deleted workspace. */
  overview(): WorkspaceOverview;
  /** Nothing is taken any more, at once here and as soon as each space and agent is told; with null it is again. */
  suspend(reason: string | null): WorkspaceOverview;
  /** Ends a suspended workspace, and by jobs all that is in it; else `conflict`. */
  end(): WorkspaceOverview;
  /** To the registry, an object of this class that is no workspace, and from it, newest first. */
  register(workspace: RegisteredWorkspace): null;
  registered(page: PageRequest): Page<RegisteredWorkspace>;
  /** To a shard of the deployment's figures, from an isolate, and from it: its sums by series. */
  report(report: MeterReport): null;
  reported(): Record<string, number>;

  /** Begins an erasure; again, it answers how far that has come. */
  beginErasure(asked: CreateErasure, by: AuditActor): Erasure;
  erasure(id: string): Erasure;
  /** Newest first. */
  erasures(page: PageRequest): Page<Erasure>;

  /** For the audit log, of what happens elsewhere. */
  noteAudit(note: AuditNote): null;
  audit(page: PageRequest & AuditFilters): Page<AuditEntry>;
}
