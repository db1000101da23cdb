import { plain } from "../plain.ts";
import { excerpt, quote, quoteJson } from "../quote.ts";
import type { Action } from "./snapshot.ts";

const maxShownCharacters = 2000;

/** A value as JSON on one line; of a long one its beginning, as a string, with how much there is. */
const shortJson = (value: unknown): string => {
  const json = quoteJson(value);
  if (json.length <= maxShownCharacters) return json;
  return `(first ${maxShownCharacters} of ${json.length} characters) ${quote(excerpt(json, maxShownCharacters))}`;
};

/** `called name({…}) [status] → {…}` */
export const callLine = ({ toolName, input, output }: Action, status?: string): string =>
  [
    `called ${plain(toolName)}(${shortJson(input)})`,
    ...(status === undefined ? [] : [`[${status}]`]),
    ...(output === undefined ? [] : [`→ ${shortJson(output)}`]),
  ].join(" ");
