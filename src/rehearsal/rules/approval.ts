import { type ToolView, wordsOfName } from "../tool-view.ts";
import { ruleForPeople, type Turn } from "../turn.ts";
import { inputFrom } from "../words.ts";
import { callTool } from "./use-tool.ts";

/** "deploy …", "approve …": what people have to agree to first, by the tool that says so. */
const needsApproval = ({ name, description }: ToolView): boolean =>
  /\bapprov/i.test(`${wordsOfName(name).join(" ")} ${description}`);

const verbs = /^(?:deploy|approve)$/;

/** The tool that has the verb in its name. For the two verbs above, any tool that needs approval will do. */
const toolFor = ({ cycle }: Turn, verb: string): ToolView | undefined => {
  const gated = cycle.tools.filter(needsApproval);
  const starts = ({ name }: ToolView): boolean => wordsOfName(name)[0] === verb;
  if (!verbs.test(verb)) return gated.find(starts);
  const stem = verb.replace(/e$/, "");
  const spoken = gated.find(({ name }) => wordsOfName(name).some((word) => word.startsWith(stem)));
  return spoken ?? cycle.tools.find(starts) ?? gated[0];
};

export const approval = ruleForPeople(/^\s*([a-z]{3,})\b[\s:,]*(.*)$/is, (turn, first = "", rest = "") => {
  const verb = first.toLowerCase();
  const tool = toolFor(turn, verb);
  if (!tool) {
    const text = `I cannot ${verb} anything: I have no tool for it that people approve.`;
    return verbs.test(verb) ? [text, `no tool to ${verb}`] : undefined;
  }
  const input = inputFrom(rest.replace(/^(?:the|our|a|an)\s+/i, ""), tool.properties);
  return Object.keys(input).length === 0 && tool.properties.some(({ required }) => required)
    ? [`Say what: "${verb} <what>".`, `was not told what to ${verb}`]
    : callTool(turn, { toolName: tool.name, input });
});
