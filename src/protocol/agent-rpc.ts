import type { Outcome } from "../shared/errors.ts";
import type { Agent, AgentConfig, TriggerAgent, UpdateAgent } from "./agent.ts";
import type { ArchivalEntry, CreateArchival } from "./archival.ts";
import type { AuditActor } from "./audit.ts";
import type {
  Block,
  BlockChange,
  BlockDetail,
  CreateBlock,
  EditBlock,
  EditedBlock,
  Permission,
  UpdateBlock,
} from "./block.ts";
import type { ExportedHead, ExportedRow, ImportReport, RowKind } from "./exported-agent.ts";
import type { ClaimedRun, ClaimRun, DeclaredTool, GuestCall, GuestCallAnswer, GuestEnd, GuestSpeech } from "./guest.ts";
import type { HookSettings, UpdateHook } from "./hook.ts";
import type { Knowledge, PastThing } from "./knowledge.ts";
import type { RelatedItem } from "./message.ts";
import type { MessageChange, Redaction } from "./message-change.ts";
import type { Goal, Memory, PutGoal } from "./mind.ts";
import type { Plan, PutPlan } from "./plan.ts";
import type { DeliveryText, Page, PageRequest, Root, Rpc, SpaceSnapshot } from "./rpc.ts";
import type { ContextView, InboxItem, Run, RunStatus } from "./run.ts";
import type { QueryVector, SearchAnswer, SearchQuery } from "./search.ts";
import type { SecretUsed } from "./secret.ts";
import type { AnsweredToolCall, ClaimToolCall, ToolAnswer, WaitingToolCall } from "./tool-call.ts";

/** A page of an inbox: the events in that `status`, or all. */
export type InboxRequest = PageRequest & { status?: InboxItem["status"] | undefined };

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
  /** The chain that it belongs to; left out: it begins one. */
  root?: Root | undefined;
};

/** An agent's note to another about a block that it shares with it. */
export type SharedBlockNote = Pick<Block, "label" | "type" | "permission"> & { ownerId: string; ownerName: string };

/** The blocks of an open mind, each whole where its version is not known, and what others share with it. */
export type OpenBlocks = { own: { label: string; block?: Block | undefined }[]; shared: SharedBlockNote[] };

/** An agent that may use a block, or a space whose people may, and how. */
export type BlockGrant = { granteeId: string; permission: Permission; createdAt: string };

/**
 * The editor of a block. The caller has checked that it is that principal. `confidential`: it writes from a confidential
 * space, an agent by its compartment.
 */
export type BlockPrincipal = {
  confidential?: boolean | undefined;
} /** Somebody with the workspace's rights; `through` is the agent that the block is shared with and is reached by. */ & (
  | { kind: "workspace"; author: string; through?: string | undefined }
  /** A member of a space that the block is shared with. `author` is `human:ent_…`. */
  | { kind: "person"; spaceId: string; author: string; name: string }
  /** The block's owner, or an agent that it is shared with. `consented`: a person agreed to this edit. */
  | { kind: "agent"; agentId: string; name: string; consented?: boolean | undefined }
);

/** A change by whom a block is shared with; `callId` makes the same one again change nothing. */
export type SharedChange = {
  by: BlockPrincipal;
  callId?: string | undefined;
  /** When the caller stops waiting, in milliseconds since the epoch: what is not made by then is `unavailable`. */
  until?: number | undefined;
};
/** `sources`: the messages that the run had which edits. A compartment tells its own to no other agent (C17). */
export type SharedEdit = Pick<EditBlock, "operations" | "onVersion"> &
  SharedChange & { sources?: string[] | undefined };

/** How far a compartment was told of the open mind's runs. `open`: those up to `upTo` that had not ended. */
export type FeedPlace = { upTo: number; open: number[] };

/**
 * What a compartment has of its agent's open mind: `settings` by their version, and `parts` of the state by their
 * hashes.
 */
export type FeedRequest = {
  spaceId: string;
  place: FeedPlace | null;
  settings: number;
  parts: Record<string, string>;
};

/** The news of the open mind, as JSON: a call would clone an object part by part. */
export type FeedText = string;

/** Where an export ends: later rows are not in it, however long it is read. */
export type ExportBounds = {
  at: number;
  journal: number;
  run: number;
  window: number;
  archival: number;
  /**
   * The cycle that was under way and had acted: it is remembered, its open calls answered as those of a canceled run.
   * `undone`: nothing can have come of the call; any other may be done (R3).
   */
  cut?: { run: number; open: { step: number; callId: string; toolName: string; undone?: true }[] };
};

