import { ChannelFrame, type ChannelOpen } from "../../protocol/events.ts";
import { type Outcome, ok, refusalOf, refuse } from "../../shared/errors.ts";
import { LineDecoder } from "../../shared/line-decoder.ts";
import { log } from "../../shared/log.ts";
import { maxChannelLine } from "../bounds.ts";
import type { LiveStreams } from "./live-streams.ts";

export type RunRead = Extract<ChannelFrame, { type: "read" }>;

/**
 * Reads one channel to its end. A channel that breaks, ends without its `end` frame or makes no sense is
 * `interrupted`: its agent crashed. The reader is always cancelled, or the agent's writes would never settle.
 */
export const readChannel = async (
  live: LiveStreams,
  open: ChannelOpen,
  frames: ReadableStream<Uint8Array>,
  onRead: (mark: RunRead) => void,
): Promise<Outcome<null>> => {
  const reader = frames.getReader();
  const cancel = (): void => void reader.cancel().catch(() => undefined);
  try {
    const channel = live.open(open, cancel);
    try {
      const decoder = new LineDecoder(maxChannelLine);
      for (let read = await reader.read(); !read.done; read = await reader.read()) {
        for (const line of decoder.push(read.value)) {
          const frame = ChannelFrame.parse(JSON.parse(line));
          if (channel.stopped) break;
          if (frame.type === "read") onRead(frame);
          else live.receive(channel, frame);
          if (frame.type === "end") return ok(null);
        }
      }
    } catch (error) {
      // Only the kind of error: its message may quote what was said.
      const reason = error instanceof Error ? error.name : typeof error;
      if (!channel.stopped) log.warn("channel.broken", { runId: open.runId, reason });
    }
    live.stop(channel, "interrupted", "The agent was interrupted", "interrupted");
    const { code, message } = channel.stopped ?? { code: "interrupted", message: "The channel broke" };
    return refuse(code, message);
  } catch (error) {
    return refusalOf(error);
  } finally {
    cancel();
  }
};
