import { runDurableObjectAlarm, runInDurableObject } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { inject, vi } from "vitest";
import * as z from "zod";
import { endpointSecretName, seal } from "../../src/auth/sealing.ts";
import { newHookSecret } from "../../src/auth/webhooks/schemes.ts";
import type { EndpointType } from "../../src/protocol/endpoint.ts";
import type { EntityRef } from "../../src/protocol/rpc.ts";
import { unwrap } from "../../src/shared/errors.ts";
import { compartmentId } from "../../src/shared/ids.ts";
import * as timeouts from "../../src/shared/timeouts.ts";
import { requestsTo } from "../agent/calls/scene.ts";
import { type AgentSettings, ids, openHouse } from "../agent/fixture.ts";
import { installModel, type ScriptedModel } from "../support/scripted-model.ts";
import { type Aftermath, aftermathOf, type Space } from "./aftermath.ts";
import { LineOnlooker } from "./line-onlooker.ts";
import { Onlooker } from "./onlooker.ts";

/**
 * A house that is left to itself after a crash: time passes and the platform's alarms go off; nobody calls.
 *
 * Invariants
 * 1. Time stands still while anything moves or pauses: a crash alone is followed by waiting, not a slow computer.
 * 2. It is at rest when no timer or guard is due within a minute; what is due later has a reason (`timers`).
 * 3. Whoever lost its connection comes back only once all is at rest.
 * 4. Where anything is left to do, something of it is due within 30 s.
 */

/**
 * Years ahead of the platform's clock, so that alarms go off in ticks alone. Otherwise the alarms of an earlier house
 * would reach fault points while another is played.
 */
const beganAt = Date.UTC(2031, 0, 1, 9);
const tickMs = 26_000;
const soonMs = 60_000;
/** Within this time, work that a crash cut off is taken up again by itself (R1). */
const wakeWithinMs = 30_000;
/** Looks in a row at which nothing had moved, before time goes on. */
const stillLooks = 10;
const lookEveryMs = 5;
const patienceMs = 15_000;
/** They close sockets whose token expires, and tell what was used: nothing is under way because of them. */
const lasting = new Set(["sockets", "lines", "usage"]);

type TimerRow = { name: string; due_at: number };
type Row = { object: string; name: string; dueAt: number };

const stubIn = (namespace: unknown, id: string): DurableObjectStub =>
  (namespace as DurableObjectNamespace).getByName(id);

const rowsOf = <T extends Record<string, SqlStorageValue>>(stub: DurableObjectStub, query: string): Promise<T[]> =>
  runInDurableObject(stub, (_, state) => state.storage.sql.exec<T>(query).toArray());

/** What an endpoint's server handles who remembers ids. */
const handledAt = async (path: string): Promise<string[]> => {
  const posts = (await requestsTo(path)).filter(({ method }) => method === "POST");
  const byId = new Map(posts.map(({ body }) => [Event.parse(JSON.parse(body)).id, body]));
  return [...byId.values()].map((body) => {
    const { type, data } = Event.parse(JSON.parse(body));
    return `${type} ${data.message?.text ?? data.outcome ?? ""}`.trim();
  });
};
const Event = z.object({
  id: z.string(),
  type: z.string(),
  data: z.looseObject({
    message: z.looseObject({ text: z.string().optional() }).optional(),
    outcome: z.string().optional(),
  }),
});

/** An object that nobody has made yet has none. */
const timersOf = (stub: DurableObjectStub): Promise<TimerRow[]> =>
  runInDurableObject(stub, (_, { storage: { sql } }) => {
    const isMade = sql.exec("SELECT 1 FROM sqlite_master WHERE name = 'timers'").toArray().length > 0;
    return isMade ? sql.exec<TimerRow>("SELECT name, due_at FROM timers ORDER BY name").toArray() : [];
  });

export type Stage = Awaited<ReturnType<typeof openStage>>;

