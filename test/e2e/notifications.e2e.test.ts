import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import type { BrowserContextOptions, Page, WebSocketRoute } from "playwright-core";
import { expect, onTestFinished, test, vi } from "vitest";
import { answerPush, CamePushes } from "../support/push-service.ts";
import { browserForFile, houseForFile } from "./support/for-file.ts";
import { phone, shoot } from "./support/page.ts";

/** What a person is told by their browsers: in hidden pages, and by the service worker while no page is open. */
const [house, browser] = await Promise.all([houseForFile(), browserForFile()]);

/** The headless Chromium has no notifications of a system: what is shown is kept here. All else is the browser's own. */
const system = (): void => {
  const shown = new Map<string, Record<string, unknown>>();
  Object.defineProperty(Notification, "permission", { get: () => "granted" });
  Notification.requestPermission = async () => "granted";
  const { prototype } = ServiceWorkerRegistration as unknown as { prototype: Record<string, unknown> };
  prototype.showNotification = async (title: string, options: { tag: string }) => {
    shown.set(options.tag, { title, ...options, shownAt: Date.now(), close: () => shown.delete(options.tag) });
  };
  prototype.getNotifications = async () => [...shown.values()];
};

const open = async (
  link: string,
  options: BrowserContextOptions = {},
  prepare?: (page: Page) => Promise<unknown>,
): Promise<Page> => {
  const context = await browser.newContext(options);
  await context.addInitScript(system);
  const page = await context.newPage();
  await prepare?.(page);
  await page.goto(link);
  await page.getByRole("heading", { level: 1, name: "Harbour" }).waitFor();
  await page.evaluate(() => navigator.serviceWorker.ready.then(() => undefined));
  return page;
};

/** As when the person looks at another window. Headless pages are always seen. */
const hide = (page: Page): Promise<void> =>
  page.evaluate(() => {
    Object.defineProperty(document, "hidden", { configurable: true, get: () => true });
    Object.defineProperty(document, "visibilityState", { configurable: true, get: () => "hidden" });
    document.dispatchEvent(new Event("visibilitychange"));
  });

/** The notifications that the system shows now. */
const shownIn = (page: Page): Promise<{ title: string; body: string; tag: string }[]> =>
  page.evaluate(async () => {
    const worker = await navigator.serviceWorker.ready;
    return (await worker.getNotifications()).map(({ title, body, tag }) => ({ title, body, tag }));
  });

/** When the only one that is shown came. */
const shownAt = (page: Page): Promise<number> =>
  page.evaluate(async () => {
    const [only] = await (await navigator.serviceWorker.ready).getNotifications();
    return (only as unknown as { shownAt: number }).shownAt;
  });

const scene = async () => {
  const [ada, ben] = [await house.addPerson("Ada"), await house.addPerson("Ben")];
  const cat = await house.addPerson("Cat");
  const spaceId = await house.addSpace("Harbour", [ada.id, ben.id, cat.id]);
  const say = async (text: string): Promise<string> => {
    const { message } = (await ben.api.post(`/v1/spaces/${spaceId}/messages`, { text })) as { message: { id: string } };
    return message.id;
  };
  return { ada, ben, spaceId, say };
};

const markRead = async (token: string, spaceId: string, messageId: string): Promise<void> => {
  const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" };
  const read = { method: "POST", headers, body: JSON.stringify({ messageId }) };
  expect((await fetch(`${house.url}/v1/spaces/${spaceId}/read`, read)).status).toBe(204);
};

