import { textBytes } from "../../protocol/text.ts";
import { maxBatchBytes } from "../bounds.ts";
import { eventLine } from "../context/consciousness/inbox-message.ts";
import { estimateText } from "../context/tokens.ts";
import type { InboxData } from "../records.ts";

/** The first rows that fit `maxBatchBytes` and `maxTokens`; at least one. The others are taken by the next run. Pure. */
export const fitting = <Row extends { eventId: string; data: InboxData }>(rows: Row[], maxTokens: number): Row[] => {
  let bytes = 0;
  let tokens = 0;
  const end = rows.findIndex(({ eventId, data }) => {
    bytes += textBytes(JSON.stringify(data));
    tokens += estimateText(eventLine({ eventId, ...data }));
    return bytes > maxBatchBytes || tokens > maxTokens;
  });
  return end === -1 ? rows : rows.slice(0, Math.max(1, end));
};
