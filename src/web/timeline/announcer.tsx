import { useState } from "react";
import type { SpaceState } from "../../client/index.ts";
import { callWords } from "../tool-calls/standing.ts";
import { nameOf } from "./presence.ts";

const kept = 5;

/** Tells a screen reader each finished message of others once, politely. A growing message is not read out. */
export const Announcer = ({ state }: { state: SpaceState }) => {
  const [from, setFrom] = useState<number | null>(null);
  if (from === null && state.history.status === "ready") setFrom(state.messages.at(-1)?.seq ?? 0);
  const fresh = state.messages.filter(
    (message) => from !== null && message.seq > from && message.sender.id !== state.you?.id,
  );
  return (
    <div className="visually-hidden" role="log" aria-live="polite" aria-label="New messages">
      {fresh.slice(-kept).map((message) => (
        <p key={message.id}>
          {nameOf(state, message.sender.id, message.sender.name)}:{" "}
          {message.text ?? (message.toolCall && callWords(message.toolCall))}
        </p>
      ))}
    </div>
  );
};
