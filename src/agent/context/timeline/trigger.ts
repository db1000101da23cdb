import type { Messaging } from "../agent-state.ts";
import { quote, quoteJson } from "../quote.ts";
import { shortTime } from "../time.ts";
import type { ActiveSpace, Trigger } from "./snapshot.ts";

const fields = (trigger: Trigger, messaging: Messaging): [name: string, value: string][] => {
  switch (trigger.type) {
    case "space_message": {
      const { sender, space, triggerSource } = trigger;
      const expected = trigger.senderExpectsReply && triggerSource !== "proactive_router";
      return [
        ["triggerSource", triggerSource],
        ["space", `${quote(space.name)} (id: ${space.id})`],
        ["sender", `${quote(sender.name)} (${sender.type}, id: ${sender.id})`],
        ["message", quote(trigger.text)],
        ["messageId", trigger.messageId],
        ["timestamp", quote(shortTime(trigger.timestamp))],
        ...(messaging === "threaded" ? [["senderExpectsReply", String(expected)] as [string, string]] : []),
      ];
    }
    case "plan":
      return [
        ["plan", `${quote(trigger.plan.name)} (id: ${trigger.plan.id})`],
        ["instruction", quote(trigger.instruction)],
        ["scheduledAt", quote(shortTime(trigger.scheduledAt))],
      ];
    case "service":
      return [
        ["service", quote(trigger.serviceName)],
        ["payload", quoteJson(trigger.payload)],
      ];
    case "tool_result":
      return [
        ["tool", quote(trigger.tool)],
        ["toolCallId", trigger.toolCallId],
        ["result", quoteJson(trigger.result)],
      ];
  }
};

/** Why this run runs. Never cut. */
export const triggerLines = (trigger: Trigger, messaging: Messaging): string[] => [
  "TRIGGER:",
  `  type: ${trigger.type}`,
  ...fields(trigger, messaging).map(([name, value]) => `  ${name}: ${value}`),
];

const whys: Record<ActiveSpace["why"], string> = {
  trigger: "auto-set from trigger",
  wait: "as you left it",
  call: "where you called the tool",
};

export const activeSpaceLine = (active: ActiveSpace | null): string =>
  active === null
    ? "ACTIVE SPACE: none (call enter_space to enter a space first)"
    : `ACTIVE SPACE: ${quote(active.name)} (id: ${active.id})  [${whys[active.why]}]`;
