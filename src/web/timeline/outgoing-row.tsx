import { memo } from "react";
import type { OutgoingMessage } from "../../client/index.ts";
import { Markdown } from "./markdown.tsx";
import { MessageFrame } from "./message-frame.tsx";
import { QuoteLine } from "./message-lines.tsx";
import type { Quoted } from "./quoted.ts";
import "./outgoing-row.css";

type OutgoingRowProps = {
  outgoing: OutgoingMessage;
  quoted: Quoted | null;
  you: { id: string; name: string };
  names: readonly string[];
  opensGroup: boolean;
  isConnected: boolean;
  onRetry: (clientKey: string) => void;
  onDiscard: (clientKey: string) => void;
};

/** One's own message before the log has it: on its way, waiting for the line, or refused with the reason. */
export const OutgoingRow = memo((props: OutgoingRowProps) => {
  const { outgoing, quoted, you, names, opensGroup, isConnected, onRetry, onDiscard } = props;
  const { status, clientKey } = outgoing;
  return (
    <MessageFrame
      sender={{ ...you, type: "human" }}
      createdAt={outgoing.createdAt}
      opensGroup={opensGroup}
      isDimmed={status.kind === "pending"}
    >
      {quoted && <QuoteLine quoted={quoted} />}
      <Markdown text={outgoing.text} names={names} />
      {status.kind === "pending" && !isConnected && (
        <p className="outgoing-waits">Will be sent when the connection is back.</p>
      )}
      {status.kind === "failed" && (
        <p className="outgoing-failed" role="alert">
          <span>Not sent: {status.message}</span>
          <button type="button" className="link-button" onClick={() => onRetry(clientKey)}>
            Try again
          </button>
          <button type="button" className="link-button" onClick={() => onDiscard(clientKey)}>
            Discard
          </button>
        </p>
      )}
    </MessageFrame>
  );
});
