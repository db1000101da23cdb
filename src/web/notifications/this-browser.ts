import { type Client, messageOf } from "../../client/index.ts";
import { recall, remember } from "../storage.ts";
import { registration } from "./service-worker.ts";

/** How this browser tells the person, and why it does not tell more. */
export type Told = { by: "push" | "page" | "nothing"; why?: string };

/** The device that this browser is, as the server knows it. */
const key = (entityId: string): string => `colloquy.device.${entityId}`;
export const ownDevice = (entityId: string): string | null => recall("kept", key(entityId));

const isAble = (): boolean => "Notification" in globalThis && "serviceWorker" in navigator;

const whileOpen = "This browser tells you only while a page of Colloquy is open.";

/** As things stand, without asking anybody. */
export const toldNow = async (entityId: string): Promise<Told> => {
  if (!isAble())
    return {
      by: "nothing",
      why: "This browser shows no notifications. On a phone, add the page to the home screen first.",
    };
  if (Notification.permission === "denied") {
    return {
      by: "nothing",
      why: "Notifications of this page are blocked: allow them in the browser's settings for this site.",
    };
  }
  if (Notification.permission !== "granted") return { by: "nothing" };
  const worker = await registration();
  if (!worker) {
    return {
      by: "nothing",
      why: "It keeps no data of this site, which that needs: allow that in its settings, or leave the private window.",
    };
  }
  const subscription = await worker.pushManager?.getSubscription();
  return subscription && ownDevice(entityId) !== null ? { by: "push" } : { by: "page", why: whileOpen };
};

const nameOfBrowser = (): string => {
  const { userAgent: agent } = navigator;
  const browser = ["Firefox", "Edg", "Chrome", "Safari"].find((name) => agent.includes(name)) ?? "Browser";
  const system = ["Android", "iPhone", "iPad", "Windows", "Mac", "Linux"].find((name) => agent.includes(name));
  const name = browser === "Edg" ? "Edge" : browser;
  return system === undefined ? name : `${name} on ${system}`;
};

const bytesOf = (base64url: string): Uint8Array<ArrayBuffer> =>
  Uint8Array.from(atob(base64url.replaceAll("-", "+").replaceAll("_", "/")), (letter) => letter.charCodeAt(0));

const addDevice = async (client: Client, entityId: string, subscription: PushSubscription): Promise<void> => {
  const { endpoint = "", keys } = subscription.toJSON();
  const device = { name: nameOfBrowser(), endpoint, keys: { p256dh: keys?.p256dh ?? "", auth: keys?.auth ?? "" } };
  remember("kept", key(entityId), (await client.addDevice(device)).id);
};

/**
 * A device hangs on the session that added it: where this browser was one, it is one again with the session of now. What
 * was subscribed with another key of the deployment is of no use any more.
 */
export const renewDevice = async (client: Client, entityId: string): Promise<void> => {
  if (ownDevice(entityId) === null || (await toldNow(entityId)).by !== "push") return;
  const subscription = await (await registration())?.pushManager.getSubscription();
  if (!subscription) return;
  const used = new Uint8Array(subscription.options.applicationServerKey ?? []);
  if (String(used) === String(bytesOf(await client.getPushKey()))) await addDevice(client, entityId, subscription);
  else await turnOn(client, entityId);
};

/** Asks for the browser's leave, and has its push service tell the person also while no page is open. */
export const turnOn = async (client: Client, entityId: string): Promise<Told> => {
  if (isAble()) await Notification.requestPermission();
  const told = await toldNow(entityId);
  if (told.by === "nothing") return told;
  try {
    const worker = await registration();
    if (!worker || !("pushManager" in worker)) return { by: "page", why: whileOpen };
    const applicationServerKey = bytesOf(await client.getPushKey());
    // One that was made with another key is of no use any more.
    await (await worker.pushManager.getSubscription())?.unsubscribe();
    const subscription = await worker.pushManager.subscribe({ userVisibleOnly: true, applicationServerKey });
    await addDevice(client, entityId, subscription);
    return { by: "push" };
  } catch (error) {
    return { by: "page", why: `${whileOpen} ${messageOf(error)}` };
  }
};

export const turnOff = async (client: Client, entityId: string): Promise<Told> => {
  const own = ownDevice(entityId);
  if (own !== null) await client.removeDevice(own);
  remember("kept", key(entityId), null);
  await (await (await registration())?.pushManager?.getSubscription())?.unsubscribe();
  return toldNow(entityId);
};
