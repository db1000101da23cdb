import type { Origin } from "../../protocol/message.ts";
import type { Root } from "../../protocol/rpc.ts";
import type { InboxRow } from "../inbox.ts";
import { rootOf } from "../inbox.ts";
import { rootOfAnswer } from "../roots.ts";
import type { RunRow } from "../runs.ts";
import type { Parts } from "./parts.ts";

/** Where what a run says comes from: the root that it passes on (B1), and its origin if it speaks elsewhere. */
export const rootOfRun = (parts: Parts, run: RunRow): Root => {
  const events = parts.inbox.rows(run.events);
  const roots = events.map(rootOf);
  const root = rootOfAnswer(roots, parts.roots.wakes(roots.map(({ id }) => id)));
  if (!root) throw new Error(`run ${run.id} has no events`);
  return root;
};

const isPersons = (row: InboxRow): boolean =>
  row.data.type === "space_message" && row.data.delivered.message.sender.type !== "agent";

/**
 * None if any event of the batch came from the target space; else of the newest person's event, as far as the
 * space that it came from shares.
 */
export const originFor = (parts: Parts, run: RunRow, targetSpaceId: string): Origin | undefined => {
  if (run.spaceIds.includes(targetSpaceId)) return undefined;
  const source = parts.inbox.rows(run.events).findLast(isPersons);
  if (source?.data.type !== "space_message") return undefined;
  const { message } = source.data.delivered;
  const space = parts.spaces.get(message.spaceId)?.snapshot;
  if (!space || space.shareOrigin === "none") return undefined;
  return {
    sourceSpaceId: message.spaceId,
    sourceSpaceName: space.name,
    ...(space.shareOrigin === "text" ? { sourceSenderName: message.sender.name, sourceEvent: message.text ?? "" } : {}),
  };
};
