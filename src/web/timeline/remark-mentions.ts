import type { PhrasingContent, Root } from "mdast";
import { findAndReplace } from "mdast-util-find-and-replace";

const escapePattern = (text: string): string => text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");

/** Matches `@Name` for each of these names, the longest first, but not inside other words. */
const mentionOf = (names: readonly string[]): RegExp => {
  const longestFirst = [...names].sort((one, other) => other.length - one.length).map(escapePattern);
  return new RegExp(`(?<![\\p{L}\\p{N}_])@(?:${longestFirst.join("|")})(?![\\p{L}\\p{N}_])`, "giu");
};

const mention = (text: string): PhrasingContent => ({
  type: "emphasis",
  data: { hName: "span", hProperties: { className: ["mention"] } },
  children: [{ type: "text", value: text }],
});

/** Marks the names of members in a message's text. Code and links stay as they are. */
export const remarkMentions =
  ({ names }: { names: readonly string[] }) =>
  (root: Root): void => {
    if (names.length > 0) findAndReplace(root, [mentionOf(names), mention], { ignore: "link" });
  };