test("[I6] two hidden pages hear of a mention within a second, and forget it once it is read", async () => {
  const { ada, spaceId, say } = await scene();
  const pages = [await open(await ada.link()), await open(await ada.link(), { viewport: phone })];
  for (const page of pages) await hide(page);
  // The server has heard by then that nobody looks.
  await pages[0]?.evaluate(() => new Promise((resolve) => setTimeout(resolve, 300)));
  const messageId = await say("@Ada come down to the quay");
  const saidAt = Date.now();
  for (const page of pages) {
    await vi.waitFor(async () => expect(await shownIn(page)).toHaveLength(1), { timeout: 5000, interval: 50 });
    expect((await shownAt(page)) - saidAt).toBeLessThan(1000);
    expect(await shownIn(page)).toEqual([
      { title: "Ben mentioned you", body: "@Ada come down to the quay", tag: `mention ${messageId}` },
    ]);
    await vi.waitFor(async () => expect(await page.title()).toMatch(/^\(1\) /));
  }
  await markRead(ada.token, spaceId, messageId);
  for (const page of pages) {
    await vi.waitFor(async () => expect(await shownIn(page)).toEqual([]), { timeout: 5000, interval: 50 });
    await vi.waitFor(async () => expect(await page.title()).not.toMatch(/^\(/));
  }
});

const pause = (page: Page, ms: number): Promise<void> =>
  page.evaluate((wait) => new Promise<void>((resolve) => setTimeout(resolve, wait)), ms);

test("[I5] what is unread stays shown while the line of a hidden page comes back", async () => {
  const { ada, spaceId, say } = await scene();
  const lines: WebSocketRoute[] = [];
  const page = await open(await ada.link(), {}, (one) =>
    one.routeWebSocket(/\/v1\/stream(?:\?|$)/, (line) => {
      line.connectToServer();
      lines.push(line);
    }),
  );
  await hide(page);
  await pause(page, 300);
  await say("@Ada come down to the quay");
  await vi.waitFor(async () => expect(await shownIn(page)).toHaveLength(1), { timeout: 5000 });
  await lines.at(-1)?.close({ code: 1012, reason: "dropped by the test" });
  await vi.waitFor(() => expect(lines.length).toBeGreaterThan(1), { timeout: 10_000 });
  const last = await say("@Ada bring a rope");
  const bodies = async () => (await shownIn(page)).map(({ body }) => body);
  await vi.waitFor(async () => expect(await bodies()).toContain("@Ada bring a rope"), { timeout: 10_000 });
  await pause(page, 1500);
  expect(await bodies()).toEqual(["@Ada come down to the quay", "@Ada bring a rope"]);
  await markRead(ada.token, spaceId, last);
  await vi.waitFor(async () => expect(await shownIn(page)).toEqual([]), { timeout: 5000 });
});

test("[I6] a mention that comes while others are taken back stays shown", async () => {
  const { ada, spaceId, say } = await scene();
  const page = await open(await ada.link());
  await hide(page);
  await pause(page, 300);
  const first = await say("@Ada come down to the quay");
  await vi.waitFor(async () => expect(await shownIn(page)).toHaveLength(1), { timeout: 5000 });
  // The system takes its time to say what it shows.
  await page.evaluate(() => {
    const { prototype } = ServiceWorkerRegistration;
    const { getNotifications } = prototype;
    const gate = Promise.withResolvers<void>();
    Object.assign(globalThis, { gate });
    prototype.getNotifications = async function () {
      prototype.getNotifications = getNotifications;
      Object.assign(globalThis, { isAsked: true });
      await gate.promise;
      return getNotifications.call(this);
    };
  });
  await markRead(ada.token, spaceId, first);
  await vi.waitFor(async () => expect(await page.evaluate("globalThis.isAsked")).toBe(true), { timeout: 5000 });
  await say("@Ada bring a rope");
  const bodies = async () => (await shownIn(page)).map(({ body }) => body);
  await vi.waitFor(async () => expect(await bodies()).toContain("@Ada bring a rope"), { timeout: 5000 });
  await page.evaluate("globalThis.gate.resolve()");
  await vi.waitFor(async () => expect(await bodies()).not.toContain("@Ada come down to the quay"), { timeout: 5000 });
  expect(await bodies()).toEqual(["@Ada bring a rope"]);
});

test("[C14] who signs out leaves no count and no name of a space in the title and on the icon", async () => {
  const { ada, say } = await scene();
  const page = await open(await ada.link(), {}, (one) =>
    one.addInitScript(() => {
      Object.assign(navigator, { setAppBadge: async (count: number) => Object.assign(globalThis, { badge: count }) });
    }),
  );
  const badge = () => page.evaluate(() => (globalThis as unknown as { badge?: number }).badge);
  await hide(page);
  await say("Low water at six");
  await vi.waitFor(async () => expect([await page.title(), await badge()]).toEqual(["(1) Harbour · Colloquy", 1]), {
    timeout: 5000,
  });
  await page.getByRole("button", { name: "Sign out" }).click();
  await vi.waitFor(async () => expect([await page.title(), await badge()]).toEqual(["Colloquy", 0]), { timeout: 5000 });
});

/** Has the browser's push service tell the service worker, as a real one would. */
const pushTo = async (page: Page, data: object): Promise<void> => {
  const session = await page.context().newCDPSession(page);
  const registered = new Promise<string>((resolve) => {
    session.on("ServiceWorker.workerRegistrationUpdated", ({ registrations }) => {
      const [own] = registrations;
      if (own) resolve(own.registrationId);
    });
  });
  await session.send("ServiceWorker.enable");
  const told = { origin: house.url, registrationId: await registered, data: JSON.stringify(data) };
  await session.send("ServiceWorker.deliverPushMessage", told);
  await session.detach();
};

test("[I7] a push is shown, replaces what was shown, is withdrawn, and leads to its message", async () => {
  const { ada, spaceId, say } = await scene();
  const page = await open(await ada.link());
  const worker = page.context().serviceWorkers()[0];
  if (!worker) throw new Error("the page has no service worker");
  await worker.evaluate(system);
  const shown = () =>
    worker.evaluate(async () => {
      const { registration } = globalThis as unknown as { registration: ServiceWorkerRegistration };
      return (await registration.getNotifications()).map(({ title, body, tag }) => ({ title, body, tag }));
    });
  const messageId = await say("@Ada the boat is in");
  for (let line = 0; line < 60; line += 1) await say(`Line ${line}`);
  const news = { type: "notification", id: `mention ${messageId}`, kind: "mention", spaceId, messageId };
  await pushTo(page, { ...news, title: "Ben", body: "@Ada the boat is in", count: 2 });
  await vi.waitFor(async () =>
    expect(await shown()).toEqual([
      { title: "Ben mentioned you", body: "@Ada the boat is in\n2 more in this space", tag: `mention ${messageId}` },
    ]),
  );
  await pushTo(page, { ...news, title: "Ben", body: "@Ada the boat is in" });
  await pushTo(page, { type: "of a newer server" });
  await vi.waitFor(async () => expect(await shown()).toMatchObject([{ body: "@Ada the boat is in" }]));
  // A window of ours that is no page stands before it.
  const other = await page.context().newPage();
  await other.goto(`${house.url}/healthz`);
  await other.bringToFront();
  // A click: what the worker does with it is its own.
  await worker.evaluate(async () => {
    const { registration } = globalThis as unknown as { registration: ServiceWorkerRegistration };
    const [notification] = await registration.getNotifications();
    const event = new Event("notificationclick");
    Object.assign(event, { notification, waitUntil: () => undefined });
    globalThis.dispatchEvent(event);
  });
  await page.getByText("the boat is in").first().waitFor();
  expect(await page.evaluate(() => location.hash)).toBe(`#${spaceId}/${messageId}`);
  await pushTo(page, { ...news, title: "Ben", body: "@Ada the boat is in" });
  await vi.waitFor(async () => expect(await shown()).toHaveLength(1));
  await pushTo(page, { type: "cleared", ids: [news.id] });
  await vi.waitFor(async () => expect(await shown()).toEqual([]));
});

test("[I7] the address of a notification opens the page at its message, however old it is", async () => {
  const { ada, spaceId, say } = await scene();
  const messageId = await say("@Ada the boat is in");
  for (let line = 0; line < 120; line += 1) await say(`Line ${line}`);
  const page = await open(await ada.link());
  await page.getByText("Line 119").first().waitFor();
  await page.goto(`${house.url}/#${spaceId}/${messageId}`);
  await page.reload();
  const message = page.getByRole("article").filter({ hasText: "the boat is in" });
  await message.waitFor();
  const isInView = async (): Promise<boolean> => {
    const { y = -1 } = (await message.boundingBox({ timeout: 1000 }).catch(() => null)) ?? {};
    return y > 0 && y < (page.viewportSize()?.height ?? 0);
  };
  await vi.waitFor(async () => expect(await isInView()).toBe(true), { timeout: 15_000 });
});

test("[I7] who goes on from the message that a link leads to is not led back to it", async () => {
  const { ada, ben, spaceId, say } = await scene();
  const first = await say("The boat has a leak");
  for (let line = 0; line < 40; line += 1) await say(`Line ${line}`);
  const answer = { text: "@Ada all is dry", replyTo: first };
  const { message } = (await ben.api.post(`/v1/spaces/${spaceId}/messages`, answer)) as { message: { id: string } };
  const page = await open(await ada.link());
  const [quoted, quoting] = ["The boat has a leak", "@Ada all is dry"].map((text) =>
    page.locator(".timeline-list .markdown", { hasText: text }),
  );
  await quoting?.waitFor();
  await page.evaluate((address) => {
    location.hash = address;
  }, `${spaceId}/${message.id}`);
  await page.locator(".message[data-target=true]", { hasText: "all is dry" }).waitFor();
  await page.getByRole("button", { name: "Answers Ben" }).click();
  await quoted?.waitFor();
  await pause(page, 2500);
  await expect(quoted?.boundingBox({ timeout: 1000 })).resolves.toMatchObject({ y: expect.any(Number) });
  expect(await quoted?.evaluate((words) => words.getBoundingClientRect().top)).toBeGreaterThan(0);
});

test("[I7] an older message is found while much is said meanwhile", async () => {
  const { ada, spaceId, say } = await scene();
  const messageId = await say("@Ada the boat is in");
  for (let line = 0; line < 60; line += 1) await say(`Line ${line}`);
  const page = await open(await ada.link());
  await page.getByText("Line 59").first().waitFor();
  // A page of older messages takes its time.
  let isAsked = false;
  const { promise: letThrough, resolve: answer } = Promise.withResolvers<void>();
  await page.route(/\/messages\?.*before=/, async (route) => {
    isAsked = true;
    await letThrough;
    await route.continue();
  });
  await page.evaluate((address) => {
    location.hash = address;
  }, `${spaceId}/${messageId}`);
  await vi.waitFor(() => expect(isAsked).toBe(true));
  for (let line = 0; line < 40; line += 1) await say(`News ${line}`);
  await pause(page, 500);
  answer();
  await page.getByRole("article").filter({ hasText: "the boat is in" }).waitFor({ timeout: 10_000 });
});

/** A push service, and a browser that subscribes there: the headless Chromium has none of its own. */
const openPushService = async (name: string) => {
  const server = createServer((request, response) => void answerPush(name, request, response));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => void server.close());
  const endpoint = `http://127.0.0.1:${(server.address() as AddressInfo).port}/push`;
  const keys = await (await fetch(endpoint, { method: "PUT", body: "{}" })).json();
  const subscribe = (json: object): void => {
    let current: object | null = null;
    const subscription = { toJSON: () => json, unsubscribe: async () => (current = null) };
    Object.assign(PushManager.prototype, {
      subscribe: async () => (current = subscription),
      getSubscription: async () => current,
    });
  };
  return {
    /** Belongs before the page is opened anew. */
    subscribeIn: (page: Page) => page.context().addInitScript(subscribe, { endpoint, keys }),
    told: async (): Promise<Record<string, unknown>[]> =>
      CamePushes.parse(await (await fetch(endpoint)).json()).map(({ payload }) => payload),
  };
};

