import { maxPreviewCharacters } from "../../protocol/line.ts";
import type { Message } from "../../protocol/message.ts";
import { maxUnreadScan } from "../bounds.ts";
import type { Log, LogRow } from "../log/log.ts";
import { isChange } from "../log/row-kinds.ts";

/** A message that mentions a person or replies to them, and how it begins. `waits`: an agent waits for what they say to it. */
export type Addressed = {
  seq: number;
  ordinal: number;
  messageId: string;
  kind: "mention" | "reply";
  waits: boolean;
  from: string;
  text: string;
  at: string;
};

/** The beginning of a text, never half of a character. */
export const shortly = (text: string): string => {
  const characters = [...text.slice(0, 2 * maxPreviewCharacters + 1)];
  return characters.length > maxPreviewCharacters ? `${characters.slice(0, maxPreviewCharacters - 1).join("")}…` : text;
};

/** How a message addresses this person; undefined where it does not. Nobody is addressed by words of their own. */
export const howAddressed = ({ routing, entityId }: LogRow, personId: string): Addressed["kind"] | undefined => {
  if (!routing || entityId === personId) return undefined;
  if (routing.mentions.includes(personId)) return "mention";
  return routing.repliedTo === personId ? "reply" : undefined;
};

/** As the row was stored. A message that was deleted addresses nobody: it has no routing. */
export const addressedIn = (row: LogRow, personId: string): Addressed | undefined => {
  const kind = howAddressed(row, personId);
  if (row.type !== "space.message" || !kind) return undefined;
  const { message } = JSON.parse(row.frame) as { message: Message };
  const { id: messageId, sender, text = "", createdAt: at, expectsReply } = message;
  const waits = expectsReply === true && sender.type === "agent";
  const beginning = shortly(text);
  return { seq: row.seq, ordinal: row.messageCount, messageId, kind, waits, from: sender.name, text: beginning, at };
};

type Known = { upTo: number; addressed: Addressed[]; lastOwn: number };

/**
 * What addresses each person among the newest `maxUnreadScan` messages, and when they spoke last.
 *
 * Invariants
 * 1. It is what the log says. A person's part is read once, then goes on with the messages that come; an edit or a deletion has it
 *    read again.
 */
export const createAddressed = (log: Log) => {
  const known = new Map<string, Known>();

  return {
    /** Belongs after each append. */
    noted(rows: LogRow[]): void {
      if (rows.some(isChange)) known.clear();
    },

    of(personId: string): Known {
      const upTo = log.head().messageCount;
      const before = known.get(personId) ?? { upTo: 0, addressed: [], lastOwn: 0 };
      if (before.upTo === upTo && known.has(personId)) return before;
      const over = Math.max(before.upTo, upTo - maxUnreadScan);
      const rows = log.naming(personId, { over, upTo });
      const fresh = rows.flatMap((row) => addressedIn(row, personId) ?? []);
      const now = {
        upTo,
        addressed: [...before.addressed, ...fresh].filter(({ ordinal }) => ordinal > upTo - maxUnreadScan),
        lastOwn: rows.findLast(({ entityId }) => entityId === personId)?.messageCount ?? before.lastOwn,
      };
      known.set(personId, now);
      return now;
    },

    /** Nobody tells this person any more. */
    forget: (personId: string): void => void known.delete(personId),
  };
};
