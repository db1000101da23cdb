import type { SpaceState } from "../../client/index.ts";
import { Icon } from "../look/icon.tsx";
import { nameOf } from "../timeline/presence.ts";
import { asksOf } from "../tool-calls/standing.ts";
import { toolTitle } from "../tool-calls/titles.ts";

type AsksYouProps = { state: SpaceState; isAtBottom: boolean; onGoTo: (messageId: string) => void };

/** How many of the newest messages are in view at the end of the timeline. */
const inView = 2;

/** The oldest tool call out of view that waits for this person, so that it is not forgotten. */
export const AsksYou = ({ state, isAtBottom, onGoTo }: AsksYouProps) => {
  const seen = isAtBottom ? state.messages.slice(-inView) : [];
  const [first, ...others] = asksOf(state, Date.now()).filter((message) => !seen.includes(message));
  if (!first?.toolCall) return null;
  const { id, sender, toolCall } = first;
  return (
    <button type="button" className="asks-you column row small tone-warning" onClick={() => onGoTo(id)}>
      <Icon name="tool" size={16} />
      <span className="grow ellipsis">
        {nameOf(state, sender.id, sender.name)} needs you: <strong>{toolTitle(toolCall.name).title}</strong>
        {others.length > 0 && `, and ${others.length} more`}
      </span>
      <Icon name="up" size={16} />
    </button>
  );
};
