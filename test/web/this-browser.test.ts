import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { createClient } from "../../src/client/index.ts";
import { registerServiceWorker } from "../../src/web/notifications/service-worker.ts";
import { ownDevice, renewDevice, toldNow, turnOn } from "../../src/web/notifications/this-browser.ts";

/** A browser that is told by push, of which the deployment and the browser's own push service are played. */
const key = (byte: number): string => Buffer.from(new Uint8Array(65).fill(byte)).toString("base64url");
const device = {
  ...{ id: `dev_${"0".repeat(34)}`, name: "Chrome on Linux", host: "push.example.com" },
  createdAt: "2026-11-28T08:00:00.000Z",
};

let deploymentKey: string;
let added: { endpoint: string }[];
let subscribedWith: string[];

type Subscription = { toJSON: () => object; unsubscribe: () => Promise<void>; options: object };
let subscription: Subscription | null;

const subscribe = async ({ applicationServerKey }: { applicationServerKey: Uint8Array }): Promise<Subscription> => {
  subscribedWith.push(Buffer.from(applicationServerKey).toString("base64url"));
  const endpoint = `https://push.example.com/${subscribedWith.length}`;
  subscription = {
    toJSON: () => ({ endpoint, keys: { p256dh: key(4), auth: "c2VjcmV0" } }),
    unsubscribe: async () => {
      subscription = null;
    },
    options: { applicationServerKey: applicationServerKey.slice().buffer },
  };
  return subscription;
};

const pushManager = { subscribe, getSubscription: async () => subscription };

const openBrowser = (register: () => Promise<unknown>): void => {
  const ready = register().then(
    () => ({ pushManager }),
    () => new Promise(() => undefined),
  );
  vi.stubGlobal("navigator", { userAgent: "Chrome/140 Linux", serviceWorker: { register, ready } });
  registerServiceWorker();
};

beforeEach(() => {
  [deploymentKey, added, subscribedWith, subscription] = [key(1), [], [], null];
  const kept = new Map<string, string>();
  vi.stubGlobal("localStorage", {
    getItem: (name: string) => kept.get(name) ?? null,
    setItem: (name: string, value: string) => kept.set(name, value),
    removeItem: (name: string) => kept.delete(name),
  });
  vi.stubGlobal("Notification", { permission: "granted", requestPermission: async () => "granted" });
  vi.stubGlobal("fetch", async (address: string | URL, init: RequestInit = {}) => {
    if (String(address).endsWith("/v1/push-key")) return Response.json({ publicKey: deploymentKey });
    added.push(JSON.parse(String(init.body)));
    return Response.json(device, { status: 201 });
  });
});
afterEach(() => void vi.unstubAllGlobals());

const client = createClient({ baseUrl: "https://colloquy.example.com", token: "a.b.c" });

test("[I7] a page that is opened subscribes anew where the deployment has another key", async () => {
  openBrowser(async () => undefined);
  expect(await turnOn(client, "ent_ada")).toEqual({ by: "push" });
  deploymentKey = key(2);
  await renewDevice(client, "ent_ada");
  expect(subscribedWith).toEqual([key(1), key(2)]);
  expect(added.map(({ endpoint }) => endpoint)).toEqual(["https://push.example.com/1", "https://push.example.com/2"]);
});

test("[I7] a page that is opened adds its device again as it is where the key is the same", async () => {
  openBrowser(async () => undefined);
  await turnOn(client, "ent_ada");
  await renewDevice(client, "ent_ada");
  await renewDevice(client, "ent_ben");
  expect(subscribedWith).toEqual([key(1)]);
  expect(added.map(({ endpoint }) => endpoint)).toEqual(["https://push.example.com/1", "https://push.example.com/1"]);
  expect([ownDevice("ent_ada"), ownDevice("ent_ben")]).toEqual([device.id, null]);
});

test("a browser that allows no service worker says that it tells nothing, and what to do", async () => {
  openBrowser(async () => Promise.reject(new Error("the browser keeps no data")));
  const told = { by: "nothing", why: expect.stringContaining("leave the private window") };
  expect(await toldNow("ent_ada")).toEqual(told);
  expect(await turnOn(client, "ent_ada")).toEqual(told);
});
