import type { Browser, Page } from "playwright-core";
import { afterAll } from "vitest";
import { startFakeOpenAi } from "../../support/fake-openai.ts";
import { launchBrowser } from "./browser.ts";
import { openHouse } from "./house.ts";

/** What the tests of one file share: each is opened where the file asks for it, and closed after its last test. */
const forFile = async <Opened>(opening: Promise<Opened>, close: (opened: Opened) => Promise<unknown>) => {
  const opened = await opening;
  afterAll(() => close(opened));
  return opened;
};

export const houseForFile = () => forFile(openHouse(), (house) => house.close());

export const browserForFile = () => forFile<Browser>(launchBrowser(), (browser) => browser.close());

export const modelForFile = (...given: Parameters<typeof startFakeOpenAi>) =>
  forFile(startFakeOpenAi(...given), (fake) => fake.stop());

/** Does the same on the pages of several people at once. */
export const onEach =
  (...pages: Page[]) =>
  <Seen>(look: (page: Page) => Promise<Seen>): Promise<Seen[]> =>
    Promise.all(pages.map(look));
