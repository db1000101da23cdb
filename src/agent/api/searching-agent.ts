import type { ArchivalEntry, CreateArchival } from "../../protocol/archival.ts";
import type { AgentRpc, Page, PageRequest } from "../../protocol/rpc.ts";
import type { SearchAnswer, SearchQuery } from "../../protocol/search.ts";
import { ColloquyError, type Outcome } from "../../shared/errors.ts";
import { asEntry } from "../memory/archival.ts";
import { InboxAgent } from "./inbox-agent.ts";
import { cursorOf, page } from "./page.ts";

type SearchRpc = Pick<AgentRpc, "search" | "archival" | "archive" | "deleteArchival">;

/** What of an agent answers for what it finds again: search, and its archival entries. */
export abstract class SearchingAgent extends InboxAgent implements SearchRpc {
  search(workspaceId: string, query: SearchQuery): Promise<Outcome<SearchAnswer>> {
    return this.inMind(workspaceId, ({ parts }) => parts.search.search(query));
  }

  archival(workspaceId: string, { limit, cursor }: PageRequest): Promise<Outcome<Page<ArchivalEntry>>> {
    return this.inMind(workspaceId, ({ parts }) =>
      page(parts.archival.page(cursorOf(cursor), limit + 1), limit, (row) => row.ordinal, asEntry),
    );
  }

  archive(workspaceId: string, id: string, entry: CreateArchival): Promise<Outcome<ArchivalEntry>> {
    return this.inMind(workspaceId, ({ parts }) => parts.archival.insert({ id, ...entry }));
  }

  deleteArchival(workspaceId: string, id: string): Promise<Outcome<null>> {
    return this.inMind(workspaceId, ({ parts }) => {
      if (!parts.archival.delete(id)) throw new ColloquyError("not_found", "there is no such archival entry");
      return null;
    });
  }
}
