import { runInDurableObject } from "cloudflare:test";
import { expect, onTestFinished, test, vi } from "vitest";
import type { Agent } from "../../src/agent/agent.ts";
import { AgentConfig } from "../../src/protocol/agent.ts";
import { unwrap } from "../../src/shared/errors.ts";
import { createGate } from "../support/gate.ts";
import { agentStub, openHouse } from "./fixture.ts";

/** An agent, and what makes it anew under its id, inside its own object: what is asked there is asked at the same time. */
const inAgent = async (
  work: (
    agent: Agent,
    more: { workspaceId: string; storage: DurableObjectStorage; makeAnew: () => ReturnType<Agent["create"]> },
  ) => Promise<void>,
): Promise<void> => {
  const { workspaceId, ...house } = await openHouse();
  const analyst = await house.agent({ name: "Analyst" });
  const config = AgentConfig.parse({ name: "Made anew" });
  await runInDurableObject(agentStub(analyst), (agent, { storage }) =>
    work(agent, { workspaceId, storage, makeAnew: () => agent.create({ id: analyst.id, workspaceId, config }) }),
  );
};

/** From the second on, whoever deletes what the agent stores waits until the gate opens. */
const holdSecondEnd = (storage: DurableObjectStorage) => {
  const gate = createGate();
  const deleteAlarm = storage.deleteAlarm.bind(storage);
  let ends = 0;
  const ending = vi.spyOn(storage, "deleteAlarm").mockImplementation(async () => {
    ends += 1;
    if (ends > 1) await gate.opened;
    return deleteAlarm();
  });
  onTestFinished(() => ending.mockRestore());
  return gate;
};

test("[R5] two deletions of an agent at once end it once, and spare one that is made anew", () =>
  inAgent(async (agent, { workspaceId, storage, makeAnew }) => {
    const gate = holdSecondEnd(storage);
    const [one, other] = [agent.remove(workspaceId), agent.remove(workspaceId)];
    unwrap(await one);
    unwrap(await makeAnew());
    gate.open();
    unwrap(await other);
    expect(unwrap(await agent.describe(workspaceId)).config.name).toBe("Made anew");
  }));

test("[R5] an agent that is made anew while the former one ends is not ended with it", () =>
  inAgent(async (agent, { workspaceId, makeAnew }) => {
    const [removal, made] = [agent.remove(workspaceId), makeAnew()];
    unwrap(await removal);
    expect(unwrap(await made).config.name).toBe("Made anew");
    expect(unwrap(await agent.describe(workspaceId)).config.name).toBe("Made anew");
  }));