/** Where the next page of an export begins: after this row of a kind. `lines` counts the lines before it. */
export type ExportPlace = { bounds: ExportBounds; kind: RowKind; after: string | number | null; lines: number };

/** Whole lines of the document; `next` is null on the last page. */
export type ExportPage = { text: string; next: ExportPlace | null };

/**
 * What a compartment runs by: its agent's config as it is for a confidential space, and the workspace's sealed secrets.
 * `version` rises with each change.
 */
export type MindSettings = {
  version: number;
  config: AgentConfig;
  secrets: Record<string, string>;
  suspended?: boolean;
};

/** The confidential spaces of which words would go where they do not go yet, and what of the agent they would go by. */
export type Exposure = { spaces: string[]; fields: string[] };

/**
 * The tokens that a step of a compartment may cost; `lease` names this attempt of it. `person`: who pays. `until`: when it
 * stops waiting: what is not booked by then is `unavailable`.
 */
export type TokenLease = {
  lease: string;
  tokens: number;
  person: string | null;
  until?: number;
  spaceId?: string | null | undefined;
};

/**
 * Why a step does not start: no room in its day, in the share of the person who pays, or in the workspace's day.
 * `…_booked`: it may have some once steps under way are settled.
 */
export type TokensBooked = "reserved" | "day" | "share" | "workspace" | "day_booked" | "share_booked";

/** An import that is under way: `token` tells it from another one into the same object. */
export type ImportName = { workspaceId: string; token: string };

/** A row, and where it stands in the document: refusals name it. */
export type ImportedRow = ExportedRow & { at: string };

/**
 * An agent's own blocks. `author` is the caller: `human:ent_…` or `system`. The same `callId` again changes nothing and
 * gets the same answer.
 */
export interface BlockMethods {
  /** Its own and those that are shared with it, by label. */
  blocks(): Block[];
  createBlock(block: CreateBlock, author: string, callId?: string): BlockDetail;
  /**
   * `granteeId`: as the agent or the space sees it that the block is shared with. Otherwise as this agent sees it.
   * `confidential`: a compartment of that agent asks.
   */
  block(label: string, version?: number, granteeId?: string, confidential?: boolean): BlockDetail;
  editBlock(label: string, edit: EditBlock, author: string, callId?: string): EditedBlock;
  /** `readable`: as for `update`. What exposes another space is not done, and answered with all that it exposes. */
  updateBlock(label: string, changes: UpdateBlock, author: string, readable?: string[]): BlockDetail | Exposure;
  deleteBlock(label: string, as: EditBlock["as"], author: string): null;
  /** Newest first. */
  blockHistory(label: string, page: PageRequest, granteeId?: string): Page<BlockChange>;
  /** Oldest first. */
  blockGrants(label: string): BlockGrant[];
  /** If it is a space, the caller has checked that the agent is a member. `readable`: as for `updateBlock`. */
  shareBlock(label: string, grant: Omit<BlockGrant, "createdAt">, readable?: string[]): BlockGrant | Exposure;
  unshareBlock(label: string, granteeId: string): null;

  /** From the agents that own blocks. */
  noteSharedBlock(note: SharedBlockNote): null;
  dropSharedBlock(ownerId: string, label: string): null;
  /** From the agents that blocks are shared with. Null for what is not shared (any more). */
  readSharedBlocks(readerId: string, labels: string[], confidential?: boolean): (Block | null)[];
  /** From its compartments, which have these versions of blocks, by label. Changes nothing. */
  openBlocks(known: Record<string, string>): OpenBlocks;
  deleteSharedBlock(label: string, change: SharedChange): null;

  /** From the workspace: as `proveAgain` of a space, for who follows blocks. */
  proveAgain(subject: string): null;
  /** For the people of a space, whom the caller has checked. By label; `permission` is theirs. */
  spaceBlocks(spaceId: string): Block[];

  /** For both: `by` says who. */
  editSharedBlock(label: string, edit: SharedEdit): EditedBlock;
}

