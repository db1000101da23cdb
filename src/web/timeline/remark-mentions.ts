import type { Nodes, Parents, PhrasingContent, Root } from "mdast";

/** Text that names somebody, cut at the names: pairs of plain text and `@Name`. */
export const splitMentions = (text: string, names: readonly string[]): { text: string; isMention: boolean }[] => {
  if (names.length === 0 || !text.includes("@")) return [{ text, isMention: false }];
  const longestFirst = [...names].sort((one, other) => other.length - one.length).map(escapePattern);
  const pattern = new RegExp(`(?<![\\p{L}\\p{N}_])(@(?:${longestFirst.join("|")}))(?![\\p{L}\\p{N}_])`, "giu");
  return text
    .split(pattern)
    .map((part, index) => ({ text: part, isMention: index % 2 === 1 }))
    .filter((part) => part.text !== "");
};

const escapePattern = (text: string): string => text.replace(/[.*+?^${}()|[\]\\/-]/g, "\\$&");

const mention = (text: string): PhrasingContent => ({
  type: "emphasis",
  data: { hName: "span", hProperties: { className: ["mention"] } },
  children: [{ type: "text", value: text }],
});

const hasChildren = (node: Nodes): node is Parents => "children" in node;

/** Marks the names of members in a message's text; code and links stay as they are. */
export const remarkMentions =
  ({ names }: { names: readonly string[] }) =>
  (root: Root): void => {
    const visit = (node: Parents): void => {
      for (let index = node.children.length - 1; index >= 0; index -= 1) {
        const child = node.children[index];
        if (!child || child.type === "link") continue;
        if (hasChildren(child)) visit(child);
        if (child.type !== "text") continue;
        const parts = splitMentions(child.value, names);
        if (!parts.some((part) => part.isMention)) continue;
        const nodes = parts.map(
          (part): PhrasingContent => (part.isMention ? mention(part.text) : { type: "text", value: part.text }),
        );
        (node.children as PhrasingContent[]).splice(index, 1, ...nodes);
      }
    };
    visit(root);
  };
