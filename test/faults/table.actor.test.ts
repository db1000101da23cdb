import { afterEach, expect, inject, test, vi } from "vitest";
import { faultPoints as allPoints, armFault, disarmFaults, type FaultPoint } from "../../src/shared/fault.ts";
import { checkCut, type Played, play } from "./play.ts";
import type { Scenario } from "./scenario.ts";
import { scenarios } from "./scenarios.ts";
import { type Cell, renderTable } from "./table.ts";

/**
 * Every fault point in every scenario: the object that reaches it crashes, and nobody calls. In the end all is as
 * without the crash: timelines, receipts, runs, memories, effects. No inbox holds anything, no client shows a stream,
 * no other timer is left. `npm run test:faults` runs each cell, each time that a point is reached. The normal run takes
 * a single reply whole. Of the rest it takes first times: each point in one scenario, and a fixed part of the others.
 */
afterEach(() => {
  disarmFaults();
  vi.useRealTimers();
});

const isAll = inject("faults") === "all";
/** No scenario has a device: test/person crashes its push. */
const faultPoints: FaultPoint[] = allPoints.filter((point) => point !== "person.after-push");
const cells = new Map<string, Map<FaultPoint, Cell>>();
const pairs = new Map<string, Map<FaultPoint, Cell>>();
const wholes = new Map<string, Played>();
const reached = new Set<FaultPoint>();

/** The passes of a stream are alike: the first, one in the middle and the last will do. */
const passesToTry = (scenario: Scenario, point: FaultPoint, count: number): number[] => {
  if (!isAll && scenario !== scenarios[0]) return [0];
  const all = Array.from({ length: count }, (_, pass) => pass);
  if (point !== "agent.mid-stream" && point !== "space.mid-speech") return all;
  return [...new Set([0, Math.floor(count / 2), count - 1])];
};

const isInPart = (scenario: Scenario, point: FaultPoint): boolean => {
  if (!reached.has(point)) return true;
  const [row, column] = [faultPoints.indexOf(point), scenarios.indexOf(scenario)];
  return (row + column) % (scenario.withUnknown ? 6 : 4) === 0;
};

const wholeOf = async (scenario: Scenario): Promise<Played> => {
  const whole = wholes.get(scenario.name) ?? (await play(scenario));
  wholes.set(scenario.name, whole);
  return whole;
};

const failureOf = async (work: () => Promise<void>): Promise<string | undefined> => {
  try {
    await work();
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
};

test.each(scenarios.map((scenario) => [scenario.name, scenario] as const))(
  "[R1] [R2] [R3] [D2] [D3] [D4] %s: a crash at any point changes nothing in the end",
  { timeout: 600_000 },
  async (_, scenario) => {
    const whole = await wholeOf(scenario);
    expect(whole.aftermath.agents.every(({ inbox, reserved }) => inbox === 0 && reserved === 0)).toBe(true);
    const column = new Map<FaultPoint, Cell>();
    cells.set(scenario.name, column);
    const failures: string[] = [];
    for (const point of faultPoints) {
      const count = whole.passes.get(point) ?? 0;
      if (count === 0) column.set(point, "–");
      if (count === 0 || !(isAll || isInPart(scenario, point))) continue;
      reached.add(point);
      column.set(point, "ok");
      for (const pass of passesToTry(scenario, point, count)) {
        const failure = await failureOf(async () => {
          const cut = await play(scenario, () => void armFault(point, pass));
          checkCut(scenario, point, pass, whole, cut);
        });
        if (failure === undefined) continue;
        column.set(point, "FAIL");
        failures.push(`${point}, pass ${pass}: ${failure}`);
      }
    }
    expect(failures.join("\n\n")).toBe("");
  },
);

/** Two points that a single reply comes to; in the normal run some, each with the next. */
const pairsOf = (points: FaultPoint[]): [FaultPoint, FaultPoint][] => {
  const all = points.flatMap((one, index) =>
    points.slice(index).map((other): [FaultPoint, FaultPoint] => [one, other]),
  );
  return isAll
    ? all
    : points.flatMap((one, index) => (index % 4 === 1 ? all.filter(([first]) => first === one).slice(1, 2) : []));
};

/** `–` where the other point is not come to any more after the crash at the first. */
const pairCell = async (scenario: Scenario, whole: Played, one: FaultPoint, other: FaultPoint): Promise<Cell> => {
  const cut = await play(scenario, () => {
    void armFault(one).then(() => (one === other ? armFault(other) : undefined));
    if (one !== other) void armFault(other);
  });
  const isTwice = (cut.passes.get(other) ?? 0) > (one === other ? 1 : 0);
  checkCut(scenario, one, 0, whole, cut, isTwice ? 2 : 1);
  return isTwice ? "ok" : "–";
};

test("[R1] [R2] [R3] single reply: two crashes in one run change no more than one does", {
  timeout: 600_000,
}, async () => {
  const [scenario] = scenarios;
  if (!scenario) throw new Error("there are no scenarios");
  const whole = await wholeOf(scenario);
  const points = faultPoints.filter((point) => (whole.passes.get(point) ?? 0) > 0);
  const failures: string[] = [];
  for (const [one, other] of pairsOf(points)) {
    let cell: Cell = "FAIL";
    const failure = await failureOf(async () => {
      cell = await pairCell(scenario, whole, one, other);
    });
    if (failure !== undefined) failures.push(`${one} and ${other}: ${failure}`);
    for (const [name, point] of [
      [one, other],
      [other, one],
    ] as const) {
      pairs.set(name, (pairs.get(name) ?? new Map<FaultPoint, Cell>()).set(point, cell));
    }
  }
  expect(failures.join("\n\n")).toBe("");
  expect([...pairs.values()].every((column) => [...column.values()].includes("ok"))).toBe(true);
});

test("each fault point is come to in some scenario, and each scenario comes to one", ({ task }) => {
  const names = scenarios.map(({ name }) => name);
  const paired = faultPoints.filter((point) => pairs.has(point));
  const two = `Two crashes in a single reply:\n${renderTable(paired, paired, pairs)}`;
  const text = `${renderTable(faultPoints, names, cells)}\n\n${two}`;
  task.meta.faultTable = { text };
  console.log(text);
  expect(faultPoints.filter((point) => !reached.has(point))).toEqual([]);
  expect(names.filter((name) => ![...(cells.get(name)?.values() ?? [])].includes("ok"))).toEqual([]);
});