/** An agent's methods about itself. */
export interface AgentMethods extends BlockMethods {
  /** Throws where `update` would not take the changes. Stores nothing. */
  checkUpdate(changes: UpdateAgent): Exposure;
  describe(): Agent;
  /** The confidential spaces that it is or was in, oldest first, and who is in each as far as it heard. */
  compartments(page: PageRequest): Page<{ space: Pick<SpaceSnapshot, "id" | "name" | "members">; left: boolean }>;
  /** From agents that share blocks with it: those that it is in, and those that it has a compartment of. */
  confidentialSpaces(): string[];
  /** `readable`: the confidential spaces that the caller reads; undefined: all. Throws `forbidden` where it exposes another. */
  update(changes: UpdateAgent, readable?: string[], by?: AuditActor): Agent;
  remove(): null;
  /** The workspace's sealed secrets, all of them, by name; kept sealed. */
  setSecrets(sealed: Record<string, string>): null;
  /** Where it sent a secret since then, newest first: in its open mind and its compartments, or in the compartment that is asked. */
  secretUses(name: string, since: number): SecretUsed[];
  /**
   * Its copy of the secrets is these, and its hooks' secrets are sealed by the ring's first. `unopened`: hooks that no
   * secret of the ring opens. `waiting`: compartments that do not have the copy yet.
   */
  reseal(sealed: Record<string, string>): { unopened: string[]; waiting: number };
  /** From the workspace: no run begins or goes on until it is resumed, and plans wait. */
  setSuspended(suspended: boolean): null;
  /** From the workspace: its tokens are leased from the workspace's day from now on, or no more. */
  meterTokens(isMetered: boolean): null;

  /** From the agent's compartment for that space, as it begins. Noted before it is answered. `not_found` as the agent ends. */
  openCompartment(spaceId: string): MindSettings;
  /** From the open mind to a compartment. An older version changes nothing. */
  configureCompartment(settings: MindSettings): null;

  /** From a compartment: books a step's tokens in the agent's day, or says which bound has no room. The same again changes nothing. */
  leaseTokens(lease: TokenLease): TokensBooked;
  /** The step was billed so many of them. */
  settleTokens(settled: {
    lease: string;
    billed: number;
    person?: string | undefined;
    spaceId?: string | null | undefined;
  }): null;

  /** `root`: the chain that it belongs to; left out: it begins one. */
  trigger(event: TriggerAgent, idempotencyKey?: string, root?: Root): { eventId: string };

  inbox(request: InboxRequest): Page<InboxItem>;
  /** Retries a dead event; `conflict` where it is not dead, as for `discardEvent`. */
  retryEvent(eventId: string): InboxItem;
  retryDeadEvents(): { retried: number };
  discardEvent(eventId: string): null;
  /** Newest first, without the steps' inputs. */
  runs(page: PageRequest & { status?: RunStatus | undefined }): Page<Run>;
  /** With the steps' inputs, as many steps from `fromStep` on as one answer holds. */
  run(runId: string, fromStep?: number): Run;
  cancelRun(runId: string): Run;
  /** Has words taken out of all that it keeps, and its compartments too. It goes on by itself until that is done. */
  redact(redactions: Redaction[]): null;
  /** From the workspace, which erases the agent: other agents that read its blocks forget them. The same again changes nothing. */
  takeBackBlocks(): { isDone: boolean };
  /** From a space that it has left: messages that were edited or deleted since. */
  forgetMessages(changes: MessageChange[]): null;
  /** Blocks and archival entries that its runs that knew the message wrote, as far as they are there. */
  related(messageId: string): Omit<RelatedItem, "agentId" | "spaceId">[];
  /**
   * From a space that was deleted, part by part: words that it is to forget. Null: it has been told all. From the workspace: the
   * names of who is erased. `isDone`: it has forgotten them, its compartments too; if not, it is asked again. The same part again
   * changes nothing. `rows` and `objects` of an erasure: what changed for it in all minds, once it is done, and how many they are.
   */
  forgetSpace(spaceId: string, part: Redaction | null): { isDone: boolean; rows?: number; objects?: number };
  context(): ContextView;
  /** From its own compartments. Changes nothing here. */
  feed(asked: FeedRequest): FeedText;
  /** Where something of its past stands in its next input. */
  knows(asked: PastThing): Knowledge;

  /** From a server that executes `external` tools. `conflict` while another holds it, `gone` when it is over. */
  claimToolCall(toolCallId: string, claim: ClaimToolCall): WaitingToolCall;
  /** The first answer wins; the same again is `created: false`, another a `conflict`. */
  answerToolCall(toolCallId: string, answer: ToolAnswer): AnsweredToolCall;

