import { answerCall, claimCall } from "../calls/for-servers.ts";
import type { Area } from "./agent-runtime.ts";

/** Calls that servers claim and answer. */
export const toolCallsArea: Area<"claimToolCall" | "answerToolCall"> = {
  claimToolCall: ({ services }, id, claim) => {
    const claimed = claimCall(services, id, claim);
    services.wakeCalls();
    return claimed;
  },
  answerToolCall: async ({ services, loop }, id, answer) => {
    const answered = await answerCall(services, id, answer, () => loop.arm());
    loop.wake();
    services.wakeCalls();
    return answered;
  },
};
