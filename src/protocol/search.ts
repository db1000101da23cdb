import * as z from "zod";
import { entityId } from "./ids.ts";
import { component, Timestamp } from "./text.ts";

/** The kinds of things that are searched: messages of the agent's spaces, its cycles, blocks, archival entries. */
export const SearchType = z.enum(["message", "consciousness", "block", "archival"]);
export type SearchType = z.infer<typeof SearchType>;

/** `fts` by words, `vector` by likeness, `hybrid` both fused; `auto` is hybrid where a model makes the vectors, else fts. */
export const SearchMode = z.enum(["fts", "vector", "hybrid", "auto"]);
export type SearchMode = z.infer<typeof SearchMode>;

/** The speaker in a message or a cycle, as the agent sees it: others, itself, or a tool. */
export const SearchRole = z.enum(["user", "assistant", "tool"]);
export type SearchRole = z.infer<typeof SearchRole>;

export const maxSearchLimit = 100;
export const defaultSearchLimit = 10;
export const maxQueryCharacters = 2000;

export const QueryText = z
  .string()
  .max(maxQueryCharacters, `must have at most ${maxQueryCharacters} characters (maxQueryCharacters)`)
  .refine((text) => text.trim() !== "", "must not be empty")
  .meta({
    description:
      'Words, of which any may be found; "a phrase" must be; `pref*` is the beginning of a word. Nothing else is syntax',
    example: "what did Mona say about the launch",
  });

export const SearchQuery = z.object({
  query: QueryText,
  mode: SearchMode.default("auto"),
  /** All of them, if none is named. */
  types: z.array(SearchType).max(SearchType.options.length).default([]),
  role: SearchRole.optional(),
  /** Both ends belong to it. */
  from: Timestamp.optional(),
  to: Timestamp.optional(),
  limit: z.int().min(1).max(maxSearchLimit).default(defaultSearchLimit),
});
export type SearchQuery = z.infer<typeof SearchQuery>;

/** A query as numbers, and how alike a passage has to be at least. */
export type QueryVector = { embedderId: string; values: number[]; least: number };

const source = z.object({
  spaceId: z.string().optional(),
  spaceName: z.string().optional(),
  messageId: z.string().optional(),
  authorId: z.string().optional(),
  authorName: z.string().optional(),
  /** For a cycle: its run. */
  runId: z.string().optional(),
  /** For a block. */
  label: z.string().optional(),
});

export const SearchHit = component("SearchHit", {
  type: SearchType,
  id: z
    .string()
    .describe(
      "Of the message, the block (its label, and @ with the owner of another's), the entry; of a cycle, run and place",
    ),
  excerpt: z.string(),
  score: z.number().describe("Higher is better; comparable within one answer only"),
  createdAt: Timestamp,
  role: SearchRole.optional(),
  open: z.literal(true).optional().describe("In an answer of a confidential space: known outside of it too"),
  source,
});
export type SearchHit = z.infer<typeof SearchHit>;

export const SearchAnswer = component("SearchAnswer", {
  items: z.array(SearchHit),
  nextCursor: z.null(),
  mode: SearchMode.exclude(["auto"]).describe("What was done"),
  partial: z.boolean().describe("Not all could be looked at in time; `notes` say what"),
  notes: z.array(z.string()),
});
export type SearchAnswer = z.infer<typeof SearchAnswer>;

/** The hits of all agents of a workspace, each with its agent, and the agents that could not be asked. */
export const WorkspaceSearchAnswer = SearchAnswer.omit({ mode: true })
  .extend({
    items: z.array(SearchHit.extend({ agentId: entityId })),
    unreachable: z.array(z.object({ agentId: entityId, code: z.string() })),
  })
  .meta({ id: "WorkspaceSearchAnswer" });
export type WorkspaceSearchAnswer = z.infer<typeof WorkspaceSearchAnswer>;
