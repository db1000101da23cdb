import { expect, test } from "vitest";
import { configInCompartment } from "../../src/agent/run/settings.ts";
import { AgentConfig } from "../../src/protocol/agent.ts";

test("[C18] a compartment has the tools that its owner allows there, and no heartbeat", () => {
  const url = "https://tools.example/mcp";
  const config = AgentConfig.parse({
    name: "Polaris",
    heartbeat: { everyMinutes: 60 },
    tools: [
      { name: "mail", description: "Mails", executionType: "external" },
      { name: "look", description: "Looks up", executionType: "internal", confidential: "allowed" },
    ],
    mcp: {
      servers: [
        { name: "web", url },
        { name: "files", url, confidential: "allowed" },
      ],
    },
    toolRules: [
      { tool: "mail", rule: "start_constraint" },
      { tool: "web__find", rule: "required_before_exit" },
      { tool: "files__open", rule: "exit_loop" },
      { tool: "look", rule: "requires_prior", tools: ["mail"] },
    ],
  });
  const effective = configInCompartment(config);
  expect(effective.heartbeat).toBeUndefined();
  expect(effective.tools.map(({ name }) => name)).toEqual(["look"]);
  expect(effective.mcp.servers.map(({ name }) => name)).toEqual(["files"]);
  expect(effective.toolRules.map(({ tool }) => tool)).toEqual(["files__open", "look"]);
  expect({ ...effective, heartbeat: config.heartbeat, tools: [], mcp: {}, toolRules: [] }).toEqual({
    ...config,
    ...{ tools: [], mcp: {}, toolRules: [] },
  });
});