/** An empty house, whose tools' server is asked at `path`. */
export const openStage = async () => {
  vi.setSystemTime(beganAt);
  const house = await openHouse();
  const { workspaceId } = house;
  const path = `/echo/${crypto.randomUUID()}`;
  const agents: EntityRef[] = [];
  const spaces: Space[] = [];
  const onlookers: Onlooker[] = [];
  const lines: LineOnlooker[] = [];
  const endpoints: string[] = [];
  const models: ScriptedModel[] = [];
  const objects: { name: string; stub: () => DurableObjectStub }[] = [
    { name: "workspace", stub: () => stubIn(env.WORKSPACE, workspaceId) },
  ];
  let uninstall = (): void => undefined;

  /** Until when somebody pauses, on the computer's own clock, which goes on while the house's stands still. */
  let pausedUntil = 0;
  const { pause } = timeouts;
  const pauses = vi.spyOn(timeouts, "pause").mockImplementation((milliseconds, signal) => {
    pausedUntil = Math.max(pausedUntil, performance.now() + milliseconds);
    return pause(milliseconds, signal);
  });

  const look = async (): Promise<Row[]> => {
    const found: Row[] = [];
    for (const { name: object, stub } of objects) {
      const rows = await timersOf(stub());
      for (const { name, due_at: dueAt } of rows) found.push({ object, name, dueAt });
      // A guard has no row: it is the alarm that rings before any row is due.
      const alarm = await runInDurableObject(stub(), (_, { storage }) => storage.getAlarm());
      if (alarm !== null && rows.every((row) => row.due_at > alarm))
        found.push({ object, name: "guard", dueAt: alarm });
    }
    return found;
  };
  const isSoon = ({ name, dueAt }: Row): boolean => !lasting.has(name) && dueAt <= Date.now() + soonMs;
  const signOf = (rows: Row[]): string =>
    JSON.stringify([
      rows.map(({ object, name }) => `${object}: ${name}`),
      models.map(({ calls }) => calls.length),
      [...onlookers, ...lines].map(({ frames }) => frames),
    ]);
  let ticks = 0;
  const late: string[] = [];
  const tick = async (rows: Row[]): Promise<void> => {
    ticks += 1;
    const soon = rows.filter(isSoon).toSorted((one, other) => one.dueAt - other.dueAt);
    const waitMs = (soon[0]?.dueAt ?? 0) - Date.now();
    if (waitMs > wakeWithinMs) late.push(`nothing is due before ${soon[0]?.object}: ${soon[0]?.name}, in ${waitMs} ms`);
    vi.setSystemTime(Date.now() + tickMs);
    for (const { stub } of objects) await runDurableObjectAlarm(stub()).catch(() => false);
  };

  /** Leaves the house to itself until `condition` holds; by default, until it is at rest. */
  const until = async (condition?: () => Promise<boolean>): Promise<void> => {
    let sign = "";
    let still = 0;
    await vi.waitFor(
      async () => {
        if (condition && (await condition())) return;
        const rows = await look().catch(() => undefined);
        const now = rows ? signOf(rows) : "";
        still = now === sign && performance.now() > pausedUntil ? still + 1 : 0;
        sign = now;
        if (!condition && still > 0 && rows && !rows.some(isSoon)) return;
        if (still > stillLooks) {
          still = 0;
          await tick(rows ?? []);
        }
        throw new Error(`after ${ticks} ticks: ${now}`);
      },
      { timeout: patienceMs, interval: lookEveryMs },
    );
  };

  const comeBack = async (): Promise<void> => {
    for (const onlooker of [...onlookers, ...lines]) {
      await vi.waitFor(
        async () => {
          await onlooker.connect();
          if (!onlooker.welcomed) throw new Error("no welcome");
        },
        { timeout: patienceMs, interval: lookEveryMs },
      );
    }
  };

  return {
    house,
    workspaceId,
    path,
    agents,
    until,
    comeBack,
    /** Whose models say what follows from what they read. Each is installed for the agents that name it. */
    play: (model: ScriptedModel, byName: { [name: string]: ScriptedModel } = {}): void => {
      uninstall();
      models.push(model, ...Object.values(byName));
      uninstall = installModel(({ name }) => byName[name ?? ""] ?? model);
    },
    agent: async (settings: AgentSettings): Promise<EntityRef> => {
      const agent = await house.agent(settings);
      agents.push(agent);
      objects.push({ name: settings.name, stub: () => stubIn(env.AGENT, agent.id) });
      return agent;
    },
    /** A space that its first member watches. Of a confidential one each agent has a compartment, which begins with the first message. */
    space: async (name: string, members: EntityRef[], confidential = false): Promise<Space> => {
      const space = await house.space(name, members, confidential);
      spaces.push(space);
      objects.push({ name, stub: () => stubIn(env.SPACE, space.id) });
      for (const agent of confidential ? members.filter(({ type }) => type === "agent") : []) {
        const mind = { ...agent, id: compartmentId(ids, agent.id, space.id), name: `${agent.name} in ${name}` };
        agents.push(mind);
        objects.push({ name: mind.name, stub: () => stubIn(env.AGENT, mind.id) });
      }
      const [first] = members;
      if (!first) throw new Error(`${name} has no members`);
      const onlooker = new Onlooker(space.stub, { ...space.as(first), expiresAt: Date.now() + 24 * 60 * 60_000 });
      onlookers.push(onlooker);
      return space;
    },
    /** A person who looks. */
    line: ({ id, name }: EntityRef): void => {
      objects.push({ name: `${name}'s line`, stub: () => stubIn(env.PERSON, id) });
      const principal = { kind: "entity", workspaceId, entityId: id, admin: false } as const;
      const expiresAt = Date.now() + 24 * 60 * 60_000;
      lines.push(new LineOnlooker(() => env.PERSON.getByName(id), { ...principal, expiresAt }));
    },
    /** An endpoint whose server takes all that it is sent. Spaces that come later tell it from the first event. */
    endpoint: async (types: EndpointType[]): Promise<void> => {
      const id = ids.mint("ep");
      const url = `${inject("remote")}/received/${id}`;
      await fetch(url, { method: "PUT", body: "{}" });
      const sealed = await seal(env, workspaceId, endpointSecretName(id), newHookSecret("standard"));
      const workspace = env.WORKSPACE.getByName(workspaceId);
      unwrap(await workspace.addEndpoint({ id, url, types, sealed, batch: false }, { id: "key" }));
      endpoints.push(`/received/${id}`);
      objects.push({ name: "endpoint", stub: () => stubIn(env.ENDPOINT, id) });
    },
    /** The state of everything at rest. `faults` holds what no client may see. */
    aftermath: async (): Promise<{
      aftermath: Aftermath;
      timers: string[];
      faults: string[];
      ticks: number;
      generated: number;
    }> => {
      await until();
      await comeBack();
      const heads = await Promise.all(
        spaces.map(async (space) => {
          const stub = stubIn(env.SPACE, space.id);
          const [row] = await rowsOf<{ head: number }>(stub, "SELECT max(seq) AS head FROM log");
          return row?.head ?? 0;
        }),
      );
      const unfinished = (): string[] =>
        onlookers.flatMap((onlooker, index) => [
          ...(onlooker.cursor === heads[index] ? [] : [`a client is at ${onlooker.cursor} of ${heads[index]}`]),
          ...onlooker.underWay.map((id) => `still shown as under way: ${id}`),
        ]);
      await vi
        .waitFor(
          () => {
            if (unfinished().length > 0) throw new Error(unfinished().join());
          },
          { timeout: 2000, interval: lookEveryMs },
        )
        .catch(() => undefined);
      const withLedgers = await Promise.all(
        agents.map(async (agent) => {
          // A run's reservation is settled once it has ended, and stored with the next one. A lease, which a
          // compartment named, stays booked where that was cut: it may have been billed.
          const [row] = await rowsOf<{ reserved: number }>(
            stubIn(env.AGENT, agent.id),
            `SELECT count(*) AS reserved FROM ledger, json_each(reserved) AS step
             LEFT JOIN runs ON runs.ordinal = CAST(step.key AS INTEGER)
             WHERE runs.completed_at IS NULL AND step.key NOT LIKE '% %'`,
          );
          return { ...agent, reserved: row?.reserved ?? 0 };
        }),
      );
      const effects = (await requestsTo(path)).length;
      const handled = await Promise.all(endpoints.map(handledAt));
      // Usage is told a minute later: whether that timer is left depends on how long all lasted.
      const told = (await look()).filter(({ name }) => name !== "usage");
      const timers = told.map(({ object, name }) => `${object}: ${name}`);
      return {
        aftermath: await aftermathOf(workspaceId, {
          ...{ spaces, agents: withLedgers, effects, endpoints: handled },
          lines: lines.map((line) => line.shows),
        }),
        timers,
        ticks,
        generated: models.reduce((sum, { calls }) => sum + calls.length, 0),
        faults: [...[...onlookers, ...lines].flatMap(({ faults }) => faults), ...unfinished(), ...late],
      };
    },
    close: async (): Promise<void> => {
      for (const { id } of agents) await env.AGENT.getByName(id).remove(workspaceId);
      uninstall();
      pauses.mockRestore();
    },
  };
};
