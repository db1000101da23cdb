import { runInDurableObject } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { afterEach, expect, inject, test, vi } from "vitest";
import * as z from "zod";
import { standard } from "../../src/auth/webhooks/standard.ts";
import { erasedName } from "../../src/protocol/entity.ts";
import { armFault, disarmFaults } from "../../src/shared/fault.ts";
import { adminKey, call, type House, openHouse } from "../support/house.ts";
import { SeenRequests } from "../support/remote.ts";
import { problemIn } from "./operations.ts";

/** The audit log, told to a server of the workspace. */
afterEach(() => {
  disarmFaults();
  vi.useRealTimers();
});

const secret = `whsec_${btoa("a secret of twenty-four b")}`;
const Told = z.object({
  type: z.literal("audit.entry"),
  data: z.object({ action: z.string(), workspaceId: z.string() }),
});

const seenAt = async (path: string) =>
  SeenRequests.parse(await (await fetch(`${inject("remote")}/requests?path=${encodeURIComponent(path)}`)).json());
const actionsAt = async (path: string) =>
  (await seenAt(path)).map(({ body }) => Told.parse(JSON.parse(body)).data.action);

const set = (house: House, auditWebhook: unknown, bearer = house.secretKey) =>
  call("/v1/workspace", { method: "PATCH", bearer, body: { auditWebhook } });

const open = async () => {
  const house = await openHouse();
  const path = `/echo/${crypto.randomUUID()}`;
  await call("/v1/workspace/secrets/AUDIT", { method: "PUT", bearer: house.secretKey, body: { value: secret } });
  expect((await set(house, { url: `${inject("remote")}${path}`, secret: "AUDIT" })).status).toBe(200);
  const act = () =>
    call("/v1/workspace/secrets/OTHER", { method: "PUT", bearer: house.secretKey, body: { value: "x" } });
  return { house, path, act };
};

test("[L3] each entry comes to the workspace's server once, in order, signed", async () => {
  const { house, path, act } = await open();
  for (let count = 0; count < 3; count += 1) await act();
  await vi.waitFor(async () =>
    expect(await actionsAt(path)).toEqual(["workspace.changed", "secret.put", "secret.put", "secret.put"]),
  );
  for (const { headers, body } of await seenAt(path)) {
    const signed = { headers: new Headers(headers as Record<string, string>), body: new TextEncoder().encode(body) };
    expect(() => standard.verify(signed as never, [secret], undefined as never, Date.now())).not.toThrow();
    expect(body).not.toContain("whsec");
  }
  const list = await (await call("/v1/workspace", { bearer: house.secretKey })).json();
  expect(list).toMatchObject({ workspace: { auditWebhook: { secret: "AUDIT" } } });
  expect((await set(house, null)).status).toBe(200);
});

test("[L3] an entry whose telling crashed comes again under the same id, and none is left out", async () => {
  const { path, act } = await open();
  await vi.waitFor(async () => expect(await seenAt(path)).toHaveLength(1));
  const crashed = armFault("workspace.before-tell");
  await act().catch(() => undefined);
  await crashed;
  await vi.waitFor(async () => expect((await actionsAt(path)).at(-1)).toBe("secret.put"), { timeout: 10_000 });
  const ids = (await seenAt(path)).map(({ headers }) =>
    new Headers(headers as Record<string, string>).get("webhook-id"),
  );
  expect(new Set(ids).size).toBeLessThanOrEqual(ids.length);
  expect(new Set(ids).size).toBe(2);
});

test("[L6] the webhook rests while the workspace is suspended, and goes on once it is resumed", async () => {
  const { house, path } = await open();
  await vi.waitFor(async () => expect(await seenAt(path)).toHaveLength(1));
  const operate = (act: string, body?: unknown) =>
    call(`/v1/operator/workspaces/${house.workspaceId}/${act}`, { method: "POST", bearer: adminKey, body });
  await operate("suspend", { reason: "Unpaid" });
  await call("/v1/workspace/secrets/AUDIT2", { method: "DELETE", bearer: house.secretKey });
  expect(await seenAt(path)).toHaveLength(1);
  await operate("resume");
  await vi.waitFor(async () =>
    expect(await actionsAt(path)).toEqual(["workspace.changed", "workspace.suspended", "workspace.resumed"]),
  );
});

test("[L16] the webhook ends with its workspace: nobody waits for it, and its address is gone", async () => {
  const { house, path } = await open();
  await vi.waitFor(async () => expect(await seenAt(path)).toHaveLength(1));
  const body = { kind: "workspace", id: house.workspaceId };
  await call("/v1/erasures", { bearer: house.secretKey, body });
  const rows = () =>
    runInDurableObject(env.WORKSPACE.getByName(house.workspaceId) as unknown as DurableObjectStub, (_, { storage }) =>
      ["jobs", "workspace"].flatMap((table) => storage.sql.exec(`select * from ${table}`).toArray()),
    );
  await vi.waitFor(async () => expect(await rows()).toMatchObject([{ name: erasedName, audit_webhook: null }]));
});

test("[L3] only a secret key sets it, to what may be asked, with a secret that is there", async () => {
  const house = await openHouse();
  const boss = await house.person("Boss", "admin");
  const url = `${inject("remote")}/echo`;
  const codeOf = async (auditWebhook: unknown, bearer?: string) =>
    (await problemIn(await set(house, auditWebhook, bearer))).code;
  expect(await codeOf({ url, secret: "AUDIT" })).toBe("unknown_reference");
  expect(await codeOf(null, boss.token)).toBe("forbidden");
  for (const bad of ["http://169.254.169.254/x", "nonsense", "https://user:pass@a.example/"])
    expect(await codeOf({ url: bad, secret: "AUDIT" })).toBe("invalid_request");
});
