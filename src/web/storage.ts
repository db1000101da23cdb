/** `kept` outlives the page (localStorage); `tab` lives as long as the tab (sessionStorage). */
type Drawer = "kept" | "tab";

const storageOf = (drawer: Drawer): Storage => (drawer === "kept" ? localStorage : sessionStorage);

/** Null if nothing is stored, or if the browser forbids storage. */
export const recall = (drawer: Drawer, key: string): string | null => {
  try {
    return storageOf(drawer).getItem(key);
  } catch {
    return null; // storage is switched off: the page works without it
  }
};

/** Null removes the value. */
export const remember = (drawer: Drawer, key: string, value: string | null): void => {
  try {
    if (value === null) storageOf(drawer).removeItem(key);
    else storageOf(drawer).setItem(key, value);
  } catch {
    // Storage is switched off or full: the page works without it.
  }
};
