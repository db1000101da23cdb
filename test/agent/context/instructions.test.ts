import { expect, test } from "vitest";
import { renderInstructions } from "../../../src/agent/context/instructions.ts";
import type { AgentConfig } from "../../../src/protocol/agent.ts";
import { analyst, configOf } from "./cast.ts";

const kinds: [AgentConfig["continuity"], AgentConfig["messaging"]][] = [
  ["consciousness", "simple"],
  ["consciousness", "threaded"],
  ["timeline", "simple"],
  ["timeline", "threaded"],
];

test.each(kinds)("the system message of an agent of kind %s, %s", async (continuity, messaging) => {
  const config = configOf(analyst, { continuity, messaging });
  await expect(`${renderInstructions(analyst.id, config)}\n`).toMatchFileSnapshot(
    `./instructions-${continuity}-${messaging}.golden.txt`,
  );
});

test("the rules of its tools stand at the end, what comes first first", async () => {
  const config = configOf(analyst, {
    continuity: "consciousness",
    description: "",
    instructions: "Be brief.",
    toolRules: [
      { tool: "send_message", rule: "exit_loop" },
      { tool: "search", rule: "continue_loop" },
      { tool: "api_request", rule: "max_calls", count: 3 },
      { tool: "pay", rule: "requires_prior", tools: ["check", "quote"] },
      { tool: "log", rule: "required_before_exit" },
      { tool: "context", rule: "start_constraint" },
    ],
  });
  await expect(`${renderInstructions(analyst.id, config)}\n`).toMatchFileSnapshot(
    "./instructions-tool-rules.golden.txt",
  );
});

test("what the owner wrote stands in its own places, each line indented", () => {
  const config = configOf(analyst, {
    continuity: "consciousness",
    description: "Reads figures",
    instructions: "Be brief.\nBe kind.",
  });
  expect(
    renderInstructions(analyst.id, config).endsWith(
      "DESCRIPTION:\n  Reads figures\n\nYOUR ROLE:\n  Be brief.\n  Be kind.",
    ),
  ).toBe(true);
});
