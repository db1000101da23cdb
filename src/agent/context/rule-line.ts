import type { ToolRule } from "../../protocol/tool.ts";

/** A rule in the words that the model reads. */
export const ruleLine = (rule: ToolRule): string => {
  const tool = `\`${rule.tool}\``;
  switch (rule.rule) {
    case "start_constraint":
      return `Call ${tool} first before any other tools`;
    case "required_before_exit":
      return `Call ${tool} before ending the conversation`;
    case "exit_loop":
      return `The conversation will end after calling ${tool}`;
    case "continue_loop":
      return `The conversation will be continued after calling ${tool}`;
    case "requires_prior":
      return `Call ${tool} only after calling ${rule.tools.map((name) => `\`${name}\``).join(", ")}`;
    case "max_calls":
      return `Call ${tool} at most ${rule.count} times`;
  }
};
