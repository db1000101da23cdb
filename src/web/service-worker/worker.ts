import { addressOfMessage, asShown } from "../notifications/shown.ts";
import { readPushed } from "./pushed.ts";

/**
 * The page's service worker: it shows what is pushed while no page is open, and keeps the page's own files.
 *
 * Invariants
 * 1. It keeps files of one build alone, and no answer of the API: no word of anybody.
 * 2. A page comes from the server where that answers, and so does each file whose name outlives its build. Only without a
 *    network they come from here.
 */
declare const self: ServiceWorkerGlobalScope;
/** The files of the build that this worker belongs to, by their paths, and their print. Set by the build. */
declare const shellFiles: string[];
declare const shellPrint: string;

const shell = `shell-${shellPrint}`;

self.addEventListener("install", (event) => {
  event.waitUntil(caches.open(shell).then((cache) => cache.addAll(["/", ...shellFiles])));
});

self.addEventListener("activate", (event) => {
  const forgetOthers = async (): Promise<void> => {
    const others = (await caches.keys()).filter((name) => name !== shell);
    await Promise.all(others.map((name) => caches.delete(name)));
  };
  event.waitUntil(forgetOthers());
});

self.addEventListener("fetch", (event) => {
  const { request } = event;
  const { pathname, origin } = new URL(request.url);
  if (request.method !== "GET" || origin !== location.origin) return;
  if (pathname.startsWith("/assets/") && shellFiles.includes(pathname)) {
    event.respondWith(caches.match(pathname).then((kept) => kept ?? fetch(request)));
  } else if (shellFiles.includes(pathname) || (request.mode === "navigate" && pathname === "/")) {
    event.respondWith(fetch(request).catch(async () => (await caches.match(pathname)) ?? Response.error()));
  }
});

const close = async (ids: string[]): Promise<void> => {
  for (const shown of await self.registration.getNotifications()) if (ids.includes(shown.tag)) shown.close();
};

self.addEventListener("push", (event) => {
  const pushed = readPushed(event.data?.text() ?? "");
  if (!pushed) return;
  if (pushed.type === "cleared") return event.waitUntil(close(pushed.ids));
  const { title, options } = asShown(pushed, pushed.count);
  event.waitUntil(self.registration.showNotification(title, options));
});

/** Shows the message in a page that is open, else in a new one. */
const open = async ({ spaceId, messageId }: { spaceId: string; messageId: string }): Promise<void> => {
  const address = addressOfMessage(spaceId, messageId);
  const windows = await self.clients.matchAll({ type: "window", includeUncontrolled: true });
  // Another one may show what the API or the deployment answers by itself.
  const page = windows.find(({ url }) => new URL(url).pathname === "/");
  if (!page) return void (await self.clients.openWindow(`/${address}`));
  page.postMessage({ type: "open", address });
  await page.focus();
};

self.addEventListener("notificationclick", (event) => {
  event.notification.close();
  event.waitUntil(open(event.notification.data));
});
