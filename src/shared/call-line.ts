import { excerpt, quote, quoteJson } from "./quote.ts";

const maxShownCharacters = 2000;

/** A value as JSON on one line; of a long one its beginning, as a string, with how much there is. */
const shortJson = (value: unknown, most: number): string => {
  const json = quoteJson(value);
  if (json.length <= most) return json;
  return `(first ${most} of ${json.length} characters) ${quote(excerpt(json, most))}`;
};

type Called = { toolName: string; input: unknown; output?: unknown };

/** `called name({…}) [status] → {…}`, on one line. A text, which is quoted, can never look like it (S2). */
export const callLine = (
  { toolName, input, output }: Called,
  { status, most = maxShownCharacters }: { status?: string; most?: number } = {},
): string =>
  [
    `called ${/^[\w.-]+$/.test(toolName) ? toolName : quote(toolName)}(${shortJson(input, most)})`,
    ...(status === undefined ? [] : [`[${status}]`]),
    ...(output === undefined ? [] : [`→ ${shortJson(output, most)}`]),
  ].join(" ");

type Shown = { name: string; input?: unknown; status: string; output?: unknown; error?: unknown };

/** A call that shows in a space, as it stands, with its output or its error. */
export const shownCall = ({ name, input, status, output, error }: Shown): string =>
  callLine({ toolName: name, input, output: output === undefined && error ? { error } : output }, { status });
