import { expect, test } from "vitest";
import { stateLines } from "../../../src/agent/context/agent-state.ts";
import { spaceItem } from "../../../src/agent/context/grammar.ts";
import { renderInstructions } from "../../../src/agent/context/instructions.ts";
import type { AgentConfig } from "../../../src/protocol/agent.ts";
import { analyst, configOf, husam, space } from "./cast.ts";

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

test.each(["consciousness", "timeline"] as const)(
  "[C18] a %s is told what a confidential space means",
  (continuity) => {
    const config = configOf(analyst, { continuity });
    const open = renderInstructions(analyst.id, config);
    const inside = renderInstructions(analyst.id, config, [], "spc_BOARD").split("\n");
    const added = inside.filter((line) => !open.split("\n").includes(line));
    expect(added).toEqual([
      expect.stringMatching(/^ {2}- You are in the confidential space spc_BOARD: .* speak in this one/),
    ]);
    expect(inside.filter((line) => !added.includes(line)).join("\n")).toBe(open);
  },
);

test("[C18] YOUR SPACES says of a confidential space what may be done there", () => {
  const spaces = [{ ...space("Board", husam, analyst), confidential: true as const }, space("General", husam, analyst)];
  const lists = { agentId: analyst.id, spaces, goals: [], memories: [], plans: [] };
  const marked = (compartmentSpaceId: string | null) =>
    stateLines({ ...lists, compartmentSpaceId }).spaces.map(({ line }) => line.match(/\[[^\]]*\]/)?.[0]);
  expect(marked(null)).toEqual(["[CONFIDENTIAL: you may speak there, not read]", undefined]);
  expect(marked("spc_BOARD")).toEqual(["[CONFIDENTIAL]", undefined]);
  expect(marked("spc_OTHER")).toEqual(["[CONFIDENTIAL: closed to you here]", undefined]);
  for (const { line } of stateLines(lists).spaces) expect(spaceItem.read(line)).toBeDefined();
});
