import { ColloquyError } from "../../shared/errors.ts";
import { asEntry } from "../memory/archival.ts";
import type { Area } from "./agent-runtime.ts";
import { cursorOf, page } from "./page.ts";

/** Search, and the agent's archival entries. */
export const searchArea: Area<"search" | "archival" | "archive" | "deleteArchival"> = {
  search: ({ services }, query) => services.search.search(query),
  archival: ({ services }, { limit, cursor }) =>
    page(services.archival.page(cursorOf(cursor), limit + 1), limit, (row) => row.ordinal, asEntry),
  archive: ({ services }, id, entry) => services.archival.insert({ id, ...entry }),
  deleteArchival: ({ services }, id) => {
    if (!services.archival.delete(id)) throw new ColloquyError("not_found", "there is no such archival entry");
    return null;
  },
};
