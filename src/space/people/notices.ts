import type { DurableEvent } from "../../protocol/events.ts";
import type { Notice } from "../../protocol/line.ts";
import { type Log, type LogRow, messageIn } from "../log/log.ts";
import type { MemberRow } from "../members.ts";
import { howAddressed, shortly } from "./addressed.ts";
import { asks } from "./standing.ts";

/** Of the log: who said a message, and what. */
type Known = { findMessage: Log["findMessage"]; nameOf(entityId: string): string | undefined };

/** What a row of the log is to this person, if they are to hear of it by itself. Pure but for the log. */
export const noticeOf = (row: LogRow, personId: string, known: Known): Notice | undefined => {
  if (row.type === "member.read") return failureOf(row, personId, known);
  if (row.type !== "space.message" && row.type !== "space.message.updated") return undefined;
  const message = messageIn(row);
  const { id: messageId, sender, text = "", toolCall, createdAt: at, deleted } = message;
  if (deleted) return undefined;
  const told = { seq: row.seq, messageId, title: sender.name, at };
  if (toolCall) return asks(message, personId) ? { ...told, kind: "needs_you", body: toolCall.name } : undefined;
  const isDirect = row.routing?.pair === true && row.entityId !== personId;
  const kind = howAddressed(row, personId) ?? (isDirect ? "direct" : undefined);
  return kind && { ...told, kind, body: shortly(text) };
};

/** An agent's run has failed at what this person said. */
const failureOf = (row: LogRow, personId: string, { findMessage, nameOf }: Known): Notice | undefined => {
  if (!row.frame.includes('"failed"')) return undefined;
  const event = JSON.parse(row.frame) as Extract<DurableEvent, { type: "member.read" }>;
  if (event.outcome !== "failed") return undefined;
  const asked = findMessage(event.messageId);
  if (asked?.entityId !== personId) return undefined;
  const { createdAt: at } = messageIn(asked);
  const title = nameOf(event.entityId) ?? "An agent";
  return { kind: "run_failed", seq: row.seq, messageId: event.messageId, title, body: event.reason ?? "", at };
};

/** Those among these people whom a row concerns: they are told though they do not look. */
export const concernedBy = (row: LogRow, people: readonly Pick<MemberRow, "entityId">[], known: Known): string[] => {
  const isOwnMark = (id: string): boolean => row.type === "member.read" && row.entityId === id;
  const isOver = row.type === "message.updated" || row.type === "message.deleted";
  const endsAsking = row.type === "space.message.updated" && messageIn(row).toolCall?.awaits !== undefined;
  return people
    .map(({ entityId }) => entityId)
    .filter((id) => isOver || endsAsking || isOwnMark(id) || noticeOf(row, id, known) !== undefined);
};
