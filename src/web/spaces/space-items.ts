import type { SpaceSummary } from "../../client/index.ts";
import { plainText } from "../timeline/quoted.ts";

/** What it means for people that a space is confidential. */
export const confidentialWords = "What is said here stays here: its agents cannot tell it elsewhere.";

/** A space's newest message in one line of plain text. */
export const preview = ({ preview: newest }: SpaceSummary, youId: string): string => {
  if (!newest) return "Nothing said yet";
  return `${newest.sender.id === youId ? "You" : newest.sender.name}: ${plainText(newest.text).slice(0, 120)}`;
};