test("[I6] [I7] who turns notifications on is pushed a mention once no page is open", async () => {
  const { ada, spaceId, say } = await scene();
  const service = await openPushService("ada");
  const [page, other] = [await open(await ada.link()), await open(await ada.link(), { viewport: phone })];
  await service.subscribeIn(page);
  await page.reload();
  await page.getByRole("button", { name: "Notifications" }).click();
  const dialog = page.getByRole("dialog", { name: "Notifications" });
  await dialog.getByText("This browser tells you only while a page of Colloquy is open.").waitFor();
  await dialog.getByRole("button", { name: "Turn on in this browser" }).click();
  await dialog.getByText("This browser tells you, also while no page is open.").waitFor();
  await dialog.getByText("Chrome on Linux (this one) by 127.0.0.1").waitFor();
  await dialog.getByLabel("Somebody replies to you").selectOption("Never");
  await dialog.getByLabel("Alert me of nothing by night").check();
  await shoot("notifications", page, other);
  await dialog.getByRole("button", { name: "Save" }).click();
  await dialog.waitFor({ state: "detached" });
  expect(await ada.api.get("/v1/me/settings")).toMatchObject({
    notifications: { reply: "never", mention: "when_away" },
    quietHours: { from: "22:00", to: "07:00", zone: expect.any(String) },
  });
  // What one page changes, the other one shows.
  await page.getByRole("button", { name: "Mute this space" }).click();
  await other.getByRole("button", { name: "Mute this space", pressed: true }).waitFor();
  await other.getByRole("button", { name: "Mute this space" }).click();
  await page.getByRole("button", { name: "Mute this space", pressed: false }).waitFor();
  await page.getByRole("button", { name: "Notifications" }).click();
  await dialog.getByLabel("Alert me of nothing by night").uncheck();
  await dialog.getByRole("button", { name: "Save" }).click();
  await dialog.waitFor({ state: "detached" });

  await say("@Ada while you look");
  await Promise.all([page.close(), other.close()]);
  // The server hears a moment later that nobody looks any more.
  const said: string[] = [];
  await vi.waitFor(
    async () => {
      said.push(await say("@Ada once you are away"));
      expect(await service.told()).not.toEqual([]);
    },
    { timeout: 20_000, interval: 500 },
  );
  const [first] = await service.told();
  expect(first).toMatchObject({ type: "notification", kind: "mention", spaceId, title: "Ben" });
  expect(said).toContain(first?.messageId);
  await markRead(ada.token, spaceId, said.at(-1) ?? "");
  const cleared = { type: "cleared", ids: [`mention ${first?.messageId}`] };
  await vi.waitFor(async () => expect((await service.told()).slice(1)).toEqual([cleared]), { timeout: 10_000 });
});

