import { exportPage } from "../transfer/export.ts";
import type { Area } from "./agent-runtime.ts";

/** The agent as lines that another workspace can import. */
export const exportArea: Area<"exportPage"> = {
  exportPage: ({ db, services }, from) => exportPage(db, services, from),
};
