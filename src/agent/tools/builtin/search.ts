import * as z from "zod";
import { ArchivalContent, ArchivalMetadata } from "../../../protocol/archival.ts";
import {
  defaultSearchLimit,
  maxSearchLimit,
  QueryText,
  SearchMode,
  type SearchQuery,
  SearchRole,
  SearchType,
} from "../../../protocol/search.ts";
import { Timestamp } from "../../../protocol/text.ts";
import { ColloquyError } from "../../../shared/errors.ts";
import { maxWindowTokens } from "../../bounds.ts";
import { estimateText, firstFitting } from "../../tokens.ts";
import { acts, defineTool, looks, type ToolContext } from "../tool.ts";

/** Tokens of a result beside its hits. */
const frameTokens = 150;

const SearchLimit = z.int().min(1).max(maxSearchLimit).default(defaultSearchLimit);

/** The best hits that fit the room there is; what was left out is counted. */
const found = async (query: SearchQuery, context: ToolContext) => {
  const { items, mode, notes } = await context.services.search.search(query);
  const room = Math.min(maxWindowTokens, context.roomTokens()) - frameTokens;
  const hits = items.map(({ score, ...hit }) => ({ ...hit, score: Number(score.toPrecision(4)) }));
  const shown = firstFitting(hits, room, (hit) => estimateText(JSON.stringify(hit)));
  const value = {
    results: shown,
    mode,
    ...(shown.length < items.length ? { omitted: `${items.length - shown.length} more did not fit` } : {}),
    ...(notes.length > 0 ? { notes } : {}),
  };
  return { value, reads: [...new Set(shown.flatMap(({ source }) => source.spaceId ?? []))] };
};

/** One object for all operations: providers take no union as a tool's input. */
const Input = z
  .strictObject({
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

const Searching = z.object({ op: z.literal("search") });

export const searchTools = [
  defineTool({
    ofMemory: true,
    name: "recall",
    description:
      "Your archival memory: facts kept for good, found by search and never in the context by themselves. insert {content, metadata?} keeps one, with who said it and where; search {query, limit?}; delete {id}.",
    input: Input,
    ...acts,
    foundBy: ["op", "id"],
    effect: (input) => !Searching.safeParse(input).success,
    async execute({ op, content = "", metadata = {}, query = "", limit, id = "" }, context) {
      switch (op) {
        case "insert": {
          const { archival, identity, ids } = context.services;
          const entryId = ids.deriveOwned("arch", identity.mindId(), context.callId);
          const entry = archival.insert({ id: entryId, content, metadata, source: context.source() });
          return { value: { success: true, id: entry.id, source: entry.source } };
        }
        case "search":
          return found({ query, types: ["archival"], mode: "auto", limit }, context);
        case "delete":
          if (!context.services.archival.delete(id) && !context.replayed) {
            throw new ColloquyError("not_found", `there is no archival entry ${JSON.stringify(id)}`);
          }
          return { value: { success: true } };
      }
    },
  }),
  defineTool({
    ofMemory: true,
    name: "search",
    description:
      'Find what was said, done and kept: messages of your spaces, your own past cycles, your blocks and archival entries. Each result says who, where and when. Words find inflections; "a phrase" must be there; pref* finds beginnings.',
    input: z.strictObject({
      query: QueryText,
      types: z.array(SearchType).max(SearchType.options.length).optional().describe("Left out: all of them."),
      mode: SearchMode.default("auto"),
      limit: SearchLimit,
      role: SearchRole.optional().describe("Only what others (user), you (assistant) or a tool said."),
      from: Timestamp.optional().describe("Not before this time, ISO 8601."),
      to: Timestamp.optional(),
    }),
    ...looks,
    showsInHistory: true,
    execute: ({ types = [], ...query }, context) => found({ ...query, types }, context),
  }),
];
