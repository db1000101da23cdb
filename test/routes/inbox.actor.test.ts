import { expect, test } from "vitest";
import * as z from "zod";
import { maxInboxEvents } from "../../src/agent/bounds.ts";
import { InboxItem } from "../../src/protocol/run.ts";
import { fillInbox, rowsIn } from "../agent/fixture.ts";
import { call, expectOk, ids, openHouse } from "../support/house.ts";
import { problemIn } from "./operations.ts";

const Page = z.object({ items: z.array(InboxItem), nextCursor: z.string().nullable() });

/** An agent with events of a service that ask for no run. */
const openAgent = async () => {
  const house = await openHouse();
  const { id } = await house.agent({ name: "Analyst" });
  const bearer = house.secretKey;
  const at = `/v1/agents/${id}`;
  const data = '{"type":"service","serviceName":"s","payload":1,"root":{"id":"r","kind":"service"}}';
  const sql = (statement: string, ...values: (string | number)[]) => rowsIn({ id }, statement, ...values);
  return {
    ...{ house, at, sql },
    put: async (status: "pending" | "dead"): Promise<string> => {
      const eventId = ids.mintOwned("evt", id);
      await sql(
        `INSERT INTO inbox (event_id, type, data, root_id, wakes, attempts, status, received_at)
         VALUES (?, 'service', '${data}', 'r', 0, 5, '${status}', 0)`,
        eventId,
      );
      return eventId;
    },
    fill: () => fillInbox({ id }, maxInboxEvents),
    page: (query = "") => expectOk(Page, call(`${at}/inbox${query}`, { bearer })),
    trigger: (key: string) =>
      call(`${at}/trigger`, {
        bearer,
        body: { serviceName: "jira", payload: 1 },
        headers: { "idempotency-key": key },
      }),
    retryAll: () => call(`${at}/dead-events/retry`, { method: "POST", bearer }),
    discard: (eventId: string) => call(`${at}/inbox/${eventId}`, { method: "DELETE", bearer }),
  };
};

test("an inbox is paged through, and filtered by the status of its events", async () => {
  const { put, page } = await openAgent();
  const dead = [await put("dead")];
  const pending = [await put("pending")];
  dead.push(await put("dead"), await put("dead"));
  pending.push(await put("pending"));
  const idsOf = ({ items }: z.infer<typeof Page>): string[] => items.map(({ eventId }) => eventId);
  expect(idsOf(await page())).toHaveLength(5);
  expect(idsOf(await page("?status=pending"))).toEqual(pending);
  const first = await page("?status=dead&limit=2");
  expect(idsOf(first)).toEqual(dead.slice(0, 2));
  const second = await page(`?status=dead&limit=2&cursor=${first.nextCursor}`);
  expect([idsOf(second), second.nextCursor]).toEqual([dead.slice(2), null]);
});

test("[R1] dead events are retried together or discarded singly; waiting ones are not discarded", async () => {
  const { put, page, retryAll, discard } = await openAgent();
  const [gone, back, more] = [await put("dead"), await put("dead"), await put("dead")];
  expect((await discard(gone)).status).toBe(204);
  expect((await discard(gone)).status).toBe(404);
  const answer = await retryAll();
  expect([answer.status, await answer.json()]).toEqual([200, { retried: 2 }]);
  const { items } = await page("?status=pending");
  expect(items).toMatchObject([
    { eventId: back, attempts: 0 },
    { eventId: more, attempts: 0 },
  ]);
  expect(await problemIn(await discard(back))).toMatchObject({
    code: "conflict",
    detail: expect.stringContaining("pending"),
  });
  expect(await (await retryAll()).json()).toEqual({ retried: 0 });
});

test("[B3] a full inbox answers a trigger 503 with Retry-After, and takes the same key later", async () => {
  const { fill, sql, trigger } = await openAgent();
  await fill();
  const refused = await trigger("once");
  expect(Number(refused.headers.get("retry-after"))).toBeGreaterThan(0);
  expect(await problemIn(refused)).toMatchObject({
    status: 503,
    code: "unavailable",
    detail: expect.stringContaining(`maxInboxEvents (${maxInboxEvents})`),
  });
  await sql("DELETE FROM inbox");
  expect((await trigger("once")).status).toBe(202);
});

test("[L3] an admin who retries a dead event, and so reads it, is noted", async () => {
  const { house, at, put } = await openAgent();
  const boss = await house.person("Boss", "admin");
  const told = await call(`${at}/inbox/${await put("dead")}/retry`, { method: "POST", bearer: boss.token });
  expect(await told.json()).toMatchObject({ item: { type: "service" } });
  const audit = await call("/v1/workspace/audit?action=agent.read", { bearer: house.secretKey });
  expect(await audit.json()).toMatchObject({ items: [{ actor: { id: boss.id } }] });
});
