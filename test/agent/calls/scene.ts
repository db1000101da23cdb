import { env } from "cloudflare:workers";
import { afterEach, beforeEach, expect, inject, vi } from "vitest";
import { seal } from "../../../src/auth/sealing.ts";
import { AgentConfig } from "../../../src/protocol/agent.ts";
import type { Message } from "../../../src/protocol/message.ts";
import type { EntityRef } from "../../../src/protocol/rpc.ts";
import type { Run } from "../../../src/protocol/run.ts";
import type { ToolAnswer } from "../../../src/protocol/tool-call.ts";
import { unwrap } from "../../../src/shared/errors.ts";
import { disarmFaults } from "../../../src/shared/fault.ts";
import { asShown } from "../../support/as-shown.ts";
import { SeenRequests } from "../../support/remote.ts";
import { installModel, type ScriptedModel, type ScriptedStep, scriptedModel } from "../../support/scripted-model.ts";
import { type AgentSettings, openHouse, runsOf } from "../fixture.ts";

/** Agents whose tools show, wait for people and servers, or answer through the inbox, met over RPC. */
let restore: (() => void) | undefined;

/** Puts another model in the place of the scene's. */
export const playWith = (model: ScriptedModel): void => {
  restore?.();
  restore = installModel(model);
};

/** For every file of such tests: the clock is fake, and nothing outlives a test. */
export const eachTest = (): void => {
  beforeEach(() => void vi.useFakeTimers({ toFake: ["Date"] }));
  afterEach(() => {
    restore?.();
    disarmFaults();
    vi.useRealTimers();
  });
};

export type Tool = { name: string; executionType: string; [field: string]: unknown };

export const requestsTo = async (path: string) =>
  SeenRequests.parse(await (await fetch(`${inject("remote")}/requests?path=${encodeURIComponent(path)}`)).json());

export const freshPath = (): string => `/echo/${crypto.randomUUID()}`;

type Scene = Omit<Partial<AgentSettings>, "tools"> & {
  tools: Tool[];
  steps: ScriptedStep[];
  secrets?: Record<string, string>;
};

/** A space of two people and an agent with these tools, whose model makes these steps once a person has asked. */
export const scene = async ({ tools, steps, secrets = {}, ...settings }: Scene) => {
  const house = await openHouse();
  const described = tools.map((tool) => ({ description: `Does ${tool.name}`, ...tool }));
  const config = AgentConfig.parse({ name: "Worker", tools: described });
  const agent = await house.agent({ name: "Worker", continuity: "timeline", ...settings, tools: config.tools });
  const sealed = await Promise.all(
    Object.entries(secrets).map(async ([name, value]) => [name, await seal(env, house.workspaceId, name, value)]),
  );
  unwrap(await env.AGENT.getByName(agent.id).setSecrets(house.workspaceId, Object.fromEntries(sealed)));
  const model = scriptedModel(steps);
  playWith(model);
  const [ann, bob] = [await house.person("Ann"), await house.person("Bob")];
  const space = await house.space("Lab", [ann, bob, agent]);
  const { workspaceId } = house;
  const toolCall = async (name: string): Promise<NonNullable<Message["toolCall"]>> => {
    const found = (await space.messages()).findLast((message) => message.toolCall?.name === name)?.toolCall;
    if (!found) throw new Error(`no ${name} shows`);
    return found;
  };
  /** Waits until the call shows with this status. */
  const shown = (name: string, status: string) =>
    vi.waitFor(
      async () => {
        const found = await toolCall(name);
        expect(found.status).toBe(status);
        return found;
      },
      { timeout: 5000 },
    );
  /** The newest run, once it is in this state. */
  const run = (status: Run["status"]): Promise<Run> =>
    vi.waitFor(
      async () => {
        const [newest] = await runsOf(workspaceId, agent);
        expect(newest?.status).toBe(status);
        if (!newest) throw new Error("no run");
        return unwrap(await env.AGENT.getByName(agent.id).run(workspaceId, newest.id));
      },
      { timeout: 5000 },
    );
  return {
    house,
    agent,
    model,
    ann,
    bob,
    space,
    workspaceId,
    toolCall,
    shown,
    run,
    /** A person asks for something, and the agent asks people by this tool: its run rests, or, of a living agent, is over. */
    asked: async (name: string) => {
      await space.post(ann, "Go");
      const call = await shown(name, "requires_action");
      await run(settings.continuity === "consciousness" ? "completed" : "waiting_tool");
      return call;
    },
    give: async (who: EntityRef, name: string, given: ToolAnswer) => {
      const found = await toolCall(name);
      return space.stub().answerToolCall(space.as(who), found.id, asShown(found, given));
    },
  };
};

export const ask: Tool = { name: "confirm", executionType: "space" };
export const deploy = (path: string, more: object = {}): Tool => ({
  ...{ name: "deploy", executionType: "gateway" },
  execution: { url: `${inject("remote")}${path}`, method: "POST", body: { to: "{{input.to}}" } },
  inputSchema: { type: "object", properties: { to: { type: "string" } }, required: ["to"] },
  ...more,
});
export const approved = (more: object = {}): object => ({ approval: { required: true, ...more } });
export const yes = { result: { approved: true } };

export const outputs = (run: Run) =>
  run.steps.flatMap(({ toolCalls }) => toolCalls.map(({ name, output }) => [name, output]));
