import { freePort } from "../scripts/server.ts";
import type { Run } from "../src/protocol/run.ts";
import { openHouse } from "../test/e2e/support/house.ts";
import { startTalkativeModel } from "../test/e2e/support/talkative-model.ts";
import { inspectHeap } from "../test/kill/live-heap.ts";
import { residentMegabytes } from "../test/kill/memory.ts";
import type { Bench } from "./support/figure.ts";

/**
 * Memory of the worker after agents were used once and rest, against the same process before it had any agent. What
 * lives in its heap is bounded; what is resident its allocator keeps
 * (docs/decisions/2026-11-23-what-resting-agents-hold.md).
 */
const agents = 100;
const atOnce = 4;
/** Longer than an object stays in memory with nothing to do. */
const restMs = 15_000;
const samples = 10;
const mostTimes = 1.5;

const pause = (ms: number): Promise<void> => new Promise((resume) => setTimeout(resume, ms));

/** The least of some samples: what is freed is given back bit by bit. */
const leastResident = async (groupId: number): Promise<number> => {
  const seen: number[] = [];
  for (let sample = 0; sample < samples; sample += 1) {
    seen.push((await residentMegabytes(groupId)).worker);
    await pause(500);
  }
  return Math.min(...seen);
};

export const bench: Bench = async (report) => {
  const model = await startTalkativeModel(Array.from({ length: 20 }, (_, index) => `word${index} `));
  const inspectorPort = await freePort();
  const house = await openHouse({ inspectorPort });
  const heap = await inspectHeap(inspectorPort);
  try {
    const empty = { resident: await leastResident(house.groupId()), lives: await heap.megabytes() };
    const person = await house.addPerson("Husam");
    const useOne = async (index: number): Promise<void> => {
      const agentId = await house.addAgent({ name: `Echo ${index}`, model: model.config });
      const spaceId = await house.addSpace(`Memory ${index}`, [person.id, agentId]);
      await person.api.post(`/v1/spaces/${spaceId}/messages`, { text: "What is new?" });
      for (;;) {
        const { items } = await house.api.get<{ items: Run[] }>(`/v1/agents/${agentId}/runs`);
        if (items[0]?.status === "completed") return;
        if (items[0]?.error) throw new Error(`a run ended as ${JSON.stringify(items[0])}`);
        await pause(20);
      }
    };
    for (let index = 0; index < agents; index += atOnce) {
      await Promise.all(Array.from({ length: atOnce }, (_, beside) => useOne(index + beside)));
    }
    await pause(restMs);
    const rested = { resident: await leastResident(house.groupId()), lives: await heap.megabytes() };
    const name = `${agents} agents, used once and at rest, against the empty worker`;
    const bounded = `what lives, lower is better, at most ${mostTimes} times`;
    report({ case: name, figure: bounded, unit: "MB", ours: rested.lives, baseline: empty.lives });
    report({
      case: name,
      figure: "resident, lower is better",
      unit: "MB",
      ours: rested.resident,
      baseline: empty.resident,
    });
    const holds = rested.lives <= mostTimes * empty.lives;
    return holds ? [] : [`${rested.lives.toFixed(1)} MB live at rest, ${empty.lives.toFixed(1)} MB when empty`];
  } finally {
    heap.close();
    await house.close();
    await model.stop();
  }
};
