import { expect, test } from "vitest";
import type { Continuity, Messaging } from "../../../src/agent/context/agent-state.ts";
import { renderInstructions } from "../../../src/agent/context/instructions.ts";
import { analyst, configOf } from "./cast.ts";

const kinds: [Continuity, Messaging][] = [
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
