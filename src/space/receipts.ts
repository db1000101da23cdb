import { DurableEvent } from "../protocol/events.ts";
import type { ReadReceipt } from "../protocol/message.ts";
import { isoTime } from "../shared/clock.ts";
import { maxReceiptScan } from "./bounds.ts";
import type { Log, LogRow } from "./log/log.ts";
import { type Read, readsIn, took } from "./log/reads.ts";
import type { MemberRow, Members } from "./members.ts";
import type { LateRead, ReadMark } from "./schema.ts";

/**
 * Who read a message, and what came of it: from the read marks in the log, and the newest ones.
 *
 * Invariants
 * 1. A receipt is a fact of its message: the first run that took it tells of it, and a later mark changes nothing. Only a
 *    failure gives way, to what a second try came to.
 * 2. At most `maxReceiptScan` events are looked through, however long the log is, and as many members who left.
 */
type Around = { log: Log; members: Members };

/** The newest reads, from the member's row. */
const newestOf = ({ readSeq: seq, mark }: Reader): Read[] =>
  mark ? [...(mark.late ?? []), { seq, at: mark.at, ...(mark.run && { run: mark.run }) }] : [];

/** A second try of the same message comes to something. */
const isSecondTry = (failed: Read, { run }: Read): boolean =>
  failed.run?.outcome === "failed" && run?.outcome !== "failed";

type Reader = Pick<MemberRow, "entityId" | "name" | "type" | "readSeq"> & { mark: Omit<ReadMark, "messageId"> | null };

/** The members who left after they had read the message at `seq`. The log tells what they read. */
const goneAfter = ({ log, members }: Around, seq: number): Reader[] => {
  const gone = log.leftAfter(seq, maxReceiptScan).flatMap(({ entityId, read, frame }): Reader[] => {
    const event = DurableEvent.parse(JSON.parse(frame));
    if (event.type !== "member.left" || !read?.type || entityId === null || members.find(entityId)) return [];
    return [{ entityId, name: event.name, type: read.type, readSeq: read.seq, mark: { at: read.at } }];
  });
  return [...new Map(gone.map((reader) => [reader.entityId, reader])).values()];
};

/** The reads of the message at `seq` by these members. */
const readsAt = (services: Around, seq: number, members: readonly Reader[]): Map<string, Read> => {
  const found = new Map<string, Read>();
  const take = (entityId: string, read: Read): void => {
    const known = found.get(entityId);
    const isNews = !known || (took(read, seq) && (!took(known, seq) || isSecondTry(known, read)));
    if (read.seq >= seq && isNews) found.set(entityId, read);
  };
  const open = new Map(members.map((member) => [member.entityId, member]));
  for (const row of services.log.readsAfter(seq, maxReceiptScan)) {
    const member = open.get(row.entityId ?? "");
    if (!member) continue;
    for (const read of readsIn(services, row)) take(member.entityId, read);
    const known = found.get(member.entityId);
    const isSettled = known && (member.type !== "agent" || (took(known, seq) && known.run?.outcome !== "failed"));
    if (isSettled) open.delete(member.entityId);
    if (open.size === 0) break;
  }
  for (const member of open.values()) for (const read of newestOf(member)) take(member.entityId, read);
  return found;
};

/** Whether a run's end, which the agent's mark has passed, is news of the message at its place. */
export const isUntold = (services: Around, member: MemberRow, read: LateRead): boolean => {
  const known = readsAt(services, read.seq, [member]).get(member.entityId);
  return !known || !took(known, read.seq) || (known.run?.outcome === "failed" && known.run.id !== read.run.id);
};

/** The members who have read up to a message, those who left after that too, without its sender. A run that took it says what came of it. */
export const receiptsOf = (services: Around, { seq, entityId: senderId }: LogRow): ReadReceipt[] => {
  const all: Reader[] = [...services.members.all(), ...goneAfter(services, seq)];
  const readers = all.filter((row) => row.entityId !== senderId && row.readSeq >= seq);
  const found = readsAt(services, seq, readers);
  return readers.flatMap(({ entityId, name, type, mark }): ReadReceipt[] => {
    const read = found.get(entityId);
    const at = read?.at ?? mark?.at;
    if (!read || at === undefined) return [];
    return [{ entityId, name, type, at: isoTime(at), ...(read.run && took(read, seq) ? publicRun(read.run) : {}) }];
  });
};

/** The end of an agent's run, as members see it. */
export const publicRun = ({ id, outcome, reason, reads }: NonNullable<ReadMark["run"]>) => ({
  ...{ runId: id, outcome, reason, reads },
});
