import { memo } from "react";
import type { EntityType, RunningStream } from "../../client/index.ts";
import { Icon } from "../look/icon.tsx";
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
      <p className="message-line">
        <Icon name="tool" size={14} /> calls <code>{stream.toolName}</code> …
      </p>
    )}
  </MessageFrame>
));