  /** From a guest's program: a run, with all that its next step needs; null where none came in time. `conflict` of a house agent. */
  claimRun(claim: ClaimRun): ClaimedRun | null;
  /** The tools that its next run would have. `conflict` of a house agent. */
  toolset(): DeclaredTool[];
  /** `gone` for who does not hold the run any more. The same key again is the same call; `idempotency_mismatch` for another one. */
  callInRun(runId: string, call: GuestCall): GuestCallAnswer;
  /** `send_message`, whose words come as lines of JSON. The stream is always cancelled. */
  speakInRun(runId: string, speech: GuestSpeech, lines: ReadableStream<Uint8Array>): GuestCallAnswer;
  /** `tool_rule_broken` or `skip_too_late` where the run does not end so: it goes on. */
  endRun(runId: string, end: GuestEnd): Run;
  renewClaim(runId: string, lease?: string): { leaseUntil: string };

  memories(): Memory[];
  putMemory(key: string, value: string): Memory;
  deleteMemory(key: string): null;
  goals(): Goal[];
  putGoal(id: string, goal: PutGoal): Goal;
  deleteGoal(id: string): null;
  plans(): Plan[];
  putPlan(id: string, plan: PutPlan, root?: Root): Plan;
  deletePlan(id: string): null;

  search(query: SearchQuery): SearchAnswer;
  /** From its compartments: what the open mind's index has. The query's mode is what is done. Changes nothing. */
  searchOpen(query: SearchQuery, alike: QueryVector | null): SearchAnswer;
  /** Newest first; of a compartment its own, then those of the open mind. */
  archival(page: PageRequest): Page<ArchivalEntry>;
  /** The same `id` again changes nothing. */
  archive(id: string, entry: CreateArchival): ArchivalEntry;
  deleteArchival(id: string): null;

  hooks(): HookSettings[];
  createHook(hook: NewHook): HookSettings;
  hook(id: string): HookSettings;
  updateHook(id: string, changes: UpdateHook): HookSettings;
  rotateHook(id: string, rotation: HookRotation): HookSettings;
  deleteHook(id: string): null;
  /** Answers once the event is stored; the same delivery again answers the same event (D5). */
  receive(hookId: string, delivery: ProvenDelivery): { eventId: string };

  /** A page of its export: the first one without a place. */
  exportPage(from: ExportPlace | null): ExportPage;
  /** The directory knows the agent: it begins to be. Again, it answers the same. */
  completeImport(): { agent: Agent; report: ImportReport };
}

/**
 * The methods that do not begin with the workspace's id. An import is staged in the new agent's own object, which
 * answers `not_found` to everybody until it is complete. A timer deletes an import that nobody goes on with.
 */
interface ObjectMethods {
  /** Whether an agent could be created with this config. Stores nothing, of an object that is no agent yet either. */
  check(config: AgentConfig): null;
  create(input: { id: string; workspaceId: string; config: AgentConfig }): Agent;
  /**
   * From a space. Never waits for the model. Answers up to where this agent has come in that space. `changes`: it took the
   * delivery's changes too. One of the last release does not, and is told them by `forgetMessages`.
   */
  deliver(delivery: DeliveryText): { cursor: number; changes?: true };
  /** For a caller who has a hook's address only. */
  sealedHook(id: string): SealedHook;

  /** `there`: the agent was made by an earlier try. `idempotency_in_progress` while another import is under way. */
  beginImport(id: string, name: ImportName): "begun" | "there";
  /** Takes rows that were parsed by their schemas: all of them or none. */
  importRows(name: ImportName, rows: ImportedRow[]): null;
  /** All is there: checks that it fits together. From here on the workspace's directory decides whether it counts. */
  prepareImport(name: ImportName, head: ExportedHead): null;
  dropImport(name: ImportName): null;
  /** Whether an import into this object is under way. Stores nothing. */
  isImporting(): boolean;
}

/** The agent's RPC: `AgentMethods` take the id of the workspace first, which has to be this agent's. */
export type AgentRpc = Rpc<ObjectMethods> & {
  [Name in keyof AgentMethods]: (
    workspaceId: string,
    ...args: Parameters<AgentMethods[Name]>
  ) => Promise<Outcome<ReturnType<AgentMethods[Name]>>>;
};
