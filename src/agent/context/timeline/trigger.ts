import type { InboxData } from "../../records.ts";
import type { Messaging } from "../agent-state.ts";
import { activeSpace, headings, named, noActiveSpace, sender, type TriggerField, triggerField } from "../grammar.ts";
import { quote, quoteJson } from "../quote.ts";
import { shortTime } from "../time.ts";
import type { ActiveSpace } from "./snapshot.ts";

const fields = (trigger: InboxData, messaging: Messaging): [field: TriggerField, value: string][] => {
  switch (trigger.type) {
    case "space_message": {
      const { message, triggerSource } = trigger.delivered;
      const isExpected = message.expectsReply === true && triggerSource !== "proactive_router";
      return [
        ["triggerSource", triggerSource === "none" ? "every_message" : triggerSource],
        ["space", named.write({ name: trigger.spaceName, id: message.spaceId })],
        ["sender", sender.write(message.sender)],
        ["message", quote(message.text ?? "")],
        ["messageId", message.id],
        ["timestamp", quote(shortTime(message.createdAt))],
        ...(messaging === "threaded"
          ? [["senderExpectsReply", String(isExpected)] satisfies [TriggerField, string]]
          : []),
      ];
    }
    case "plan":
      return [
        ["plan", named.write({ name: trigger.planName, id: trigger.planId })],
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
export const triggerLines = (trigger: InboxData, messaging: Messaging): string[] => [
  headings.trigger,
  `  ${triggerField.write({ field: "type", value: trigger.type })}`,
  ...fields(trigger, messaging).map(([field, value]) => `  ${triggerField.write({ field, value })}`),
];

const whys: Record<ActiveSpace["why"], string> = {
  trigger: "auto-set from trigger",
  wait: "as you left it",
  call: "where you called the tool",
};

export const activeSpaceLine = (active: ActiveSpace | null): string =>
  active === null ? noActiveSpace : activeSpace.write({ ...active, why: `  [${whys[active.why]}]` });
