import { ulid } from "ulid";
import * as z from "zod";
import { AuditEntry, type AuditFilters } from "../protocol/audit.ts";
import { Block, BlockChange, BlockDetail, EditedBlock } from "../protocol/block.ts";
import { Entity, Member } from "../protocol/entity.ts";
import { type CreateErasure, Erasure } from "../protocol/erasure.ts";
import { LimitsInUse } from "../protocol/limits.ts";
import { Message, ReadReceipt, RelatedItem } from "../protocol/message.ts";
import { type ChangeSettings, Device, type NewDevice, PushKey, Settings } from "../protocol/notifications.ts";
import type { Page } from "../protocol/rpc.ts";
import { Space, SpaceListItem, type UpdateSpace } from "../protocol/space.ts";
import type { ToolAnswer } from "../protocol/tool-call.ts";
import { StorageUse, type UsageBy, UsagePage } from "../protocol/usage.ts";
import { SignInLink, Token, type UpdateWorkspace, Workspace } from "../protocol/workspace.ts";
import { type EditRequest, type LiveBlock, openLiveBlock } from "./blocks/live-block.ts";
import type { ConnectionTimings } from "./connection.ts";
import { createCredentials, type RefreshToken, readToken } from "./credentials.ts";
import { createHttp } from "./http.ts";
import { type Line, openLine } from "./line.ts";
import { type LiveSpace, type MessagePage, type OpenSpaceOptions, openLiveSpace } from "./live-space.ts";

export type ClientOptions = {
  /** Where Colloquy is, such as `https://colloquy.example.com`. */
  baseUrl: string;
} & (
  | {
      /** A token of the person, from `POST /v1/tokens`. */
      token: string;
      /** Called when the token has expired. Without it, the client is then signed out. */
      refreshToken?: RefreshToken;
    }
  /** On Colloquy's own page: whom the browser's session is of. */
  | { entityId: string }
);

/** A block that an agent shares with the people of a space. */
export type BlockRef = { spaceId: string; agentId: string; label: string };

/** `members`: their ids. `confidential`: what is said in it stays in it, for ever. */
type NewSpace = { name: string; members?: readonly string[]; confidential?: boolean };
type PageQuery = { cursor?: string; limit?: number };
type MessageQuery = { before?: number; after?: number; limit: number };
type MessageInput = { text: string; replyTo?: string; clientKey?: string };

const pageOf = <Item extends z.ZodType>(item: Item) =>
  z.object({ items: z.array(item), nextCursor: z.string().nullable() });
const itemsOf = <Item extends z.ZodType>(item: Item) =>
  z.object({ items: z.array(item) }).transform(({ items }) => items);

const SpaceAnswer = z.object({ space: Space }).transform(({ space }) => space);
const MemberAnswer = z.object({ member: Member }).transform(({ member }) => member);
const MessageAnswer = z.object({ message: Message }).transform(({ message }) => message);
const MessagesAnswer = pageOf(Message).transform(
  ({ items, nextCursor }): MessagePage => ({ items, hasOlder: nextCursor !== null }),
);
const DeletedAnswer = z.object({ message: Message, related: z.array(RelatedItem) });
const OriginAnswer = z.object({ message: Message, spaceName: z.string() });
/** The part of an agent that its people see. */
const AgentAnswer = z
  .object({
    agent: z.object({
      config: z.object({ name: z.string() }),
      warnings: z.array(z.string()).default([]),
      activity: z.object({ storage: StorageUse.optional() }).optional(),
    }),
  })
  .transform(({ agent: { config, warnings, activity } }) => ({ ...config, warnings, storage: activity?.storage }));
const ErasureAnswer = z.object({ erasure: Erasure }).transform(({ erasure }) => erasure);
const WorkspaceAnswer = z.object({ workspace: Workspace }).transform(({ workspace }) => workspace);
const WorkspaceInUse = z.object({ workspace: Workspace, ...LimitsInUse.partial().shape });
const DevicesAnswer = z.object({ devices: z.array(Device) }).transform(({ devices }) => devices);
const EntityAnswer = z.object({ entity: Entity }).transform(({ entity }) => entity);
const NoAnswer = z.unknown().transform((): void => undefined);

