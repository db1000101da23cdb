import { DurableEvent } from "../../protocol/events.ts";
import type { LateRead } from "../schema.ts";
import type { Log, LogRow } from "./log.ts";

/** A read of a space, of a run where one took messages. `seq`: the newest of them. */
export type Read = Partial<LateRead> & { seq: number };

/** The reads that a row of the log tells of, its own as the last. Rows of earlier versions have no places and no time. */
export const readsIn = ({ log }: { log: Pick<Log, "findMessage"> }, { frame, read }: LogRow): Read[] => {
  const event = DurableEvent.parse(JSON.parse(frame));
  if (event.type === "member.left") return read ? [...(read.late ?? []), { seq: read.seq, at: read.at }] : [];
  if (event.type !== "member.read") return [];
  const { messageId, runId: id, outcome = "silent", reason, reads } = event;
  const seq = read?.seq ?? log.findMessage(messageId)?.seq ?? 0;
  const own: Read = { seq, ...(read && { at: read.at }) };
  if (id !== undefined) own.run = { id, firstSeq: read?.firstSeq, taken: read?.taken, outcome, reason, reads };
  return [...(read?.late ?? []), own];
};

/** The stretches of the log whose messages the run took, oldest first. */
export const stretchesOf = ({ run, seq: last }: Read): [number, number][] =>
  run ? (run.taken ?? [[run.firstSeq ?? last, last]]) : [];

/** Whether the run took the message at this place. */
export const took = (read: Read, seq: number): boolean =>
  stretchesOf(read).some(([from, to]) => from <= seq && seq <= to);
