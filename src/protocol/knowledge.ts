import * as z from "zod";
import { eventId, messageId, runId, toolCallId } from "./ids.ts";
import { component } from "./text.ts";

/** One thing of an agent's past: a message that it heard or said, a call that it made, or an event of its inbox. */
export const PastThing = z
  .object({ messageId: messageId.optional(), callId: toolCallId.optional(), eventId: eventId.optional() })
  .refine((asked) => Object.values(asked).filter((id) => id !== undefined).length === 1, {
    message: "must name one thing: messageId, callId or eventId",
  });
export type PastThing = z.infer<typeof PastThing>;

const Place = z.discriminatedUnion("how", [
  z.object({ how: z.literal("verbatim"), section: z.string() }),
  z.object({ how: z.literal("summary"), section: z.string() }),
  z.object({ how: z.literal("tool"), tool: z.string(), input: z.record(z.string(), z.unknown()) }),
]);

export const Knowledge = component("Knowledge", {
  id: z.string(),
  runId: runId.optional().describe("The run that was told it, said it or did it"),
  known: z.boolean().describe("Whether there is a place where the next run finds it"),
  places: z
    .array(Place)
    .describe(
      "Sections of the next input that hold it, and calls of offered tools that return it: `search` was tried, `read_messages` pages back to it, `get_my_runs` has what the run took and did",
    ),
});
export type Knowledge = z.infer<typeof Knowledge>;
