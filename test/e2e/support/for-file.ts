import type { Browser, Page } from "playwright-core";
import { afterAll } from "vitest";
import { startFakeOpenAi } from "../../support/fake-openai.ts";
import { launchBrowser } from "./browser.ts";
import { type House, openHouse, openWorkspace } from "./house.ts";

/** What the tests of one file share: each is opened where the file asks for it, and closed after its last test. */
const forFile = async <Opened>(opening: Promise<Opened>, close: (opened: Opened) => Promise<unknown>) => {
  const opened = await opening;
  afterAll(() => close(opened));
  return opened;
};

/** A house that no other file was in. */
export const ownHouseForFile = () => forFile(openHouse(), (house) => house.close());

/**
 * Files that one process runs one after another share a server and a browser, which end with the process. Each file has a
 * workspace and browser contexts of its own, and may crash the server.
 */
let sharedHouse: Promise<House> | undefined;
let sharedBrowser: Promise<Browser> | undefined;

export const houseForFile = async (): Promise<House> => {
  sharedHouse ??= openHouse();
  const house = await sharedHouse;
  return { ...house, ...(await openWorkspace(house.url)) };
};

export const browserForFile = () => {
  sharedBrowser ??= launchBrowser();
  return forFile(sharedBrowser, (browser) => Promise.all(browser.contexts().map((context) => context.close())));
};

export const modelForFile = (...given: Parameters<typeof startFakeOpenAi>) =>
  forFile(startFakeOpenAi(...given), (fake) => fake.stop());

/** Does the same on the pages of several people at once. */
export const onEach =
  (...pages: Page[]) =>
  <Seen>(look: (page: Page) => Promise<Seen>): Promise<Seen[]> =>
    Promise.all(pages.map(look));
