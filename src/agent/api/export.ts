import { exportHead, exportPage } from "../transfer/export.ts";
import type { Area } from "./agent-runtime.ts";

/** The agent as a document that another workspace can import. */
export const exportArea: Area<"exportHead" | "exportPage"> = {
  exportHead: ({ db, services }) => exportHead(db, services),
  exportPage: ({ db, services }, bounds, from) => exportPage(db, services, bounds, from),
};