const at = (...segments: string[]): string => `/v1/${segments.map(encodeURIComponent).join("/")}`;

const atBlock = ({ spaceId, agentId, label }: BlockRef, ...part: string[]): string =>
  at("spaces", spaceId, "agents", agentId, "blocks", label, ...part);

/** What a person can do. Every method rejects with a `ColloquyError` whose code is the problem document's. */
export type Client = ReturnType<typeof createClient>;

export const createClient = ({ baseUrl, ...who }: ClientOptions) => {
  const credentials = "token" in who ? createCredentials(who.token, who.refreshToken) : createCredentials("");
  const ownId = (): string => ("token" in who ? (readToken(credentials.token())?.entityId ?? "") : who.entityId);
  const http = createHttp(baseUrl, credentials, "token" in who ? undefined : who.entityId);

  const socketAddress = (path: string, cursor: number | null = null): string => {
    const url = new URL(path, baseUrl);
    url.protocol = url.protocol === "https:" ? "wss:" : "ws:";
    if ("token" in who) url.searchParams.set("token", credentials.token());
    else url.searchParams.set("as", who.entityId);
    if (cursor !== null) url.searchParams.set("cursor", String(cursor));
    return url.href;
  };

  const client = {
    /** Newest first, with unread counts and the latest message of each. */
    listSpaces: (query: PageQuery = {}) => http({ path: at("spaces"), query, answer: pageOf(SpaceListItem) }),
    createSpace: ({ members = [], ...settings }: NewSpace): Promise<Space> => {
      const body = { ...settings, members: members.map((entityId) => ({ entityId })) };
      return http({ method: "POST", path: at("spaces"), body, idempotencyKey: ulid(), answer: SpaceAnswer });
    },
    getSpace: (spaceId: string) => http({ path: at("spaces", spaceId), answer: SpaceAnswer }),
    updateSpace: (spaceId: string, changes: UpdateSpace) =>
      http({ method: "PATCH", path: at("spaces", spaceId), body: changes, answer: SpaceAnswer }),
    addMember: (spaceId: string, entityId: string) =>
      http({ method: "POST", path: at("spaces", spaceId, "members"), body: { entityId }, answer: MemberAnswer }),
    /** A person may remove only themselves, that is, leave. */
    removeMember: (spaceId: string, entityId: string) =>
      http({ method: "DELETE", path: at("spaces", spaceId, "members", entityId), answer: NoAnswer }),
    listMessages: (spaceId: string, query: MessageQuery) =>
      http({ path: at("spaces", spaceId, "messages"), query, answer: MessagesAnswer }),
    /** The message is stored once for each `clientKey`; a missing one is generated. */
    postMessage: (spaceId: string, { clientKey = ulid(), ...input }: MessageInput) => {
      const body = { ...input, clientKey };
      return http({ method: "POST", path: at("spaces", spaceId, "messages"), body, answer: MessageAnswer });
    },
    /** For who said it. Rejects with `forbidden`, or with `gone` where it was deleted. */
    editMessage: (spaceId: string, messageId: string, text: string) => {
      const path = at("spaces", spaceId, "messages", messageId);
      return http({ method: "PATCH", path, body: { text }, answer: MessageAnswer });
    },
    /**
     * For who said it, and for admins. Resolves to what is left of it, and for an admin to what agents wrote down of it.
     * Rejects with `forbidden`, or with `conflict` for a tool call that is not over.
     */
    deleteMessage: (spaceId: string, messageId: string) =>
      http({ method: "DELETE", path: at("spaces", spaceId, "messages", messageId), answer: DeletedAnswer }),
    /** For admins: what an agent wrote down of a message that was deleted. */
    deleteRelated: ({ agentId, spaceId: space, kind, label = "", id = "" }: RelatedItem) => {
      const path = at("agents", agentId, ...(kind === "block" ? ["blocks", label] : ["archival", id]));
      return http({ method: "DELETE", path, query: { space }, answer: NoAnswer });
    },
    /**
     * Answers a tool call that waits for people. An approval takes `{result: {approved, inputHash, note?}}`, any other
     * call a result that matches its schema, or an error. Who approves has seen every field of the call's
     * `awaits.shown`, and sends its `awaits.inputHash`. Resolves to the call's message as it is then. The same answer
     * again changes nothing. Rejects with `forbidden`, `conflict` (others were first), `approval_changed` (its
     * arguments are others now), `gone` (too late) or `answer_invalid`, with its issues.
     */
    answerToolCall: (spaceId: string, toolCallId: string, body: ToolAnswer) => {
      const path = at("spaces", spaceId, "tool-calls", toolCallId, "result");
      return http({ method: "POST", path, body, answer: MessageAnswer });
    },
    markRead: (spaceId: string, messageId: string) =>
      http({ method: "POST", path: at("spaces", spaceId, "read"), body: { messageId }, answer: NoAnswer }),
    /** Who has read a message, except its sender. For an agent also how its run on the message ended. */
    listReads: (spaceId: string, messageId: string) =>
      http({ path: at("spaces", spaceId, "messages", messageId, "reads"), answer: itemsOf(ReadReceipt) }),
    /** The message in another space that an agent said this one because of. Rejects with `not_found` for who is not there. */
    getOrigin: (spaceId: string, messageId: string) =>
      http({ path: at("spaces", spaceId, "messages", messageId, "origin"), answer: OriginAnswer }),
    getEntity: (entityId: string) => http({ path: at("entities", entityId), answer: EntityAnswer }),
    /** For admins: `warnings` say what of its config cannot work in confidential spaces, and what to do. */
    getAgent: (agentId: string) => http({ path: at("agents", agentId), answer: AgentAnswer }),
    /** For admins, as all that follows: the workspace, what it may use, and what it uses of that. */
    getWorkspace: () => http({ path: at("workspace"), answer: WorkspaceInUse }),
    updateWorkspace: (changes: UpdateWorkspace) =>
      http({ method: "PATCH", path: at("workspace"), body: changes, answer: WorkspaceAnswer }),
    /** The use of the last 30 days. The largest comes first; by day, the newest does. */
    usage: (query: PageQuery & { by: UsageBy }) => http({ path: at("usage"), query, answer: UsagePage }),
    audit: (query: PageQuery & Pick<AuditFilters, "action">) =>
      http({ path: at("workspace", "audit"), query, answer: pageOf(AuditEntry) }),
    /** Begins it, once: the same again answers how far it has come. */
    erase: (body: CreateErasure) => http({ method: "POST", path: at("erasures"), body, answer: ErasureAnswer }),
    getErasure: (id: string) => http({ path: at("erasures", id), answer: ErasureAnswer }),
    /** Newest first. */
    listErasures: (query: PageQuery = {}) => http({ path: at("erasures"), query, answer: pageOf(Erasure) }),
    /** Ends all tokens and sessions of a person, this one's own included. */
    signOutEverywhere: (entityId: string) =>
      http({ method: "POST", path: at("entities", entityId, "sign-out"), answer: NoAnswer }),
    /** For admins: a link that signs the person in to the page, once. */
    makeSignInLink: (entityId: string) =>
      http({ method: "POST", path: at("entities", entityId, "sign-in-links"), answer: SignInLink }),
    /** For admins: a token, which is shown this once. */
    makeToken: (entityId: string, expiresInSeconds: number) =>
      http({ method: "POST", path: at("tokens"), body: { entityId, expiresInSeconds }, answer: Token }),
    /** This person and those it shares a space with, oldest first. */
    listEntities: (query: PageQuery = {}) => http({ path: at("entities"), query, answer: pageOf(Entity) }),
    openSpace: (spaceId: string, options?: OpenSpaceOptions): LiveSpace => {
      const { listMessages, getSpace, editMessage, deleteMessage } = client;
      const access = { credentials, listMessages, getSpace, editMessage, deleteMessage };
      const streamAddress = (cursor: number | null) => socketAddress(at("spaces", spaceId, "stream"), cursor);
      return openLiveSpace({ ...access, streamAddress }, spaceId, options);
    },
    /** The blocks that agents share with a space. */
    listBlocks: (spaceId: string) => http({ path: at("spaces", spaceId, "blocks"), answer: itemsOf(Block) }),
    /** The block as it is now, or as it was at an earlier version. */
    getBlock: (block: BlockRef, version?: number) =>
      http({ path: atBlock(block), query: { version }, answer: BlockDetail }),
    /**
     * All operations or none, merged with what came after `onVersion`. With the same key, the same edit again changes
     * nothing and has the same answer. Rejects with `forbidden` where the space's people may not edit, with
     * `edit_refused` or `text_too_long`.
     */
    editBlock: (block: BlockRef, body: EditRequest, idempotencyKey: string = ulid()) =>
      http({ method: "POST", path: atBlock(block, "operations"), body, idempotencyKey, answer: EditedBlock }),
    /** Newest first. */
    blockHistory: (block: BlockRef, query: PageQuery = {}) =>
      http({ path: atBlock(block, "history"), query, answer: pageOf(BlockChange) }),
    /** Reads which events alert this person, and when. */
    getSettings: () => http({ path: at("me", "settings"), answer: Settings }),
    /** Changes the fields that `body` has. A field that is null is taken away. */
    changeSettings: (body: ChangeSettings) =>
      http({ method: "PATCH", path: at("me", "settings"), body, answer: Settings }),
    /** The devices that are told by Web Push. */
    listDevices: () => http({ path: at("me", "devices"), answer: DevicesAnswer }),
    /** `toJSON` of a browser's `PushSubscription` has the endpoint and the keys. The same endpoint again replaces. */
    addDevice: (body: NewDevice) => http({ method: "POST", path: at("me", "devices"), body, answer: Device }),
    removeDevice: (deviceId: string) =>
      http({ method: "DELETE", path: at("me", "devices", deviceId), answer: NoAnswer }),
    /** The `applicationServerKey` of subscriptions. Rejects where the deployment has none. */
    getPushKey: async () => (await http({ path: at("push-key"), answer: PushKey })).publicKey,
    /** All of the person's spaces, as they stand, live. */
    openLine: ({ timings }: { timings?: Partial<ConnectionTimings> } = {}): Line => {
      const lineAddress = () => socketAddress("/v1/stream", 0);
      const listSpaces = () => allItems((page) => client.listSpaces({ limit: 50, ...page }));
      return openLine({ credentials, lineAddress, listSpaces }, timings);
    },
    openBlock: (block: BlockRef, { timings }: { timings?: Partial<ConnectionTimings> } = {}): LiveBlock => {
      const access = {
        credentials,
        by: `human:${ownId()}`,
        streamAddress: () => socketAddress(atBlock(block, "stream")),
        read: () => client.getBlock(block),
        edit: (request: EditRequest, key: string) => client.editBlock(block, request, key),
      };
      return openLiveBlock(access, timings);
    },
  };
  return client;
};

const maxPages = 10;

/** The items of all pages, up to ten pages. `list` is given the place of each page. */
export const allItems = async <Item>(list: (page: { cursor?: string }) => Promise<Page<Item>>): Promise<Item[]> => {
  const items: Item[] = [];
  let page: { cursor?: string } = {};
  for (let count = 0; count < maxPages; count += 1) {
    const { items: next, nextCursor } = await list(page);
    items.push(...next);
    if (nextCursor === null) break;
    page = { cursor: nextCursor };
  }
  return items;
};