test("[I6] without a network the page shows its shell, and keeps no word of anybody", async () => {
  const { ada, say } = await scene();
  await say("A secret of the harbour");
  const page = await open(await ada.link());
  await page.getByText("A secret of the harbour").first().waitFor();
  await page.reload();
  await page.getByText("A secret of the harbour").first().waitFor();
  const kept = await page.evaluate(async () => {
    const names = await caches.keys();
    const files = await Promise.all(names.map(async (name) => (await caches.open(name)).matchAll()));
    return Promise.all(files.flat().map(async (file) => [new URL(file.url).pathname, await file.text()] as const));
  });
  expect(kept.map(([path]) => path)).toEqual(expect.arrayContaining(["/", "/icon.svg"]));
  expect(kept.filter(([path]) => path.startsWith("/v1"))).toEqual([]);
  expect(JSON.stringify(kept)).not.toContain("secret of the harbour");
  await page.context().setOffline(true);
  await page.reload();
  await page.getByText("Colloquy does not answer").waitFor();
});

test("a file whose name outlives its build comes from the server while there is a network", async () => {
  const { ada } = await scene();
  const page = await open(await ada.link());
  await page.reload();
  await page.getByRole("heading", { level: 1, name: "Harbour" }).waitFor();
  await page.evaluate(async () => {
    const [shell = ""] = await caches.keys();
    await (await caches.open(shell)).put("/theme.js", new Response("/* of an older build */"));
  });
  const theme = () => page.evaluate(async () => (await fetch("/theme.js")).text());
  expect(await theme()).not.toContain("older build");
  await page.context().setOffline(true);
  expect(await theme()).toContain("older build");
});
