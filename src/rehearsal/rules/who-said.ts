import * as z from "zod";
import { answer, type Doing, enter, rule, type Turn, toolNamed } from "../turn.ts";

const Found = z.object({
  results: z.array(
    z.object({
      excerpt: z.string(),
      createdAt: z.string(),
      source: z.object({ authorName: z.string().optional(), spaceName: z.string().optional() }),
    }),
  ),
});

const asked =
  /^\s*who\s+(?:said|told (?:us|you|me)|mentioned|wrote|asked(?: for)?)\s+(?:that\s+|about\s+|something about\s+)?(.+?)\s*[.!?]*$/is;

const most = 3;

const unquoted = (text: string): string => text.replace(/["“”]/g, "");

function* tellWho(turn: Turn, words: string): Doing {
  if (!(yield* enter(turn.cycle, turn.event.spaceId))) return "could not enter the space";
  const result = yield {
    toolName: "search",
    input: { query: words, types: ["message"], role: "user", limit: most + 1 },
  };
  const hits = result.ok ? (Found.safeParse(result.value).data?.results ?? []) : [];
  // The question itself is among what was said.
  const said = hits
    .filter(({ excerpt }) => !asked.test(unquoted(excerpt).replace(/^.*?\bwho\b/is, "who")))
    .slice(0, most);
  const lines = said.map(
    ({ excerpt, createdAt, source: { authorName = "Somebody", spaceName = "a space" } }) =>
      `${authorName} in "${spaceName}" (${createdAt.slice(0, 10)}): ${excerpt}`,
  );
  const text = lines.length > 0 ? lines.join("\n") : `I find nobody who said ${words}.`;
  return yield* answer(turn, turn.tone.dress(text), lines.length > 0 ? "told who said it" : "found nobody who said it");
}

/** "who said mint tea?": found in all spaces of the agent, with who said it, where and when. */
export const whoSaid = rule(asked, (turn, words = "") =>
  toolNamed(turn, "search") ? tellWho(turn, words) : undefined,
);
