import type { Unshown } from "../sections.ts";

/**
 * What stands for the messages of a space that a timeline's window does not show. Each of them is in the summary, or
 * counted with the reason. Pure: messages are counted from the space's first, which is 1.
 */
export type Coverage = {
  /** How many messages the space has. */
  total: number;
  /** A summary of `messages` messages, the last of which is the `upTo`th. */
  summary?: { messages: number; upTo: number } | undefined;
};

/** How the config bounds a window: `chunkSize` where what lies before it is summarized. */
export type WindowConfig = { historyMessages: number; chunkSize: number | null };

/** A window goes back to its summary over this many chunks at most. More are unsummarized only while the model fails. */
const mostChunksBehind = 2;

/** How many of the newest messages a window may have to show, before it is known how many there are. */
export const firstLook = ({ historyMessages, chunkSize }: WindowConfig): number => historyMessages + (chunkSize ?? 0);

/** How many of the newest messages the window shows: those that the config says, and those that no summary holds yet. */
export const windowSize = ({ total, summary }: Coverage, { historyMessages, chunkSize }: WindowConfig): number => {
  const most = historyMessages + (chunkSize ?? 0) * mostChunksBehind;
  return Math.min(total, Math.max(historyMessages, Math.min(most, total - (summary?.upTo ?? 0))));
};

/** The messages before a window that shows the newest `shown`, by what stands for them. */
export const accountOf = ({ total, summary }: Coverage, shown: number) => {
  const earlier = Math.max(0, total - shown);
  if (!summary) return { earlier, older: 0, summarized: 0, between: earlier };
  const end = Math.min(summary.upTo, earlier);
  const older = Math.min(summary.upTo - summary.messages, end);
  return { earlier, older, summarized: end - older, between: earlier - end };
};

/** Why messages between summary and window are in neither. */
export type Reason = "historyMessages" | "historyTokens" | "maxTokens" | "unsummarized";

const because = (reason: Reason): string =>
  reason === "unsummarized" ? "not summarized yet" : `beyond context.${reason}`;

/** The one line that counts the messages before the window; null where there are none. */
export const unshownLine = (coverage: Coverage, shown: number, reason: Reason): string | null => {
  const { earlier, older, summarized, between } = accountOf(coverage, shown);
  if (earlier === 0) return null;
  const parts = [
    [older, "from before the summary"],
    [summarized, "summarized below"],
    [between, because(reason)],
  ] as const;
  const counted = parts.filter(([count]) => count > 0);
  const why = counted.map(([count, what]) => (counted.length === 1 ? what : `${count} ${what}`)).join(", ");
  return `(${earlier} earlier messages are not shown: ${why}; read_messages with offset ${shown} reads them)`;
};

/**
 * How far the summary should go now; null where it goes far enough. Where the window does not reach back to it, one more
 * chunk is folded at once, though the window shows the newest of it.
 */
export const summaryWanted = (
  { total, messages, between }: Omit<Unshown, "spaceId">,
  upTo: number,
  chunkSize: number,
): number | null => {
  const wanted = between > 0 ? Math.min(total, Math.max(messages, upTo + chunkSize)) : messages;
  return wanted - upTo >= chunkSize ? wanted : null;
};
