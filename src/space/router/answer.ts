import { z } from "zod";
import type { RoutedAgent } from "./prompt.ts";

/** Places of a text at which its JSON is looked for. */
const maxPlaces = 50;

const Answer = z.object({ wake: z.union([z.array(z.unknown()), z.string().transform((one) => [one])]) });

/** The end of the object that opens at `start`, its closing brace included; -1 where it is never closed. */
const endOf = (text: string, start: number): number => {
  let depth = 0;
  let quoted = false;
  for (let at = start; at < text.length; at += 1) {
    const character = text[at];
    if (quoted && character === "\\") at += 1;
    else if (character === '"') quoted = !quoted;
    else if (!quoted && character === "{") depth += 1;
    else if (!quoted && character === "}") {
      depth -= 1;
      if (depth === 0) return at + 1;
    }
  }
  return -1;
};

const parsedAt = (text: string, start: number): unknown[] | undefined => {
  const end = endOf(text, start);
  if (end === -1) return undefined;
  try {
    return Answer.safeParse(JSON.parse(text.slice(start, end))).data?.wake;
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
};

const fold = (name: string): string => name.normalize("NFC").trim().replace(/^@/, "").toLowerCase();

/**
 * The agents that a model's answer wakes, by id, in the order of `agents`. Whatever stands around the JSON (fences,
 * prose, thoughts) is passed over, and the last `wake` counts; names are taken for ids, and unknown ones ignored.
 * Undefined: the answer holds no `wake`.
 */
export const wakesIn = (text: string, agents: readonly RoutedAgent[]): string[] | undefined => {
  const places = [...text.matchAll(/\{/g)].map(({ index }) => index).slice(-maxPlaces);
  const wake = places.map((place) => parsedAt(text, place)).findLast((found) => found !== undefined);
  if (!wake) return undefined;
  const named = new Set(wake.flatMap((one) => (typeof one === "string" ? [fold(one)] : [])));
  return agents.filter(({ id, name }) => named.has(id.toLowerCase()) || named.has(fold(name))).map(({ id }) => id);
};
