import * as z from "zod";
import { AnsweredToolCall, ClaimToolCall, ToolAnswer, WaitingToolCall } from "../protocol/tool-call.ts";
import { ColloquyError, unwrap } from "../shared/errors.ts";
import { agentAt, type HttpContext, workspaceOf } from "./http-context.ts";
import { noteLook } from "./mind-query.ts";
import { Resource } from "./route.ts";
import { badPage, listOf, pageQuery } from "./route-parts.ts";

/** A call's id says which mind made it: an agent's open one, or what it has from a confidential space. */
const isConfidential = ({ var: { ids } }: HttpContext, toolCallId: string): boolean =>
  ids.isCompartment(ids.ownerOf("tc", toolCallId));

/** A call of a confidential space holds what was said there: it is for servers, and no admin learns that there is one (C19). */
const agentOf = (context: HttpContext, toolCallId: string) => {
  if (context.var.principal.kind === "key" || !isConfidential(context, toolCallId)) {
    return agentAt(context, context.var.ids.ownerOf("tc", toolCallId));
  }
  // In the words for one that is not there.
  throw new ColloquyError("not_found", "there is no such call that waits for a server, or it is long over");
};

/** For servers that execute `external` tools: list what waits, claim it, answer it. */
export const toolCalls = new Resource("Tool calls");

toolCalls.route("GET /v1/tool-calls", {
  summary: "Calls of external tools that wait for a server, oldest first",
  description:
    "Those whose tool has no address to be sent to. A call may stand here a moment longer than it waits. Those of confidential spaces are for secret keys alone, here as below.",
  access: "workspace",
  query: pageQuery().extend({
    status: z.enum(["waiting"]).default("waiting").meta({ description: "Only `waiting` ones are listed" }),
  }),
  answers: [listOf(WaitingToolCall), "A page"],
  problems: badPage,
  handle: async ({ context, principal, query: { limit, cursor } }) => {
    const openOnly = principal.kind !== "key";
    const calls = unwrap(await workspaceOf(context).toolCalls({ limit, cursor, openOnly }));
    for (const agentId of new Set(calls.items.map((call) => call.agentId))) await noteLook(context, agentId);
    return calls;
  },
});

toolCalls.route("POST /v1/tool-calls/{toolCallId}/claim", {
  summary: "Claim a waiting call",
  description: "Nobody else may claim it until the lease ends. Who holds it may claim it again, to keep it longer.",
  access: "workspace",
  body: ClaimToolCall,
  answers: [z.object({ toolCall: WaitingToolCall }), "The call, with the claim"],
  problems: ["not_found", "conflict", "gone"],
  handle: async ({ context, workspaceId, params: { toolCallId }, body }) => ({
    toolCall: unwrap(await agentOf(context, toolCallId).claimToolCall(workspaceId, toolCallId, body)),
  }),
});

toolCalls.route("POST /v1/tool-calls/{toolCallId}/result", {
  summary: "Answer a call of an external tool",
  description:
    "The first answer wins; the same again changes nothing. One that comes when the run has gone on reaches the agent through its inbox.",
  access: "workspace",
  body: ToolAnswer,
  answers: [z.object({ toolCall: AnsweredToolCall }), "The call"],
  problems: ["not_found", "conflict", "gone"],
  handle: async ({ context, workspaceId, params: { toolCallId }, body }) => ({
    toolCall: unwrap(await agentOf(context, toolCallId).answerToolCall(workspaceId, toolCallId, body)),
  }),
});
