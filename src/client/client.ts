import { ulid } from "ulid";
import { z } from "zod";
import { Block, BlockChange, BlockDetail, EditedBlock } from "../protocol/block.ts";
import { Entity, Member } from "../protocol/entity.ts";
import { Message, ReadReceipt } from "../protocol/message.ts";
import { Space, SpaceListItem } from "../protocol/space.ts";
import type { ToolAnswer } from "../protocol/tool-call.ts";
import { type EditRequest, type LiveBlock, openLiveBlock } from "./blocks/live-block.ts";
import type { ConnectionTimings } from "./connection.ts";
import { createCredentials, type RefreshToken } from "./credentials.ts";
import { createHttp } from "./http.ts";
import { type LiveSpace, type OpenSpaceOptions, openLiveSpace } from "./live-space.ts";
import { type MessagePage, MessagesAnswer } from "./messages.ts";
import { readToken } from "./token.ts";

export type ClientOptions = {
  /** Where Colloquy is, such as `https://colloquy.example.com`. */
  baseUrl: string;
  /** A token of the person, from `POST /v1/tokens`. */
  token: string;
  /** Called when the token has expired; without it, the client is signed out then. */
  refreshToken?: RefreshToken;
};

/** A block that an agent shares with the people of a space. */
export type BlockRef = { spaceId: string; agentId: string; label: string };

export type Page<T> = { items: T[]; nextCursor: string | null };

/** What a person can do. Every method rejects with a `ColloquyError` whose code is the problem document's. */
export type Client = {
  /** Newest first, with unread counts and the latest message of each. */
  listSpaces(page?: { cursor?: string; limit?: number }): Promise<Page<SpaceListItem>>;
  createSpace(input: { name: string; members?: readonly string[] }): Promise<Space>;
  getSpace(spaceId: string): Promise<Space>;
  renameSpace(spaceId: string, name: string): Promise<Space>;
  addMember(spaceId: string, entityId: string): Promise<Member>;
  /** A person may take only itself out, that is, leave. */
  removeMember(spaceId: string, entityId: string): Promise<void>;
  listMessages(spaceId: string, page: { before?: number; after?: number; limit: number }): Promise<MessagePage>;
  /** Stored once for each `clientKey`, which is made up if it is left out. */
  postMessage(spaceId: string, input: { text: string; replyTo?: string; clientKey?: string }): Promise<Message>;
  /**
   * Answers a tool call that waits for people: an approval with `{result: {approved, note?}}`, any other with a result
   * that matches its schema, or with an error. Answers its message as it stands then. The same again changes nothing.
   * Rejects with `forbidden`, `conflict` (others were first), `gone` (too late) or `answer_invalid`, with its issues.
   */
  answerToolCall(spaceId: string, toolCallId: string, answer: ToolAnswer): Promise<Message>;
  markRead(spaceId: string, messageId: string): Promise<void>;
  /** Who has read a message, its sender aside, and what came of it where an agent's run took it. */
  listReads(spaceId: string, messageId: string): Promise<ReadReceipt[]>;
  getEntity(entityId: string): Promise<Entity>;
  /** This person and those it shares a space with, oldest first. */
  listEntities(page?: { cursor?: string; limit?: number }): Promise<Page<Entity>>;
  openSpace(spaceId: string, options?: OpenSpaceOptions): LiveSpace;
  /** The blocks that agents share with a space. */
  listBlocks(spaceId: string): Promise<Block[]>;
  /** Now, or as it was at an earlier version. */
  getBlock(block: BlockRef, version?: number): Promise<BlockDetail>;
  /**
   * All operations or none, merged with what came after `onVersion`. Rejects with `forbidden` where the space's people
   * may not, `edit_refused`, `text_too_long`.
   */
  /** With a key of the caller's, the same edit again changes nothing and is answered as before. */
  editBlock(block: BlockRef, edit: EditRequest, key?: string): Promise<EditedBlock>;
  /** Newest first. */
  blockHistory(block: BlockRef, page?: { cursor?: string; limit?: number }): Promise<Page<BlockChange>>;
  openBlock(block: BlockRef, options?: { timings?: Partial<ConnectionTimings> }): LiveBlock;
};

const SpacesAnswer = z.object({ items: z.array(SpaceListItem), nextCursor: z.string().nullable() });
const SpaceAnswer = z.object({ space: Space });
const MemberAnswer = z.object({ member: Member });
const MessageAnswer = z.object({ message: Message });
const ReadsAnswer = z.object({ items: z.array(ReadReceipt) });
const EntitiesAnswer = z.object({ items: z.array(Entity), nextCursor: z.string().nullable() });
const BlocksAnswer = z.object({ items: z.array(Block) });
const HistoryAnswer = z.object({ items: z.array(BlockChange), nextCursor: z.string().nullable() });
const EntityAnswer = z.object({ entity: Entity });

