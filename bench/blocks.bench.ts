import { setTimeout as pause } from "node:timers/promises";
import { type House, openHouse } from "../test/e2e/support/house.ts";
import { seededRandom } from "../test/kill/random.ts";
import { type Bench, percentile } from "./support/figure.ts";
import { residentMiB } from "./support/resident.ts";
import { postJson, withRivals } from "./support/servers.ts";

/**
 * The cost of editing a long block and keeping every version of it: 1,000 edits, each of one line in 100 kB of text.
 * The baseline is a bare object that keeps each version as its whole text. Both answer an edit with the whole text.
 * Then the cost of a restart: the block is read, and the first edit opens the document with its history. Last, the cost
 * for an agent without blocks: its first answer after a start, and the memory of workerd then.
 */
const lines = 1250;
const lineLength = 79;
const edits = 1000;
const warmUps = 10;
const restarts = 7;
const settleMs = 2000;
/** An edit may store this share of what the whole text would take, and take so many times as long as the bare one's. */
const mostStored = 0.05;
const mostTimes = 3;
/** The first answer after a start, of an agent with blocks against one without. */
const mostColdTimes = 1.2;

const letters = "abcdefghijklmnopqrstuvwxyz     ";
const random = seededRandom(6);
const line = (): string =>
  Array.from({ length: lineLength }, () => letters[Math.floor(random.between(0, letters.length))]).join("");

const timed = async <T>(act: () => Promise<T>): Promise<{ ms: number; answer: T }> => {
  const startedAt = performance.now();
  const answer = await act();
  return { ms: performance.now() - startedAt, answer };
};

const createBlock = (house: House, agentId: string, content: string): Promise<unknown> =>
  house.api.post(`/v1/agents/${agentId}/blocks`, {
    label: "notes",
    type: "core",
    permission: "ReadWrite",
    content,
    charLimit: 2 * lines * lineLength,
  });

const editBlock = (house: House, agentId: string, at: number, text: string): Promise<{ version: number }> =>
  house.api.post(`/v1/agents/${agentId}/blocks/notes/operations`, {
    operations: [{ op: "edit_range", startLine: at, endLine: at, text }],
  });

/** Edits, timed in turn with the same edits of a bare object; then a restart. */
const editing: Bench = (report) =>
  withRivals(async ({ house, baseline }) => {
    const agentId = await house.addAgent({ name: "Archivist" });
    const text = Array.from({ length: lines }, line).join("\n");
    await createBlock(house, agentId, text);
    await postJson(`${baseline.url}/text?name=notes`, { at: 0, length: 0, text });
    const sizes = async () => ({
      ours: (await postJson<{ bytes: number }>(`${house.url}/bench/size`, { agentId })).bytes,
      bare: (await postJson<{ bytes: number }>(`${baseline.url}/size?name=notes`, {})).bytes,
    });
    const ours: number[] = [];
    const bare: number[] = [];
    let before = await sizes();
    for (let round = -warmUps; round < edits; round += 1) {
      if (round === 0) before = await sizes();
      const at = Math.floor(random.between(0, lines));
      const written = line();
      const one = await timed(() => editBlock(house, agentId, at + 1, written));
      const other = await timed(() =>
        postJson(`${baseline.url}/text?name=notes`, { at: at * (lineLength + 1), length: lineLength, text: written }),
      );
      if (round < 0) continue;
      ours.push(one.ms);
      bare.push(other.ms);
    }
    const after = await sizes();
    const stored = { ours: (after.ours - before.ours) / edits, bare: (after.bare - before.bare) / edits };
    const of = `${edits} edits of a line in a block of ${Math.round((lines * (lineLength + 1)) / 1000)} kB`;
    report({
      case: `${of}: stored by each, every version kept, against each version's whole text`,
      figure: `at most ${mostStored} of it`,
      unit: "bytes",
      ours: stored.ours,
      baseline: stored.bare,
    });
    for (const share of [0.5, 0.99]) {
      report({
        case: `${of}: time of one`,
        figure: `p${share * 100}, by HTTP${share === 0.5 ? `, at most ${mostTimes} times` : ""}`,
        unit: "ms",
        ours: percentile(ours, share),
        baseline: percentile(bare, share),
      });
    }
    const kept = await house.api.get<{ version: number }>(`/v1/agents/${agentId}/blocks/notes?version=${edits}`);
    if (kept.version !== edits) throw new Error(`version ${kept.version} came for ${edits}`);

    const idle = await house.addAgent({ name: "Idle" });
    const loads: Record<"agent" | "block" | "edit" | "warm", number[]> = { agent: [], block: [], edit: [], warm: [] };
    for (let round = 0; round < restarts; round += 1) {
      await house.crash();
      loads.agent.push((await timed(() => house.api.get(`/v1/agents/${idle}/blocks`))).ms);
      loads.block.push((await timed(() => house.api.get(`/v1/agents/${agentId}/blocks`))).ms);
      loads.edit.push((await timed(() => editBlock(house, agentId, 1, line()))).ms);
      loads.warm.push((await timed(() => editBlock(house, agentId, 2, line()))).ms);
    }
    report({
      case: "after a restart: the block as it is shown, against an agent without blocks that was asked just before",
      figure: "p50, lower is better",
      unit: "ms",
      ours: percentile(loads.block, 0.5),
      baseline: percentile(loads.agent, 0.5),
    });
    report({
      case: "after a restart: the first edit, which opens the document with all of its history, against the second",
      figure: "p50, lower is better",
      unit: "ms",
      ours: percentile(loads.edit, 0.5),
      baseline: percentile(loads.warm, 0.5),
    });
    const broken: string[] = [];
    if (!(stored.ours <= mostStored * stored.bare)) broken.push(`an edit stores ${Math.round(stored.ours)} bytes`);
    const times = percentile(ours, 0.5) / percentile(bare, 0.5);
    if (!(times <= mostTimes)) broken.push(`an edit takes ${times.toFixed(1)} times as long as the bare one`);
    return broken;
  });

