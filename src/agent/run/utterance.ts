import type { ArchivalSource } from "../../protocol/archival.ts";
import type { Origin } from "../../protocol/message.ts";
import type { Root } from "../../protocol/rpc.ts";
import { homeOf } from "../inbox/batch.ts";
import { rootOf } from "../inbox/inbox.ts";
import { rootOfAnswer } from "../inbox/roots.ts";
import type { RunRow } from "../runs.ts";
import type { InboxRow } from "../schema.ts";
import type { RunServices } from "./run-services.ts";

/** The run's events. Answers that it waited for, and the events of runs that it absorbed, have joined them. */
export const eventsOf = (services: RunServices, run: RunRow): InboxRow[] =>
  services.inbox.rows(services.runs.at(run.ordinal)?.events ?? run.events);

/** The root that the run passes on with its messages (B1). */
export const rootOfRun = (services: RunServices, run: RunRow): Root => {
  const roots = eventsOf(services, run).map(rootOf);
  const root = rootOfAnswer(roots, services.roots.wakes(roots.map(({ id }) => id)));
  if (!root) throw new Error(`run ${run.id} has no events`);
  return root;
};

export const isPersons = (row: InboxRow): boolean =>
  row.data.type === "space_message" && row.data.delivered.message.sender.type !== "agent";

/**
 * The origin of a message to this space: the newest event from a person, as far as its space shares it. None if any event
 * of the batch came from the target space.
 */
export const originFor = (services: RunServices, run: RunRow, targetSpaceId: string): Origin | undefined => {
  const events = eventsOf(services, run);
  if (events.some((row) => homeOf(row.data) === targetSpaceId)) return undefined;
  const source = events.findLast(isPersons);
  if (source?.data.type !== "space_message") return undefined;
  const { message } = source.data.delivered;
  const space = services.spaces.get(message.spaceId)?.snapshot;
  if (!space || space.shareOrigin === "none") return undefined;
  return {
    sourceSpaceId: message.spaceId,
    sourceSpaceName: space.name,
    ...(space.shareOrigin === "text" ? { sourceSenderName: message.sender.name, sourceEvent: message.text ?? "" } : {}),
  };
};

/**
 * The source of an archival entry: the newest message that the run took in its active space, a person's before an
 * agent's; else the newest of any space; else the space alone.
 */
export const sourceOf = (services: RunServices, run: RunRow, activeSpaceId: string | null): ArchivalSource => {
  const rows = eventsOf(services, run);
  const messages = [...rows.filter((row) => !isPersons(row)), ...rows.filter(isPersons)].flatMap(({ data }) =>
    data.type === "space_message" ? [data.delivered.message] : [],
  );
  const message = messages.findLast(({ spaceId }) => spaceId === activeSpaceId) ?? messages.at(-1);
  if (message) return { spaceId: message.spaceId, messageId: message.id, authorId: message.sender.id };
  return activeSpaceId === null ? {} : { spaceId: activeSpaceId };
};
