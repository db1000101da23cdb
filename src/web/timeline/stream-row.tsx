import { memo } from "react";
import type { EntityType, RunningStream } from "../../client/index.ts";
import { GrowingCall } from "../tool-calls/growing-call.tsx";
import { Markdown } from "./markdown.tsx";
import { MessageFrame } from "./message-frame.tsx";
import { isSpeech } from "./presence.ts";

type StreamRowProps = {
  stream: RunningStream;
  sender: { id: string; name: string; type: EntityType };
  names: readonly string[];
  opensGroup: boolean;
};

/** What an agent is saying this moment. Its row becomes the message's row, so nothing jumps when it is done. */
export const StreamRow = memo(({ stream, sender, names, opensGroup }: StreamRowProps) => (
  <MessageFrame sender={sender} opensGroup={opensGroup} isActive>
    {isSpeech(stream.toolName) ? (
      <Markdown text={stream.text} names={names} isGrowing />
    ) : (
      <GrowingCall name={stream.toolName} text={stream.text} />
    )}
  </MessageFrame>
));
