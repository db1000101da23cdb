import { excerpt, quote, quoteJson } from "./quote.ts";

const maxShownCharacters = 2000;

/** A value as JSON on one line; of one longer than `most` characters its beginning, as a string, with how much there is. */
const shortJson = (value: unknown, most = maxShownCharacters): string => {
  const json = quoteJson(value);
  return json.length <= most ? json : `(first ${most} of ${json.length} characters) ${quote(excerpt(json, most))}`;
};

type Called = { toolName: string; input: unknown; output?: unknown };
type How = { status?: string; most?: number | undefined };

/** `called name({…}) [status] → {…}`, on one line. A text, which is quoted, can never look like it (S2). */
export const callLine = ({ toolName, input, output }: Called, { status, most }: How = {}): string =>
  [
    `called ${/^[\w.-]+$/.test(toolName) ? toolName : quote(toolName)}(${shortJson(input, most)})`,
    ...(status === undefined ? [] : [`[${status}]`]),
    ...(output === undefined ? [] : [`→ ${shortJson(output, most)}`]),
  ].join(" ");

type Shown = { name: string; input?: unknown; status: string; output?: unknown; error?: unknown };

/** A call that shows in a space, as it stands, with its output or its error. */
export const shownCall = ({ name, input, status, output, error }: Shown): string =>
  callLine({ toolName: name, input, output: output === undefined && error ? { error } : output }, { status });
