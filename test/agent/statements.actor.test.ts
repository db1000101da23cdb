import { env } from "cloudflare:test";
import { expect, test } from "vitest";
import { unwrap } from "../../src/shared/errors.ts";
import { createGate } from "../support/gate.ts";
import { answer, call, type ScriptedStep, step, text, waitAt } from "../support/scripted-model.ts";
import { agentStub, ended, openScene, scripted, statementsOf } from "./fixture.ts";

/** Each delays the model's first word. The space's and the agent's together. */
const mostStatements = 30;
const earlierRuns = 4;

const spaceStub = (id: string): DurableObjectStub => {
  const namespace: unknown = env.SPACE;
  return (namespace as DurableObjectNamespace).getByName(id);
};

test.for(["consciousness", "timeline"] as const)(
  "[B4] from post to model call, space and agent (%s) run at most 30 statements",
  async (continuity) => {
    const { house, husam, analyst, space, ask } = await openScene({ continuity });
    const gate = createGate();
    const slow: ScriptedStep = step(waitAt(gate), call("send_message", { text: "Here they are." }));
    const model = scripted();
    for (let run = 1; run <= earlierRuns; run += 1) {
      model.push(...answer(space.id, "Ready."));
      await ask("Are you ready?", run);
    }
    model.push(slow, step(text("Answered.")));

    const ofAgent = await statementsOf(agentStub(analyst));
    const ofSpace = await statementsOf(spaceStub(space.id));
    // Not as the fixture posts: that looks into the space until all agents are told.
    unwrap(await space.stub().post(space.as(husam), { text: "The numbers, please" }));
    await gate.reached;
    const before = [...ofSpace, ...ofAgent];
    gate.open();
    await ended(house.workspaceId, analyst, earlierRuns + 1);

    expect(before.length).toBeLessThanOrEqual(mostStatements);
  },
);
