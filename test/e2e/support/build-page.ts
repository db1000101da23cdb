import { buildPage } from "../../../scripts/page.ts";

/** Before any end-to-end test: the page that the server serves, built from the sources as they are. */
export const setup = async (): Promise<void> => {
  await buildPage();
};