/** The product as it is deployed, started again and again: its first answer, once by an agent with blocks, once without. */
const coldStart: Bench = async (report) => {
  const house = await openHouse();
  try {
    const agents = { used: await house.addAgent({ name: "Used" }), unused: await house.addAgent({ name: "Unused" }) };
    await createBlock(house, agents.used, Array.from({ length: lines }, line).join("\n"));
    await editBlock(house, agents.used, 1, line());
    const first = { used: [] as number[], unused: [] as number[] };
    const held = { used: [] as number[], unused: [] as number[], edited: [] as number[] };
    const memory = async (): Promise<number> => {
      await pause(settleMs);
      return residentMiB();
    };
    for (let round = 0; round < restarts; round += 1) {
      for (const kind of round % 2 === 0 ? (["used", "unused"] as const) : (["unused", "used"] as const)) {
        await house.crash();
        first[kind].push((await timed(() => house.api.get(`/v1/agents/${agents[kind]}`))).ms);
        held[kind].push(await memory());
        if (kind !== "used") continue;
        await editBlock(house, agents.used, 1, line());
        held.edited.push(await memory());
      }
    }
    report({
      case: "first answer after a start, by an agent that has blocks against one that has none",
      figure: `p50, at most ${mostColdTimes} times`,
      unit: "ms",
      ours: percentile(first.used, 0.5),
      baseline: percentile(first.unused, 0.5),
    });
    report({
      case: "memory of workerd after it, the same",
      figure: "p50, lower is better",
      unit: "MiB",
      ours: percentile(held.used, 0.5),
      baseline: percentile(held.unused, 0.5),
    });
    report({
      case: "memory of workerd once a block was edited, against before",
      figure: "p50, lower is better",
      unit: "MiB",
      ours: percentile(held.edited, 0.5),
      baseline: percentile(held.used, 0.5),
    });
    const times = percentile(first.used, 0.5) / percentile(first.unused, 0.5);
    return times <= mostColdTimes ? [] : [`with blocks the first answer takes ${times.toFixed(2)} times as long`];
  } finally {
    await house.close();
  }
};

export const bench: Bench = async (report) => [...(await editing(report)), ...(await coldStart(report))];
