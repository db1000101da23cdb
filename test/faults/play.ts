import { expect, vi } from "vitest";
import { disarmFaults, type FaultPoint, faultPoints, passesOf } from "../../src/shared/fault.ts";
import type { Aftermath } from "./aftermath.ts";
import type { Act, Scenario } from "./scenario.ts";
import { openStage, type Stage } from "./stage.ts";

export type Played = {
  aftermath: Aftermath;
  /** Timers that are still set, by object. */
  timers: string[];
  /** How often each point was come to. */
  passes: ReadonlyMap<FaultPoint, number>;
  /** How often time had to go on, by less than half a minute. */
  ticks: number;
  /** How often models were asked. */
  generated: number;
};

/** An outsider does one thing; who gets no answer waits until all is at rest, looks, and does it again if need be. */
const act = async (stage: Stage, { does, when, done }: Act): Promise<void> => {
  for (;;) {
    await stage.until(when);
    try {
      await does();
      return;
    } catch (error) {
      if (error instanceof Error && error.cause === "final") throw error;
    }
    await stage.until(when && done ? async () => (await when()) || (await done()) : undefined);
    if (await done?.()) return;
  }
};

/** Plays a scenario in a house of its own; `crash` arms faults before anything happens in it. */
export const play = async (scenario: Scenario, crash: () => void = () => undefined): Promise<Played> => {
  const stage = await openStage();
  try {
    const acts = await scenario.open(stage);
    await stage.until();
    await stage.comeBack();
    disarmFaults();
    crash();
    for (const one of acts) await act(stage, one);
    const { faults, ...played } = await stage.aftermath();
    expect(faults).toEqual([]);
    return { ...played, passes: new Map(faultPoints.map((point) => [point, passesOf(point)])) };
  } finally {
    await stage.close();
    disarmFaults();
    vi.useRealTimers();
  }
};

/** The outcomes that a crash at a point's pass may have: as without it, or as the scenario states. */
const allowed = (scenario: Scenario, point: FaultPoint, pass: number, { aftermath }: Played): Aftermath[] => {
  const unknown = (effects: number): Aftermath => ({ ...(scenario.withUnknown?.(aftermath) ?? aftermath), effects });
  const stated = scenario.unknown?.[point];
  if (stated?.pass === pass) return [unknown(stated.effects)];
  const repeated = scenario.repeated?.[point];
  if (repeated?.pass === pass) return [{ ...aftermath, effects: repeated.effects }];
  const isBeside = scenario.beside && /^(agent|call)\./.test(point);
  return isBeside ? [aftermath, unknown(0), unknown(1)] : [aftermath];
};

/** As text in which the order of fields says nothing. */
const inOrder = (aftermath: Aftermath): string =>
  JSON.stringify(aftermath, (_, value: unknown) =>
    value !== null && typeof value === "object" && !Array.isArray(value)
      ? Object.fromEntries(Object.entries(value).sort(([one], [other]) => (one < other ? -1 : 1)))
      : value,
  );

/** The first brings back what crashed, the others what had turned to it meanwhile and backed off. */
const mostTicks = 3;

/** Throws unless the crash at `point` came, and left what it may leave. */
export const checkCut = (
  scenario: Scenario,
  point: FaultPoint,
  pass: number,
  whole: Played,
  cut: Played,
  crashes = 1,
): void => {
  expect(cut.passes.get(point), `objects came to ${point}`).toBeGreaterThan(pass);
  const found = inOrder(cut.aftermath);
  const may = allowed(scenario, point, pass, whole).map(inOrder);
  if (!may.includes(found)) throw new Error(`left ${found}\ninstead of ${may.join("\nor ")}`);
  expect(cut.timers, "timers").toEqual(whole.timers);
  expect(cut.ticks, "ticks").toBeLessThanOrEqual(whole.ticks + mostTicks * crashes + (scenario.waits?.[point] ?? 0));
  // Only the step that was cut is generated again (R3).
  expect(cut.generated, "steps").toBeLessThanOrEqual(whole.generated + crashes);
};
