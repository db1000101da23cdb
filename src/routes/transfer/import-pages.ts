import type { Hash } from "node:crypto";
import type { z } from "zod";
import type { ExportedHead, ExportedRow } from "../../protocol/exported-agent.ts";
import { textBytes } from "../../protocol/text.ts";
import type { ImportedRow } from "../../protocol/transfer-rpc.ts";
import { ColloquyError } from "../../shared/errors.ts";
import { unsoundness } from "../../shared/sound-json.ts";
import { misshapen } from "../problems.ts";

/** The most that an exported agent may hold to be imported, in bytes: what Cloudflare takes of a request. */
export const maxImportBytes = 100_000_000;
/** The longest line, in bytes: a block comes with all of its history. Any other line has `maxImportRowBytes`. */
export const maxImportLineBytes = 16_000_000;
const maxImportRowBytes = 2_000_000;
/** The size of a page that the agent is given at a time. */
const pageCharacters = 1_000_000;
const pageRows = 500;

/** A line of a document, and its name in refusals. */
export type Arrived = { at: string; line: ExportedHead | ExportedRow };
/** Reads a document as it arrives. Throws the first mistake, with its place. */
export type DocumentReader = (chunks: AsyncIterable<Uint8Array>) => AsyncGenerator<Arrived>;

export const tooLarge = (what: string, bytes: number, bound: string): ColloquyError =>
  new ColloquyError("payload_too_large", `${what} has more than ${bytes} bytes (${bound}).`);

export const refused = (path: string, message: string): ColloquyError =>
  new ColloquyError("invalid_request", `In the body: ${path || "it"} ${message}.`, { issues: [{ path, message }] });

/** A value as a schema has it. `under` is where it stands in the body. */
export const checked = <Schema extends z.ZodType>(
  schema: Schema,
  value: unknown,
  under: (string | number)[],
): z.infer<Schema> => {
  const issue = unsoundness(value);
  if (issue) throw refused([...under, issue.path].filter((part) => part !== "").join("."), issue.message);
  const parsed = schema.safeParse(value);
  if (!parsed.success) throw misshapen(parsed.error, "body", under);
  return parsed.data;
};

/** The bytes of a body, at most `maxBytes`. Throws `invalid_json` where its sender goes away. */
export const bytesOf = async function* (
  body: ReadableStream<Uint8Array>,
  hash: Hash,
  maxBytes = maxImportBytes,
): AsyncGenerator<Uint8Array> {
  const reader = body.getReader();
  let length = 0;
  try {
    for (;;) {
      const { done, value } = await reader.read().catch(() => {
        throw new ColloquyError("invalid_json", "The body ends in the middle: it was not sent to its end.");
      });
      if (done) return;
      length += value.length;
      if (length > maxBytes) throw tooLarge("The import", maxBytes, "maxImportBytes");
      hash.update(value);
      yield value;
    }
  } finally {
    await reader.cancel().catch(() => undefined);
  }
};

type Page = { rows: ImportedRow[]; head?: ExportedHead };

/** The lines in pages. The head comes with one of them; a document without rows is one page. */
export const importPages = async function* (lines: AsyncIterable<Arrived>): AsyncGenerator<Page> {
  let page: Page = { rows: [] };
  let characters = 0;
  for await (const { at, line } of lines) {
    const text = JSON.stringify(line);
    if (line.kind !== "block" && text.length * 3 > maxImportRowBytes && textBytes(text) > maxImportRowBytes) {
      throw tooLarge(at, maxImportRowBytes, "maxImportRowBytes");
    }
    if (line.kind === "agent") page.head = line;
    else page.rows.push({ ...line, at });
    characters += text.length;
    if (characters < pageCharacters && page.rows.length < pageRows) continue;
    yield page;
    page = { rows: [] };
    characters = 0;
  }
  yield page;
};
