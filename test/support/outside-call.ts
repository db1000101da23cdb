import { vi } from "vitest";
import * as z from "zod";
import { providers } from "../../src/models/models.ts";
import { WaitingToolCall } from "../../src/protocol/tool-call.ts";
import { expectOk, type House, ids, call as request } from "./house.ts";
import { call, scriptedModel, step, text } from "./scripted-model.ts";

/** Calls of an `external` tool that nobody sends anywhere, made by a run that waits for them. */
const toolName = "lookUp";
const modelName = "outside-caller";
const { rehearsal } = providers;

const caller = scriptedModel(({ prompt }) =>
  prompt.at(-1)?.role === "tool" ? step(text("Found.")) : step(call(toolName, { id: 7 })),
);

/** An agent that makes one such call whenever it is triggered. Other agents keep their models. */
export const outsideCaller = async (house: House, tool: object = {}): Promise<string> => {
  providers.rehearsal = async (spec, deps) => (spec.name === modelName ? caller : rehearsal(spec, deps));
  const model = { provider: "rehearsal", name: modelName };
  const external = { name: toolName, description: "Looks it up", executionType: "external", visible: false, ...tool };
  const limits = { maxConcurrentRuns: 10 };
  return (
    await house.agent({
      name: `Clerk ${ids.mint("key").slice(-20)}`,
      continuity: "timeline",
      model,
      limits,
      tools: [external],
    })
  ).id;
};

const Page = z.object({ items: z.array(WaitingToolCall), nextCursor: z.string().nullable() });

export const listOutsideCalls = (house: House, query = ""): Promise<z.infer<typeof Page>> =>
  expectOk(Page, request(`/v1/tool-calls${query}`, { bearer: house.secretKey }));

/** Has such an agent make a call; resolves once it is listed. */
export const outsideCall = async (house: House, agentId: string): Promise<WaitingToolCall> => {
  const own = async (): Promise<WaitingToolCall[]> =>
    (await listOutsideCalls(house, "?limit=100")).items.filter((item) => item.agentId === agentId);
  const before = new Set((await own()).map(({ toolCallId }) => toolCallId));
  const body = { serviceName: "desk", payload: {} };
  await expectOk(z.unknown(), request(`/v1/agents/${agentId}/trigger`, { bearer: house.secretKey, body }));
  return vi.waitFor(async () => {
    const made = (await own()).find(({ toolCallId }) => !before.has(toolCallId));
    if (!made) throw new Error("no call is listed");
    return made;
  });
};
