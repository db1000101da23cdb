import { createRoute, z } from "@hono/zod-openapi";
import { Message } from "../protocol/message.ts";
import { ToolAnswer } from "../protocol/tool-call.ts";
import { access } from "./access.ts";
import { createRoutes } from "./house.ts";
import { inSpace, requireParticipant, spaceAt } from "./in-space.ts";
import { answers, badBody, jsonBody, pathId, problems } from "./route-parts.ts";

export const toolAnswers = createRoutes();

toolAnswers.openapi(
  createRoute({
    method: "post",
    path: "/v1/spaces/{spaceId}/tool-calls/{toolCallId}/result",
    tags: ["Messages"],
    summary: "Answer a tool call that waits for people",
    description:
      "For a person of the space, one of the call's `approvers` where it names some. An approval is answered with `{result: {approved, note?}}`, any other call with a result that matches its `schema`, or with an `error`. The first valid answer wins; the same answer again is answered like the first time.",
    ...access("space"),
    request: {
      params: z.object({ spaceId: pathId("spc", "the space"), toolCallId: pathId("tc", "the tool call") }),
      body: jsonBody(ToolAnswer),
    },
    responses: {
      200: answers(z.object({ message: Message }), "The message that shows the call, as it stands then"),
      ...problems("not_found", "conflict", "gone", "answer_invalid", "acting_entity_required", ...badBody),
    },
  }),
  async (context) => {
    const { spaceId, toolCallId } = context.req.valid("param");
    const stub = spaceAt(context, spaceId);
    const answer = context.req.valid("json");
    await requireParticipant(context);
    const { message } = await inSpace(context, (principal) => stub.answerToolCall(principal, toolCallId, answer));
    return context.json({ message }, 200);
  },
);
