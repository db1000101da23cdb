import { mkdirSync } from "node:fs";
import { join } from "node:path";
import type { Browser, BrowserContextOptions, Page } from "playwright-core";

export const phone = { width: 390, height: 844 };

/** A page in a browser context of its own, opened at `link`. */
export const openPage = async (browser: Browser, link: string, options: BrowserContextOptions = {}): Promise<Page> => {
  const page = await (await browser.newContext(options)).newPage();
  await page.goto(link);
  return page;
};

/** A click sends on every device; on a phone Enter breaks the line. */
export const write = async (page: Page, text: string): Promise<void> => {
  await page.getByRole("combobox").fill(text);
  await page.getByRole("button", { name: "Send" }).click();
};

/** `SHOTS=<folder>` keeps screenshots of the pages, one on a desktop and one on a phone. */
export const shoot = async (name: string, onDesktop: Page, onPhone: Page): Promise<void> => {
  const folder = process.env.SHOTS;
  if (!folder) return;
  mkdirSync(folder, { recursive: true });
  await onDesktop.screenshot({ path: join(folder, `${name}-desktop.png`) });
  await onPhone.screenshot({ path: join(folder, `${name}-phone.png`) });
};
