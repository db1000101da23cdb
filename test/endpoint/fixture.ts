import { runDurableObjectAlarm, runInDurableObject } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { inject, vi } from "vitest";
import * as z from "zod";
import { Endpoint, EndpointDelivery } from "../../src/protocol/endpoint.ts";
import { call, expectOk, type House, openHouse } from "../support/house.ts";
import { SeenRequests } from "../support/remote.ts";

/** A workspace with an endpoint whose server a test controls, in another process. */
const Created = z.object({ endpoint: Endpoint, secret: z.string() });
const Event = z.object({ id: z.string(), type: z.string(), timestamp: z.string().optional(), data: z.looseObject({}) });
const Batch = z.object({ type: z.literal("batch"), data: z.array(Event) });
type Event = z.infer<typeof Event>;

export const openEndpoint = async (settings: Record<string, unknown> = {}, house?: House) => {
  const home = house ?? (await openHouse());
  const path = `/received/${crypto.randomUUID()}`;
  const url = `${inject("remote")}${path}`;
  const answer = (how: { status?: number; secret?: string; answer?: string; delayMs?: number }) =>
    fetch(url, { method: "PUT", body: JSON.stringify(how) });
  const ask = (method: string, of = "", body?: unknown) =>
    call(`/v1/workspace/endpoints${of}`, { method, bearer: home.secretKey, ...(body === undefined ? {} : { body }) });
  const { endpoint, secret } = await expectOk(Created, ask("POST", "", { url, types: ["space.message"], ...settings }));
  await answer({ secret });
  const at = `/${endpoint.id}`;
  const seen = async () => {
    const asked = await fetch(`${inject("remote")}/requests?path=${encodeURIComponent(path)}`);
    return SeenRequests.parse(await asked.json()).filter(({ method }) => method === "POST");
  };
  /** The events that its server took, each as often as it came. */
  const told = async (): Promise<Event[]> =>
    (await seen())
      .filter(({ status }) => status === 200)
      .flatMap(({ body }) => {
        const batch = Batch.safeParse(JSON.parse(body));
        return batch.success ? batch.data.data : [Event.parse(JSON.parse(body))];
      });
  const namespace: unknown = env.ENDPOINT;
  const stub = () => (namespace as DurableObjectNamespace).getByName(endpoint.id);
  const rows = (table: string) =>
    runInDurableObject(stub(), (_, { storage }) => storage.sql.exec(`SELECT * FROM ${table}`).toArray());
  return {
    ...{ house: home, endpoint, secret, url, answer, ask, seen, told, stub, rows },
    /** Changes this endpoint. */
    change: (body: unknown) => expectOk(z.object({ endpoint: Endpoint }), ask("PATCH", at, body)),
    own: (method: string, of: string, body?: unknown) => ask(method, `${at}${of}`, body),
    deliveries: async () =>
      (await expectOk(z.object({ items: z.array(EndpointDelivery) }), ask("GET", `${at}/deliveries?limit=100`))).items,
    describe: async (): Promise<Endpoint | undefined> => {
      const { items } = await expectOk(z.object({ items: z.array(Endpoint) }), ask("GET"));
      return items.find(({ id }) => id === endpoint.id);
    },
    /** What was said and came, in order. */
    texts: async () =>
      (await told()).flatMap(
        ({ data }) => z.object({ message: z.object({ text: z.string() }) }).safeParse(data).data?.message.text ?? [],
      ),
    /** Lets time pass up to its alarm, and rings it. */
    ring: async (milliseconds: number): Promise<void> => {
      vi.useFakeTimers({ toFake: ["Date"], now: Date.now() + milliseconds });
      await runDurableObjectAlarm(stub());
    },
    /** The pause before its next try, in milliseconds. */
    pause: () =>
      runInDurableObject(stub(), async (_, { storage }) => {
        const due = storage.sql
          .exec("SELECT due_at FROM jobs WHERE kind = 'send' AND attempts = 0")
          .toArray()[0]?.due_at;
        return due === undefined ? undefined : Number(due) - Date.now();
      }),
  };
};
