import type { Message, SpaceState } from "../../client/index.ts";
import { Icon } from "../look/icon.tsx";
import { nameOf } from "../timeline/presence.ts";
import { asksOf } from "../tool-calls/standing.ts";
import { toolTitle } from "../tool-calls/titles.ts";

type AsksYouProps = { state: SpaceState; isAtBottom: boolean; onGoTo: (messageId: string) => void };

/** How many of the newest messages are in view at the end of the timeline. */
const inView = 2;

const isInView = (message: Message, { messages }: SpaceState, isAtBottom: boolean): boolean =>
  isAtBottom && messages.slice(-inView).includes(message);

/** The oldest tool call out of view that waits for this person, so that it is not forgotten. */
export const AsksYou = ({ state, isAtBottom, onGoTo }: AsksYouProps) => {
  const asks = asksOf(state, Date.now()).filter((message) => !isInView(message, state, isAtBottom));
  const [first] = asks;
  if (!first?.toolCall) return null;
  const { sender, toolCall } = first;
  const more = asks.length > 1 ? `, and ${asks.length - 1} more` : "";
  return (
    <button type="button" className="asks-you column row small tone-warning" onClick={() => onGoTo(first.id)}>
      <Icon name="tool" size={16} />
      <span className="asks-you-words ellipsis">
        {nameOf(state, sender.id, sender.name)} needs you: <strong>{toolTitle(toolCall.name).title}</strong>
        {more}
      </span>
      <Icon name="up" size={16} />
    </button>
  );
};
