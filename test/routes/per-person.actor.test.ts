import { runDurableObjectAlarm, runInDurableObject } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { afterEach, expect, onTestFinished, test, vi } from "vitest";
import * as z from "zod";
import { maxSubscribersPerPerson } from "../../src/agent/bounds.ts";
import { makingSpaceMs } from "../../src/protocol/limits.ts";
import { Space } from "../../src/protocol/space.ts";
import { unwrap } from "../../src/shared/errors.ts";
import { maxSocketsPerPerson } from "../../src/space/bounds.ts";
import { maxSpacesOfPerson, maxSpacesOfPersonPerDay, tellTimeoutMs } from "../../src/workspace/bounds.ts";
import { call, expectOk, ids, openHouse } from "../support/house.ts";
import { problemIn } from "./operations.ts";

/** What one person may take of a workspace. Secret keys are nobody's, bounded by the workspace alone. */
afterEach(() => void vi.useRealTimers());

const Made = z.object({ space: Space });
const create = (bearer: string, headers: Record<string, string> = {}) =>
  call("/v1/spaces", { bearer, body: { name: "Mine" }, headers });

test("[C12] one person makes so many spaces in a day, however many at once; others make theirs", async () => {
  vi.useFakeTimers({ toFake: ["Date"], now: Date.now() });
  const house = await openHouse();
  const [mona, adam] = [await house.person("Mona"), await house.person("Adam", "admin")];
  const first = await expectOk(Made, create(mona.token, { "idempotency-key": "first" }));
  const answers = await Promise.all(Array.from({ length: maxSpacesOfPersonPerDay + 4 }, () => create(mona.token)));
  const refused = answers.filter(({ ok }) => !ok);
  expect(refused).toHaveLength(5);
  for (const answer of refused) {
    const problem = await problemIn(answer);
    expect(problem).toMatchObject({ status: 409, code: "limit_reached" });
    expect(problem.detail).toContain(`${maxSpacesOfPersonPerDay} spaces in a day (maxSpacesOfPersonPerDay)`);
  }
  expect((await call("/v1/spaces", { bearer: mona.token })).status).toBe(200);
  // Whoever asks again with the key of a space that was made gets that one.
  expect(await expectOk(Made, create(mona.token, { "idempotency-key": "first" }))).toEqual(first);
  // A deleted space still counts as made.
  expect((await call(`/v1/spaces/${first.space.id}`, { bearer: mona.token, method: "DELETE" })).status).toBe(204);
  expect((await create(mona.token)).status).toBe(409);
  await expectOk(Made, create(adam.token));
  await expectOk(Made, call("/v1/spaces", { bearer: house.secretKey, as: mona.id, body: { name: "Hers" } }));
  vi.setSystemTime(Date.now() + 24 * 3_600_000 + 1000);
  await expectOk(Made, create(await house.token(mona.id)));
});

test("[C12] one person has made so many spaces in all, until one of them is deleted", async () => {
  const house = await openHouse();
  const mona = await house.person("Mona");
  const mine = await expectOk(Made, create(mona.token));
  const workspace: unknown = env.WORKSPACE.getByName(house.workspaceId);
  await runInDurableObject(workspace as DurableObjectStub, (_, { storage }) =>
    storage.sql.exec(
      `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?)
       INSERT INTO spaces (id, name, wake_policy, share_origin, created_by, created_at, cursor, deleted)
       SELECT 'spc_' || i, 'Old', 'addressed', 'none', ?, '2025-01-01T00:00:00.000Z', 1, 0 FROM n`,
      maxSpacesOfPerson - 1,
      mona.id,
    ),
  );
  const problem = await problemIn(await create(mona.token));
  expect(problem).toMatchObject({ status: 409, code: "limit_reached" });
  expect(problem.detail).toContain(`${maxSpacesOfPerson} spaces (maxSpacesOfPerson): delete one first`);
  const gone = await call(`/v1/spaces/${mine.space.id}`, { bearer: mona.token, method: "DELETE" });
  expect(gone.status).toBe(204);
  await vi.waitFor(async () => void (await expectOk(Made, create(mona.token))));
});

