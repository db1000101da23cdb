import { shownText } from "../../client/index.ts";

/** A program's name as words: `fetchWeather` and `fetch_weather` become "Fetch weather". */
export const titleOf = (name: string): string => {
  const words = name
    .replace(/([\p{Ll}\d])(\p{Lu})/gu, "$1 $2")
    .replace(/(\p{Lu})(\p{Lu}\p{Ll})/gu, "$1 $2")
    .split(/[\s_.-]+/)
    .filter(Boolean)
    .map((word) => (/^\p{Lu}{2,}\d*$/u.test(word) ? word : word.toLowerCase()));
  const [first = name, ...rest] = words;
  return [first.charAt(0).toUpperCase() + first.slice(1), ...rest].join(" ");
};

/**
 * Whether two names are one to a reader. Only words may differ in their spelling: beside a digit, or at an end, a sign says
 * something, and nobody sees some letters.
 */
export const isSameName = (one: string, other: string): boolean => {
  const areWords = [one, other].every((name) => /^\p{L}+(?:[\s_-]+\p{L}+)*$/u.test(name) && shownText(name) === name);
  return one === other || (areWords && titleOf(one) === titleOf(other));
};

/** The title of a tool. A tool of an MCP server, named `server__tool`, comes with its server. */
export const toolTitle = (name: string): { title: string; server: string | null } => {
  const [server, ...rest] = name.split("__");
  return rest.length > 0 && server
    ? { title: titleOf(rest.join("_")), server }
    : { title: titleOf(name), server: null };
};
