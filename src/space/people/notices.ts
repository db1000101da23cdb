import type { Notice } from "../../protocol/line.ts";
import { type Log, type LogRow, messageIn } from "../log/log.ts";
import { readsIn, stretchesOf } from "../log/reads.ts";
import { takesBack } from "../log/row-kinds.ts";
import type { MemberRow } from "../members.ts";
import { howAddressed, shortly } from "./addressed.ts";
import { asks } from "./standing.ts";

/** Of the log: who said a message, and what. */
type Known = { log: Pick<Log, "after" | "findMessage">; nameOf(entityId: string): string | undefined };

/** What a row of the log is to this person, if they are to hear of it by itself. Pure but for the log. */
export const noticesOf = (row: LogRow, personId: string, known: Known): Notice[] => {
  if (row.type === "member.read") return failuresIn(row, personId, known);
  if (row.type !== "space.message" && row.type !== "space.message.updated") return [];
  const message = messageIn(row);
  const { id: messageId, sender, text = "", toolCall, createdAt: at, deleted } = message;
  if (deleted) return [];
  const told = { seq: row.seq, messageId, title: sender.name, at };
  if (toolCall) return asks(message, personId) ? [{ ...told, kind: "needs_you", body: toolCall.name }] : [];
  const isDirect = row.routing?.pair === true && row.entityId !== personId;
  const kind = howAddressed(row, personId) ?? (isDirect ? "direct" : undefined);
  return kind ? [{ ...told, kind, body: shortly(text) }] : [];
};

/** The runs that failed at what this person said, those too that ended late: of each the newest message of theirs. */
const failuresIn = (row: LogRow, personId: string, { log, nameOf }: Known): Notice[] => {
  const { seq, frame, read, entityId } = row;
  if (!frame.includes('"failed"') && !read?.late) return [];
  const told = readsIn({ log }, row).slice(0, read?.again ? -1 : undefined);
  return told.flatMap((each): Notice[] => {
    if (each.run?.outcome !== "failed") return [];
    const taken = stretchesOf(each).flatMap(([from, to]) => log.after(from - 1, to - from + 1));
    const asked = taken.findLast((one) => one.type === "space.message" && one.routing && one.entityId === personId);
    if (!asked) return [];
    const { id: messageId, createdAt: at } = messageIn(asked);
    const by = entityId ?? "";
    // A failure is taken back when its agent leaves. So nobody is told one of an agent that has left.
    const title = nameOf(by);
    return title === undefined
      ? []
      : [{ kind: "run_failed", seq, messageId, title, by, body: each.run.reason ?? "", at }];
  });
};

/** Those among these people whom a row concerns: they are told though they do not look. */
export const concernedBy = (row: LogRow, people: readonly Pick<MemberRow, "entityId">[], known: Known): string[] => {
  const isOwnMark = (id: string): boolean => row.type === "member.read" && row.entityId === id;
  const isOver = takesBack(row);
  const endsAsking = row.type === "space.message.updated" && messageIn(row).toolCall?.awaits !== undefined;
  return people
    .map(({ entityId }) => entityId)
    .filter((id) => isOver || endsAsking || isOwnMark(id) || noticesOf(row, id, known).length > 0);
};
