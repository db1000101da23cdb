import { runDurableObjectAlarm } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { afterAll, afterEach, beforeEach, expect, onTestFinished, vi } from "vitest";
import type { CallOptions } from "../../../src/models/language-model.ts";
import type { EntityRef } from "../../../src/protocol/rpc.ts";
import type { Run } from "../../../src/protocol/run.ts";
import { unwrap } from "../../../src/shared/errors.ts";
import { disarmFaults } from "../../../src/shared/fault.ts";
import { createGate } from "../../support/gate.ts";
import { call, installModel, type ScriptedStep, scriptedModel, step, text } from "../../support/scripted-model.ts";
import { type AgentSettings, agentStub, openHouse, runsOf } from "../fixture.ts";

/** Agents that never stop of themselves, and the table of where they were stopped. Time moves only where a test says. */
export const bound = 6;
/** What every step of a scripted model is billed. */
const tokensAStep = 110;

type Row = { scenario: string; limit: number; runs: number[]; tokens: number[]; messages: number };
const table: Row[] = [];

export const eachTest = (): void => {
  beforeEach(() => void vi.useFakeTimers({ toFake: ["Date"], now: new Date("2031-03-03T09:00:00Z") }));
  afterEach(() => {
    disarmFaults();
    vi.useRealTimers();
  });
  afterAll(() => {
    const lines = table.map(({ scenario, limit, runs, messages, tokens }) =>
      [scenario.padEnd(66), String(runs.length).padStart(6), String(limit).padStart(5), runs.join(" ").padStart(16)]
        .concat(String(messages).padStart(8), tokens.join(" "))
        .join("  "),
    );
    const head = `${"a root wakes each agent at most maxWakesPerRoot times".padEnd(66)}  agents  bound    runs of each  messages  tokens of each`;
    console.log([head, ...lines].join("\n"));
  });
};

/** What an agent does in a step of its runs. */
export type Turn = (call: CallOptions) => ScriptedStep | Promise<ScriptedStep>;

const textOf = (message: CallOptions["prompt"][number]): string =>
  message.role === "user" ? message.content.map((part) => (part.type === "text" ? part.text : "")).join("") : "";

/** How many steps the run that asks has made. */
const stepsMade = ({ prompt }: CallOptions): number => {
  const begun = prompt.findLastIndex((message) => textOf(message).includes("\nACTIVE SPACE: "));
  return prompt.slice(begun + 1).filter(({ role }) => role === "assistant").length;
};

/** What a run was begun by, as its model reads it. */
export const told = ({ prompt }: CallOptions): string => prompt.map(textOf).findLast((words) => words !== "") ?? "";

export const say = (spaceId: string, words = "And you?"): ScriptedStep =>
  step(call("enter_space", { spaceId }), call("send_message", { text: words }));

/** All of them answer together: nobody's next run begins before everybody has come to theirs. */
export const inStep = (size: number, betweenRounds: () => void = () => undefined) => {
  let round = createGate();
  let arrived = 0;
  return async (): Promise<void> => {
    const mine = round;
    arrived += 1;
    if (arrived === size) {
      arrived = 0;
      round = createGate();
      betweenRounds();
      mine.open();
    }
    await mine.opened;
  };
};

export const passSeconds = (seconds: number): void => void vi.setSystemTime(Date.now() + seconds * 1000);

export type Talkers = Awaited<ReturnType<typeof talkers>>;

/** So many agents of these settings, whose runs go as `opens` says. */
export const talkers = async (count: number, settings: Omit<Partial<AgentSettings>, "name"> = {}) => {
  const house = await openHouse();
  const people = [await house.person("Husam"), await house.person("Sara")] as const;
  const turns = new Map<string, Turn[]>();
  const models = new Map(
    Array.from({ length: count }, (_, index) => {
      const name = `talker-${index}`;
      const model = scriptedModel((options) => {
        const turn = turns.get(name)?.[stepsMade(options)];
        return turn ? turn(options) : step(text("Done."));
      });
      return [name, model] as const;
    }),
  );
  onTestFinished(
    installModel(({ name }) => {
      const model = models.get(name ?? "");
      if (!model) throw new Error(`no model ${name}`);
      return model;
    }),
  );
  const agents: EntityRef[] = [];
  for (const name of models.keys()) {
    const model = { provider: "rehearsal" as const, name, deltasPerSecond: 0 };
    const limits = { maxWakesPerRoot: bound, ...settings.limits };
    agents.push(await house.agent({ ...settings, name, model, limits }));
  }
  const { workspaceId } = house;
  const runs = (index: number): Promise<Run[]> => {
    const agent = agents[index];
    if (!agent) throw new Error(`no agent ${index}`);
    return runsOf(workspaceId, agent);
  };
  const counts = async (): Promise<number[]> => Promise.all(agents.map(async (_, index) => (await runs(index)).length));
  /** Every alarm that is set goes off. */
  const ring = async (): Promise<void> => {
    for (const agent of agents) await runDurableObjectAlarm(agentStub(agent)).catch(() => false);
  };
  /** Waits until each agent has had so many runs, and nobody is at work. */
  const stopsAt = async (expected: number[]): Promise<void> =>
    void (await vi.waitFor(
      async () => {
        const all = await Promise.all(agents.map((_, index) => runs(index)));
        if (all.flat().some(({ status }) => status === "running")) throw new Error("at work");
        expect(all.map((each) => each.length)).toEqual(expected);
      },
      { timeout: 15_000, interval: 10 },
    ));
  const tokens = async (): Promise<number[]> =>
    Promise.all(
      agents.map(
        async ({ id }) => unwrap(await env.AGENT.getByName(id).describe(workspaceId)).activity?.tokensToday ?? 0,
      ),
    );
  return {
    ...{ house, people, agents, workspaceId, models, runs, counts, ring, stopsAt, tokens },
    /** The steps of each of its runs; after them the run ends. */
    opens: (index: number, ...steps: Turn[]): void => void turns.set(`talker-${index}`, steps),
    everyone: (steps: (index: number) => Turn[]): void => {
      for (const index of agents.keys()) turns.set(`talker-${index}`, steps(index));
    },
    /** How often each root has woken each agent. */
    wakes: async (index: number): Promise<number[]> => {
      const roots = (await runs(index)).flatMap((run) => run.roots);
      return [...new Set(roots)].map((root) => roots.filter((each) => each === root).length);
    },
    /**
     * Waits for exactly these runs, messages and booked tokens, and that an hour brings no more; writes them down. Of
     * each agent `steps` model calls were billed.
     */
    end: async (
      scenario: string,
      expected: { runs: number[]; steps: number[]; messages: number },
      messages: () => Promise<number>,
    ): Promise<void> => {
      await stopsAt(expected.runs);
      await vi.waitFor(async () => expect(await messages()).toBe(expected.messages));
      const billed = expected.steps.map((steps) => steps * tokensAStep);
      expect(await tokens()).toEqual(billed);
      passSeconds(3600);
      await ring();
      await stopsAt(expected.runs);
      expect(await messages()).toBe(expected.messages);
      table.push({
        scenario,
        limit: settings.limits?.maxWakesPerRoot ?? bound,
        runs: expected.runs,
        messages: expected.messages,
        tokens: billed,
      });
    },
  };
};
