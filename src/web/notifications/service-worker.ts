/** The page's side of its service worker. Undefined where the browser has none, or the page does not come by https. */
export const registration = async (): Promise<ServiceWorkerRegistration | undefined> =>
  "serviceWorker" in navigator ? navigator.serviceWorker.ready : undefined;

/** Without it, as with a server for development, the page works and notifies of nothing. */
export const registerServiceWorker = (): void => {
  if (!("serviceWorker" in navigator)) return;
  navigator.serviceWorker.register("/sw.js").catch(() => undefined);
};

/** A notification was clicked: its message is shown in this page. */
export const followClicks = (go: (address: string) => void): (() => void) => {
  const follow = ({ data }: MessageEvent): void => {
    if (data?.type === "open" && typeof data.address === "string") go(data.address);
  };
  navigator.serviceWorker?.addEventListener("message", follow);
  return () => navigator.serviceWorker?.removeEventListener("message", follow);
};
