import { z } from "zod";
import { ArchivalContent, ArchivalMetadata } from "../../../protocol/archival.ts";
import { QueryText } from "../../../protocol/search.ts";
import { ColloquyError } from "../../../shared/errors.ts";
import { acts, defineTool } from "../tool.ts";
import { SearchLimit, shownHits } from "./search.ts";

/** One object for all operations: providers take no union as a tool's input. */
const Input = z
  .object({
    op: z.enum(["insert", "search", "delete"]),
    content: ArchivalContent.optional().describe("insert: the fact, in words that stand alone."),
    metadata: ArchivalMetadata.optional().describe("insert: what else is known of it."),
    query: QueryText.optional().describe("search: what to look for."),
    limit: SearchLimit.describe("search: how many at most."),
    id: z.string().max(100).optional().describe("delete: the entry's id."),
  })
  .superRefine(({ op, content, query, id }, issues) => {
    const missing = { insert: content, search: query, delete: id }[op] === undefined;
    const path = { insert: "content", search: "query", delete: "id" }[op];
    if (missing) issues.addIssue({ code: "custom", path: [path], message: `is needed for op ${op}` });
  });

const isSearch = (input: unknown): boolean => z.object({ op: z.literal("search") }).safeParse(input).success;

export const recall = defineTool({
  ofMemory: true,
  name: "recall",
  description:
    "Your archival memory: facts kept for good, found by search and never in the context by themselves. insert {content, metadata?} keeps one, with who said it and where; search {query, limit?}; delete {id}.",
  input: Input,
  ...acts,
  effect: (input) => !isSearch(input),
  async execute({ op, content = "", metadata = {}, query = "", limit, id = "" }, context) {
    switch (op) {
      case "insert": {
        const entry = context.archival.insert(content, metadata);
        return { value: { success: true, id: entry.id, source: entry.source } };
      }
      case "search":
        return { value: shownHits(await context.search({ query, types: ["archival"], mode: "auto", limit }), context) };
      case "delete":
        if (!context.archival.delete(id) && !context.replayed) {
          throw new ColloquyError("not_found", `there is no archival entry ${JSON.stringify(id)}`);
        }
        return { value: { success: true } };
    }
  },
});
