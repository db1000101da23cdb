import { z } from "zod";
import {
  defaultSearchLimit,
  maxSearchLimit,
  QueryText,
  type SearchAnswer,
  SearchMode,
  SearchRole,
  SearchType,
} from "../../../protocol/search.ts";
import { Timestamp } from "../../../protocol/text.ts";
import { maxWindowTokens } from "../../bounds.ts";
import { estimateText } from "../../context/tokens.ts";
import { defineTool, looks, type ToolContext } from "../tool.ts";

/** What a result holds beside its hits. */
const frameTokens = 150;

export const SearchLimit = z.int().min(1).max(maxSearchLimit).default(defaultSearchLimit);

/** The best hits that fit the room there is; what was left out is counted. */
export const shownHits = ({ items, mode, notes }: SearchAnswer, context: Pick<ToolContext, "roomTokens">) => {
  let room = Math.min(maxWindowTokens, context.roomTokens()) - frameTokens;
  const shown = items
    .map(({ score, ...hit }) => ({ ...hit, score: Number(score.toPrecision(4)) }))
    .filter((hit) => {
      room -= room < 0 ? 0 : estimateText(JSON.stringify(hit));
      return room >= 0;
    });
  return {
    results: shown,
    mode,
    ...(shown.length < items.length ? { omitted: `${items.length - shown.length} more did not fit` } : {}),
    ...(notes.length > 0 ? { notes } : {}),
  };
};

export const search = defineTool({
  ofMemory: true,
  name: "search",
  description:
    'Find what was said, done and kept: messages of your spaces, your own past cycles, your blocks and archival entries. Each result says who, where and when. Words find inflections; "a phrase" must be there; pref* finds beginnings.',
  input: z.object({
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
  async execute({ types = [], ...query }, context) {
    return { value: shownHits(await context.search({ ...query, types }), context) };
  },
});