test("[C12] a space that was never made is asked for, and stands in its maker's way no more", async () => {
  vi.useFakeTimers({ toFake: ["Date"], now: Date.now() });
  const house = await openHouse();
  const mona = await house.person("Mona");
  const workspace = env.WORKSPACE.getByName(house.workspaceId);
  for (let count = 0; count < maxSpacesOfPersonPerDay; count += 1) {
    unwrap(await workspace.admitSpace(ids.mint("spc"), mona.id));
  }
  expect(await workspace.admitSpace(ids.mint("spc"), mona.id)).toMatchObject({ ok: false });
  vi.setSystemTime(Date.now() + makingSpaceMs + tellTimeoutMs);
  await vi.waitFor(async () => {
    await runDurableObjectAlarm(workspace as unknown as DurableObjectStub);
    unwrap(await workspace.admitSpace(ids.mint("spc"), mona.id));
  });
});

test("[C12] who made a space deletes it, and no other member does", async () => {
  const house = await openHouse();
  const [mona, adam] = [await house.person("Mona"), await house.person("Adam")];
  await house.space("Known", [mona, adam]);
  const members = [{ entityId: adam.id }];
  const { space } = await expectOk(Made, call("/v1/spaces", { bearer: mona.token, body: { name: "Mine", members } }));
  const remove = (bearer: string) => call(`/v1/spaces/${space.id}`, { bearer, method: "DELETE" });
  expect(await problemIn(await remove(adam.token))).toMatchObject({ status: 403, code: "forbidden" });
  expect((await remove(mona.token)).status).toBe(204);
  expect(await problemIn(await call(`/v1/spaces/${space.id}`, { bearer: adam.token }))).toMatchObject({ status: 404 });
});

/** Opens a stream, and closes it when the test is over. */
const upgrade = async (path: string, credentials: { token: string } | { bearer: string; as?: string }) => {
  const query = "token" in credentials ? `?token=${credentials.token}` : "";
  const response = await call(`${path}${query}`, {
    ...("token" in credentials ? {} : credentials),
    headers: { upgrade: "websocket" },
  });
  const { webSocket } = response;
  webSocket?.accept();
  onTestFinished(() => webSocket?.close());
  return response;
};

test("[C12] one person opens so many sockets in a space; others and keys open theirs", async () => {
  const house = await openHouse();
  const [mona, adam] = [await house.person("Mona"), await house.person("Adam")];
  const space = await house.space("Alpha", [mona, adam]);
  const path = `/v1/spaces/${space.id}/stream`;
  for (let count = 0; count < maxSocketsPerPerson; count += 1) {
    expect((await upgrade(path, { token: mona.token })).status).toBe(101);
  }
  const problem = await problemIn(await upgrade(path, { token: mona.token }));
  expect(problem).toMatchObject({ status: 503, code: "unavailable" });
  expect(problem.detail).toContain(`${maxSocketsPerPerson} sockets here, which is the most (maxSocketsPerPerson)`);
  expect((await upgrade(path, { token: adam.token })).status).toBe(101);
  expect((await upgrade(path, { bearer: house.secretKey, as: mona.id })).status).toBe(101);
});

test("[C12] one person watches so many blocks of an agent at once; others, and a key, watch too", async () => {
  const house = await openHouse();
  const [mona, adam] = [await house.person("Mona", "admin"), await house.person("Adam", "admin")];
  const agent = await house.agent({ name: "Analyst" });
  const at = `/v1/agents/${agent.id}/blocks`;
  await call(at, { bearer: house.secretKey, body: { label: "notes", type: "working", content: "a" } });
  const path = `${at}/notes/stream`;
  for (let count = 0; count < maxSubscribersPerPerson; count += 1) {
    expect((await upgrade(path, { token: mona.token })).status).toBe(101);
  }
  const problem = await problemIn(await upgrade(path, { token: mona.token }));
  expect(problem).toMatchObject({ status: 503, code: "unavailable" });
  expect(problem.detail).toContain("(maxSubscribersPerPerson): close some first");
  expect((await upgrade(path, { token: adam.token })).status).toBe(101);
  expect((await upgrade(path, { bearer: house.secretKey })).status).toBe(101);
});
