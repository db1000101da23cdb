let registering: Promise<ServiceWorkerRegistration | undefined> = Promise.resolve(undefined);

/** The page's side of its service worker. Undefined where the browser has or allows none, or the page comes without https. */
export const registration = (): Promise<ServiceWorkerRegistration | undefined> => registering;

/** Without it, as with a server for development, the page works and notifies of nothing. */
export const registerServiceWorker = (): void => {
  if (!("serviceWorker" in navigator)) return;
  const { serviceWorker } = navigator;
  registering = serviceWorker.register("/sw.js").then(
    () => serviceWorker.ready,
    () => undefined,
  );
};

/** A notification was clicked: its message is shown in this page. */
export const followClicks = (go: (address: string) => void): (() => void) => {
  const follow = ({ data }: MessageEvent): void => {
    if (data?.type === "open" && typeof data.address === "string") go(data.address);
  };
  navigator.serviceWorker?.addEventListener("message", follow);
  return () => navigator.serviceWorker?.removeEventListener("message", follow);
};
