import { runInDurableObject } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { afterEach, expect, onTestFinished, test, vi } from "vitest";
import * as z from "zod";
import { Message } from "../../src/protocol/message.ts";
import { Space } from "../../src/protocol/space.ts";
import { Workspace } from "../../src/protocol/workspace.ts";
import { unwrap } from "../../src/shared/errors.ts";
import { armFault, disarmFaults } from "../../src/shared/fault.ts";
import { openBoth } from "../agent/compartment.ts";
import { agentStub, ended, scripted, told } from "../agent/fixture.ts";
import { call, expectOk, type House, openHouse } from "../support/house.ts";
import { rowsWith } from "../support/rows.ts";
import { answer, step, text } from "../support/scripted-model.ts";
import { problemIn } from "./operations.ts";

/** Messages that are older than their space keeps them. */
afterEach(disarmFaults);

const dayMs = 24 * 60 * 60_000;

/** Runs `act` as if three days ago. */
const threeDaysAgo = async <T>(act: () => Promise<T>): Promise<T> => {
  vi.useFakeTimers({ toFake: ["Date"], now: Date.now() - 3 * dayMs });
  onTestFinished(() => void vi.useRealTimers());
  const done = await act();
  vi.useRealTimers();
  return done;
};

test.each(["consciousness", "timeline"] as const)(
  "[L18] what is too old leaves every row of spaces, agents and compartments (%s)",
  async (continuity) => {
    const scene = await threeDaysAgo(async () => {
      const both = await openBoth({ continuity });
      scripted([...answer(both.space.id, "A fine orchard of medlars."), step(text("Noted the damsons."))]);
      await both.space.post(both.husam, "I like the quinces of the old orchard");
      await ended(both.house.workspaceId, both.analyst, 1);
      await both.secret.ask("The persimmons are for the board alone", 1);
      return both;
    });
    const { space, secret, husam, house, analyst } = scene;
    scripted(() => step(text("Well.")));
    await space.post(husam, "I like the apricots of the south");
    const objects = [
      ...[agentStub(analyst), agentStub(secret.mind), env.WORKSPACE.getByName(house.workspaceId)],
      ...[env.SPACE.getByName(space.id), env.SPACE.getByName(secret.space.id)],
    ];
    expect((await rowsWith(objects[0], "quinces")).length).toBeGreaterThan(0);
    for (const { id } of [space, secret.space])
      unwrap(await env.SPACE.getByName(id).update(house.key, { retentionDays: 1 }));
    await vi.waitFor(
      async () => {
        for (const words of ["quinces", "medlars", "persimmons"]) {
          for (const object of objects) expect(await rowsWith(object, words)).toEqual([]);
        }
      },
      { timeout: 15_000 },
    );
    await told(space.id);
    expect((await rowsWith(objects[0], "apricots of the south")).length).toBeGreaterThan(0);
    const { items } = unwrap(await env.SPACE.getByName(space.id).list(house.key, { limit: 10 }));
    expect(items.filter(({ deleted }) => deleted?.expired)).toHaveLength(2);
    expect(items.at(-1)?.text).toBe("I like the apricots of the south");
  },
);

const set = (house: House, path: string, retentionDays: unknown, bearer = house.secretKey) =>
  call(path, { method: "PATCH", bearer, body: { retentionDays } });
const messagesIn = (house: House, { id }: { id: string }) =>
  expectOk(
    z.object({ items: z.array(Message) }),
    call(`/v1/spaces/${id}/messages?limit=100`, { bearer: house.secretKey }),
  );

test("[L18] a space that crashes amid what is too old goes on, and deletes each once", async () => {
  const house = await openHouse();
  const husam = await house.person("Husam");
  const agent = await house.agent({ name: "Robo" });
  const space = await house.space("Lab", [husam, agent], { wakePolicy: "addressed" });
  await threeDaysAgo(async () => {
    for (let index = 0; index < 120; index += 1) await house.say(space.id, husam, `Number ${index}`);
  });
  const crashed = armFault("space.after-append", 1);
  await (await set(house, `/v1/spaces/${space.id}`, 1)).body?.cancel();
  await crashed;
  const stub: unknown = env.SPACE.getByName(space.id);
  const events = () =>
    runInDurableObject(stub as DurableObjectStub, (_, { storage }) =>
      storage.sql.exec("SELECT type, count(*) AS count FROM log WHERE type = 'message.deleted'").toArray(),
    );
  await vi.waitFor(async () => expect(await events()).toMatchObject([{ count: 120 }]), { timeout: 20_000 });
  const { items } = await messagesIn(house, space);
  const said = items.filter(({ sender }) => sender.id === husam.id);
  expect(said.filter(({ deleted, text: words }) => !deleted?.expired || words !== undefined)).toEqual([]);
});

test("[L18] a workspace's retentionDays are its spaces', old and new, until they say otherwise", async () => {
  const house = await openHouse();
  const husam = await house.person("Husam", "admin");
  const [old, own] = [await house.space("Old", [husam]), await house.space("Own", [husam], { retentionDays: 30 })];
  await threeDaysAgo(async () => {
    for (const { id } of [old, own]) await house.say(id, husam, "Three days old");
  });
  const patched = await expectOk(z.object({ workspace: Workspace }), set(house, "/v1/workspace", 2));
  expect(patched.workspace.retentionDays).toBe(2);
  await vi.waitFor(async () => expect((await messagesIn(house, old)).items[0]?.deleted?.expired).toBe(true));
  expect((await messagesIn(house, own)).items[0]?.text).toBe("Three days old");
  const shown = async ({ id }: { id: string }) =>
    (await expectOk(z.object({ space: Space }), call(`/v1/spaces/${id}`, { bearer: house.secretKey }))).space;
  const fresh = await house.space("Fresh", [husam]);
  await vi.waitFor(async () => expect(await shown(fresh)).toMatchObject({ workspaceRetentionDays: 2 }));
  await vi.waitFor(async () =>
    expect(await shown(own)).toMatchObject({ retentionDays: 30, workspaceRetentionDays: 2 }),
  );
  await (await set(house, `/v1/spaces/${own.id}`, null)).body?.cancel();
  await vi.waitFor(async () => expect((await messagesIn(house, own)).items[0]?.deleted?.expired).toBe(true));
  const { workspace } = await expectOk(z.object({ workspace: Workspace }), set(house, "/v1/workspace", null));
  expect(workspace.retentionDays).toBeUndefined();
});

test("[L18] [S4] days that are none are refused, and only admins and keys set them", async () => {
  const house = await openHouse();
  const husam = await house.person("Husam");
  const space = await house.space("Lab", [husam]);
  for (const path of [`/v1/spaces/${space.id}`, "/v1/workspace"]) {
    for (const bad of [0, -1, 1.5, 3651, "7", [7]]) {
      expect(await problemIn(await set(house, path, bad))).toMatchObject({ code: "invalid_request" });
    }
    expect(await problemIn(await set(house, path, 7, husam.token))).toMatchObject({ code: "forbidden" });
  }
});