const at = (...segments: string[]): string => `/v1/${segments.map(encodeURIComponent).join("/")}`;

export const createClient = ({ baseUrl, token, refreshToken }: ClientOptions): Client => {
  const credentials = createCredentials(token, refreshToken);
  const http = createHttp(baseUrl, credentials);

  const getSpace: Client["getSpace"] = async (spaceId) =>
    (await http({ path: at("spaces", spaceId), answer: SpaceAnswer })).space;
  const listMessages: Client["listMessages"] = (spaceId, { before, after, limit }) =>
    http({ path: at("spaces", spaceId, "messages"), query: { before, after, limit }, answer: MessagesAnswer });

  const socketAddress = (path: string): URL => {
    const url = new URL(path, baseUrl);
    url.protocol = url.protocol === "https:" ? "wss:" : "ws:";
    url.searchParams.set("token", credentials.token());
    return url;
  };
  const streamAddress = (spaceId: string, cursor: number | null): string => {
    const url = socketAddress(at("spaces", spaceId, "stream"));
    if (cursor !== null) url.searchParams.set("cursor", String(cursor));
    return url.href;
  };

  const ofBlock = ({ spaceId, agentId, label }: BlockRef, ...part: string[]): string =>
    at("spaces", spaceId, "agents", agentId, "blocks", label, ...part);
  const getBlock: Client["getBlock"] = (block, version) =>
    http({ path: ofBlock(block), query: { version }, answer: BlockDetail });
  const editBlock: Client["editBlock"] = (block, body, key = ulid()) =>
    http({ method: "POST", path: ofBlock(block, "operations"), body, idempotencyKey: key, answer: EditedBlock });

  return {
    listSpaces: ({ cursor, limit } = {}) =>
      http({ path: at("spaces"), query: { cursor, limit }, answer: SpacesAnswer }),
    createSpace: async ({ name, members = [] }) => {
      const body = { name, members: members.map((entityId) => ({ entityId })) };
      const request = { method: "POST", path: at("spaces"), body, idempotencyKey: ulid() } as const;
      return (await http({ ...request, answer: SpaceAnswer })).space;
    },
    getSpace,
    renameSpace: async (spaceId, name) =>
      (await http({ method: "PATCH", path: at("spaces", spaceId), body: { name }, answer: SpaceAnswer })).space,
    addMember: async (spaceId, entityId) => {
      const path = at("spaces", spaceId, "members");
      return (await http({ method: "POST", path, body: { entityId }, answer: MemberAnswer })).member;
    },
    removeMember: async (spaceId, entityId) => {
      await http({ method: "DELETE", path: at("spaces", spaceId, "members", entityId), answer: z.unknown() });
    },
    listMessages,
    postMessage: async (spaceId, { clientKey = ulid(), ...input }) => {
      const path = at("spaces", spaceId, "messages");
      return (await http({ method: "POST", path, body: { ...input, clientKey }, answer: MessageAnswer })).message;
    },
    answerToolCall: async (spaceId, toolCallId, answer) => {
      const path = at("spaces", spaceId, "tool-calls", toolCallId, "result");
      return (await http({ method: "POST", path, body: answer, answer: MessageAnswer })).message;
    },
    markRead: async (spaceId, messageId) => {
      await http({ method: "POST", path: at("spaces", spaceId, "read"), body: { messageId }, answer: z.unknown() });
    },
    listReads: async (spaceId, messageId) =>
      (await http({ path: at("spaces", spaceId, "messages", messageId, "reads"), answer: ReadsAnswer })).items,
    getEntity: async (entityId) => (await http({ path: at("entities", entityId), answer: EntityAnswer })).entity,
    listEntities: ({ cursor, limit } = {}) =>
      http({ path: at("entities"), query: { cursor, limit }, answer: EntitiesAnswer }),
    openSpace: (spaceId, options) =>
      openLiveSpace({ streamAddress, credentials, listMessages, getSpace }, spaceId, options),
    listBlocks: async (spaceId) => (await http({ path: at("spaces", spaceId, "blocks"), answer: BlocksAnswer })).items,
    getBlock,
    editBlock,
    blockHistory: (block, { cursor, limit } = {}) =>
      http({ path: ofBlock(block, "history"), query: { cursor, limit }, answer: HistoryAnswer }),
    openBlock: (block, { timings } = {}) => {
      const access = {
        credentials,
        by: `human:${readToken(credentials.token())?.entityId ?? ""}`,
        streamAddress: () => socketAddress(ofBlock(block, "stream")).href,
        read: () => getBlock(block),
        edit: (request: EditRequest, key: string) => editBlock(block, request, key),
      };
      return openLiveBlock(access, timings);
    },
  };
};
