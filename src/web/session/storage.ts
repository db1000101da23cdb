/** What the browser keeps for the page: `kept` over its end (localStorage), `tab` as long as the tab lives. */
type Drawer = "kept" | "tab";

const storageOf = (drawer: Drawer): Storage => (drawer === "kept" ? localStorage : sessionStorage);

/** Null where there is nothing, or where the browser forbids storage. */
export const recall = (drawer: Drawer, key: string): string | null => {
  try {
    return storageOf(drawer).getItem(key);
  } catch {
    return null; // storage is switched off: the page works, it only forgets
  }
};

/** Null forgets. */
export const remember = (drawer: Drawer, key: string, value: string | null): void => {
  try {
    if (value === null) storageOf(drawer).removeItem(key);
    else storageOf(drawer).setItem(key, value);
  } catch {
    // Storage is switched off or full: the page works, it only forgets.
  }
};
