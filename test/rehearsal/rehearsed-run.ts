import type { Snapshot } from "../../src/agent/context/compose.ts";
import { compose } from "../../src/agent/context/compose.ts";
import { toolDeclarations } from "../../src/agent/tools/registry.ts";
import type { ModelPrompt } from "../../src/models/language-model.ts";
import { decide } from "../../src/rehearsal/decide.ts";
import { parsePrompt } from "../../src/rehearsal/parse-prompt.ts";
import type { ToolCall } from "../../src/rehearsal/turn.ts";

/** What a model is given for a snapshot, composed by the agent's own context. */
export const promptOf = (snapshot: Snapshot): ModelPrompt => {
  const { instructions, messages } = compose(snapshot);
  return [
    { role: "system", content: instructions },
    ...messages.map(({ role, content }): ModelPrompt[number] => {
      if (typeof content !== "string" || (role !== "user" && role !== "assistant")) throw new Error("only texts");
      return { role, content: [{ type: "text", text: content }] };
    }),
  ];
};

const mostSteps = 10;

/** Plays a run to its end, or to its wait, with the tools that an agent of its kind has. Every tool succeeds. */
export const play = (snapshot: Snapshot): { calls: ToolCall[]; summary: string | undefined } => {
  const prompt = promptOf(snapshot);
  const names = Object.keys(toolDeclarations({ ...snapshot.config, tools: [] }));
  const tools = names.map((name) => ({ name, description: "", properties: [] }));
  const calls: ToolCall[] = [];
  for (let step = 0; step < mostSteps; step += 1) {
    const action = decide(parsePrompt(prompt), tools);
    if (action.type === "text") return { calls, summary: action.text };
    const { toolName, input } = action.call;
    calls.push(action.call);
    if (toolName === "skip" || input.wait === true) return { calls, summary: undefined };
    const toolCallId = `call-${step}`;
    const output = { type: "json" as const, value: { success: true } };
    prompt.push(
      { role: "assistant", content: [{ type: "tool-call", toolCallId, toolName, input }] },
      { role: "tool", content: [{ type: "tool-result", toolCallId, toolName, output }] },
    );
  }
  throw new Error("the run does not end");
};
