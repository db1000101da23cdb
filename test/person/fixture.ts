import { runDurableObjectAlarm, runInDurableObject } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { inject, onTestFinished, vi } from "vitest";
import * as z from "zod";
import type { Person } from "../../src/person/person.ts";
import { Device, Settings } from "../../src/protocol/notifications.ts";
import { type Call, call, expectOk, openHouse, type Participant } from "../support/house.ts";
import { CamePushes } from "../support/push-service.ts";

/** People with devices, whose push service a test controls, in another process. */
const Keys = z.object({ p256dh: z.string(), auth: z.string() });

/** A browser's subscription at the push service. */
export const openPushService = async () => {
  const url = `${inject("remote")}/push/${crypto.randomUUID()}`;
  const answer = async (plan: Record<string, unknown> = {}) =>
    Keys.parse(await (await fetch(url, { method: "PUT", body: JSON.stringify(plan) })).json());
  const keys = await answer();
  const came = async () => CamePushes.parse(await (await fetch(url)).json());
  return {
    ...{ subscription: { endpoint: url, keys }, answer, came },
    /** What its page was told, in order: what was answered with a success. */
    told: async () => (await came()).filter(({ status }) => status < 300).map(({ payload }) => payload),
  };
};

export const stubOf = (person: { id: string }): DurableObjectStub<Person> => {
  const namespace: unknown = env.PERSON;
  return (namespace as DurableObjectNamespace<Person>).getByName(person.id);
};

export const rowsOf = (person: { id: string }, ...tables: string[]) =>
  runInDurableObject(stubOf(person), (_, { storage }) =>
    tables.flatMap((table) => storage.sql.exec(`SELECT * FROM ${table}`).toArray()),
  );

export const addDevice = async (by: Call, body: unknown): Promise<Device> =>
  expectOk(Device, call("/v1/me/devices", { ...by, method: "POST", body }));

export const devicesOf = async (by: Call): Promise<Device[]> =>
  (await expectOk(z.object({ devices: z.array(Device) }), call("/v1/me/devices", by))).devices;

export const change = (by: Call, body: unknown): Promise<Settings> =>
  expectOk(Settings, call("/v1/me/settings", { ...by, method: "PATCH", body }));

/** Lets time pass, and rings the person's alarm. */
export const ring = async (person: { id: string }, milliseconds: number): Promise<void> => {
  vi.useFakeTimers({ toFake: ["Date"], now: Date.now() + milliseconds });
  await runDurableObjectAlarm(stubOf(person));
};

/** Ann is away with a device; Ben talks to her in a hall of three. */
export const scene = async () => {
  const house = await openHouse();
  const [ann, ben, cat] = [await house.person("Ann"), await house.person("Ben"), await house.person("Cat")];
  const hall = await house.space("Hall", [ann, ben, cat]);
  const service = await openPushService();
  const device = await addDevice({ bearer: ann.token }, { name: "Phone", ...service.subscription });
  await followed(ann, [hall.id]);
  onTestFinished(() => void vi.useRealTimers());
  return { house, ann, ben, cat, hall, service, device };
};

/** These spaces tell the person what concerns them. */
export const followed = (person: Participant, spaceIds: string[], follows: string | null = "mine"): Promise<void> =>
  vi.waitFor(async () => {
    for (const id of spaceIds) {
      const namespace: unknown = env.SPACE;
      const stub = (namespace as DurableObjectNamespace).getByName(id);
      const row = await runInDurableObject(stub, (_, { storage }) =>
        storage.sql.exec("SELECT follows FROM members WHERE entity_id = ?", person.id).one(),
      );
      if (row.follows !== follows) throw new Error(`${id} tells ${String(row.follows)}, not ${follows}`);
    }
  });
