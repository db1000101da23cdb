import type { ModelMessage } from "ai";
import type { Composed } from "../../../src/agent/context/sections.ts";

/** A model's input laid out for people: what each role says, calls and results by arrows, then what it is made of. */
const partText = (part: Exclude<ModelMessage["content"], string>[number]): string => {
  switch (part.type) {
    case "text":
      return part.text;
    case "tool-call":
      return `→ ${part.toolName}(${JSON.stringify(part.input)})`;
    case "tool-result":
      return `← ${JSON.stringify("value" in part.output ? part.output.value : null)}`;
    default:
      return part.type;
  }
};

const messageText = ({ role, content }: ModelMessage): string =>
  `━━━ ${role}\n${typeof content === "string" ? content : content.map(partText).join("\n")}`;

/** `standing`: where the instructions are shown instead, so that a golden file shows what is special about it. */
export const readable = ({ instructions, messages, sections, dropped }: Composed, standing?: string): string =>
  [
    `━━━ system${standing === undefined ? `\n${instructions}` : `: as in ${standing}`}`,
    ...messages.map(messageText),
    `━━━ sections: ${sections.map(({ name }) => name).join(" · ")}`,
    ...dropped.map(({ name, reason }) => `━━━ dropped from ${name}: ${reason}`),
    "",
  ].join("\n");
