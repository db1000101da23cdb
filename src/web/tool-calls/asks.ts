import type { Message, SpaceState } from "../../client/index.ts";
import { standingOf } from "./standing.ts";

/** The loaded messages whose calls this person may answer now, oldest first. */
export const asksOf = ({ messages, members, you }: SpaceState, now: number): Message[] =>
  you === null
    ? []
    : messages.filter(({ toolCall }) => toolCall && standingOf(toolCall, you.id, members, now)?.may === true);
