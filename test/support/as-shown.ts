import type { ToolAnswer, ToolCall } from "../../src/protocol/tool-call.ts";

/** An answer as a client sends it: an approval names what its person was shown. Any other stays as it is. */
export const asShown = ({ awaits }: Pick<ToolCall, "awaits">, answer: ToolAnswer): ToolAnswer => {
  const result = "result" in answer ? answer.result : null;
  if (awaits?.kind !== "approval" || typeof result !== "object" || result === null || Array.isArray(result)) {
    return answer;
  }
  return result.approved === true ? { result: { inputHash: awaits.inputHash ?? "", ...result } } : answer;
};

/** A yes to what the call shows. */
export const yesTo = (call: Pick<ToolCall, "awaits">): ToolAnswer => asShown(call, { result: { approved: true } });
