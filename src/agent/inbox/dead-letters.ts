import { ColloquyError } from "../../shared/errors.ts";
import { log } from "../../shared/log.ts";
import type { InboxRow } from "../schema.ts";
import type { InboxServices } from "./inbox-services.ts";

/** Events that no run takes any more. Runs with dead ones have failed for good; a person retries or discards them. */

/** Makes one pending again, without attempts. Throws `not_found`, and `conflict` for an event that is not dead. */
export const retryDeadLetter = ({ inbox }: InboxServices, eventId: string): InboxRow => {
  const status = inbox.byEventId(eventId)?.status;
  const [revived] = status === "dead" ? inbox.revive(eventId) : [];
  if (!revived) throw refusal(status, "retried");
  return revived;
};

/** Deletes one, in a transaction. Throws `not_found`, and `conflict` for an event that is not dead. */
export const discardDeadLetter = ({ inbox, spaces, identity }: InboxServices, eventId: string): void => {
  const row = inbox.byEventId(eventId);
  if (row?.status !== "dead") throw refusal(row?.status, "discarded");
  inbox.acknowledge([row.seq]);
  if (row.data.type !== "space_message" || identity.get().config.continuity !== "timeline") return;
  const { spaceId, seq } = row.data.delivered.message;
  spaces.settle(spaceId, { acknowledged: [seq], shownTo: 0 });
};

const refusal = (status: InboxRow["status"] | undefined, done: "retried" | "discarded"): ColloquyError =>
  status === undefined
    ? new ColloquyError("not_found", "there is no such event in the inbox")
    : new ColloquyError("conflict", `only a dead event can be ${done}; this one is ${status}`);

/** Deletes events that no run will take. Messages are left to their space's history, as the agent is told; the log tells of others. */
export const leave = ({ inbox, spaces, identity }: InboxServices, rows: InboxRow[]): void => {
  if (rows.length === 0) return;
  inbox.drop(rows);
  const { id: agentId } = identity.get();
  const left = new Map<string, number>();
  for (const { eventId, type, data, lastError } of rows) {
    if (data.type !== "space_message") {
      log.warn("event.let_go", { agentId, eventId, type, code: lastError?.code ?? "maxWakesPerRoot" });
      continue;
    }
    const { spaceId } = data.delivered.message;
    left.set(spaceId, (left.get(spaceId) ?? 0) + 1);
  }
  for (const [spaceId, messages] of left) spaces.leaveToHistory(spaceId, messages);
};

/** Keeps `maxDeadLetters`, those that died last, in the transaction that made events dead. */
export const evictDeadLetters = (services: InboxServices): void => leave(services, services.inbox.deadBeyond());

/** Keeps what `maxOverheardEvents` and `maxOverheardBytes` allow, in the transaction that took events in. */
export const evictOverheard = (services: InboxServices): void => leave(services, services.inbox.overheardBeyond());
