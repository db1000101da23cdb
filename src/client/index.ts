export type { Block, BlockChange, BlockDetail, Json } from "../protocol/block.ts";
export type { BlockOperation } from "../protocol/block-operation.ts";
export type { BlockSchema, Field, PlainSchema } from "../protocol/block-schema.ts";
export type { Entity, EntityType, Member } from "../protocol/entity.ts";
export type { Erasure } from "../protocol/erasure.ts";
export { type LimitName, type LimitsInUse, limitNames } from "../protocol/limits.ts";
export type { NeedsYou, SpaceSummary } from "../protocol/line.ts";
export type { Message, RelatedItem } from "../protocol/message.ts";
export {
  type ChangeSettings,
  type Device,
  type NoticeKind,
  noticeKinds,
  type Settings,
} from "../protocol/notifications.ts";
export type { Page } from "../protocol/rpc.ts";
export type { Space, SpaceListItem } from "../protocol/space.ts";
export { maxUnreadCount } from "../protocol/space.ts";
export { maxTextBytes, shownText, textBytes } from "../protocol/text.ts";
export type { ToolAnswer, ToolCall } from "../protocol/tool-call.ts";
export { nearPart, type StorageUse, type UsageBy, type UsageEntry } from "../protocol/usage.ts";
export { ColloquyError, type ErrorCode } from "../shared/errors.ts";
export { fieldsOf, itemsOf } from "./blocks/apply-edit.ts";
export { type BlockState, initialBlockState, type PendingEdit, shownValue } from "./blocks/block-state.ts";
export type { LiveBlock } from "./blocks/live-block.ts";
export { allItems, type BlockRef, type Client, type ClientOptions, createClient } from "./client.ts";
export { messageOf } from "./http.ts";
export type { Line } from "./line.ts";
export { type LineState, type NotificationEvent, reduceLine } from "./line-state.ts";
export type { LiveSpace, MessagePage, OpenSpaceOptions, Outbox } from "./live-space.ts";
export { keyOfNote, reduce } from "./reduce.ts";
export { browserSession } from "./session.ts";
export {
  type ConnectionState,
  initialSpaceState,
  type Note,
  type OutgoingMessage,
  type RunningStream,
  type SpaceFrame,
  type SpaceState,
} from "./space-state.ts";
export type { Store } from "./store.ts";
