import type { Hash } from "node:crypto";
import * as z from "zod";
import type { ImportedRow } from "../protocol/agent-rpc.ts";
import {
  agentHead,
  ExportedHead,
  ExportedLine,
  type ExportedRow,
  exportedRows,
  exportVersion,
  type RowKind,
  rowKinds,
} from "../protocol/exported-agent.ts";
import { textBytes } from "../protocol/text.ts";
import { ColloquyError } from "../shared/errors.ts";
import { excess, unsoundness } from "../shared/sound-json.ts";
import { misshapen } from "./problems.ts";

/** Reads an exported agent as it arrives. Refuses the first mistake, with its place. */

/** The most that an exported agent may hold to be imported, in bytes: what Cloudflare takes of a request. */
export const maxImportBytes = 100_000_000;
/** The longest line, in bytes: a block comes with all of its history. Any other line has `maxImportRowBytes`. */
const maxImportLineBytes = 16_000_000;
const maxImportRowBytes = 2_000_000;
/** The most values of JSON in a line: more than a block with all of its history has. Others wait while it is parsed. */
const maxImportValues = 400_000;
/** The size of a page that the agent is given at a time. */
const pageCharacters = 1_000_000;
const pageRows = 500;

/** A line of a document, and its name in refusals. */
export type Arrived = { at: string; line: ExportedHead | ExportedRow };
export type DocumentReader = (chunks: AsyncIterable<Uint8Array>) => AsyncGenerator<Arrived>;

export const tooLarge = (what: string, bytes: number, bound: string): ColloquyError =>
  new ColloquyError("payload_too_large", `${what} has more than ${bytes} bytes (${bound}).`);

const refused = (path: string, message: string): ColloquyError =>
  new ColloquyError("invalid_request", `In the body: ${path || "it"} ${message}.`, { issues: [{ path, message }] });

/** A value as a schema has it. `under` is where it stands in the body. */
const checked = <Schema extends z.ZodType>(
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

const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: false });

const jsonIn = (bytes: Uint8Array[], at: string, refusal: string): unknown => {
  try {
    const text = decoder.decode(Buffer.concat(bytes));
    const issue = excess(text, maxImportValues, "maxImportValues");
    if (issue) throw refused(at, issue.message);
    return JSON.parse(text);
  } catch (error) {
    throw error instanceof ColloquyError ? error : new ColloquyError("invalid_json", refusal);
  }
};

/** The lines of bytes that come in pieces. No more than one line is held. */
const linesIn = async function* (chunks: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array[]> {
  let held: Uint8Array[] = [];
  let length = 0;
  let number = 1;
  const hold = (bytes: Uint8Array): void => {
    length += bytes.length;
    if (length > maxImportLineBytes) throw tooLarge(`line ${number}`, maxImportLineBytes, "maxImportLineBytes");
    held.push(bytes);
  };
  for await (const chunk of chunks) {
    let from = 0;
    for (let end = chunk.indexOf(0x0a); end >= 0; end = chunk.indexOf(0x0a, from)) {
      hold(chunk.subarray(from, end));
      yield held;
      held = [];
      length = 0;
      number += 1;
      from = end + 1;
    }
    if (from < chunk.length) hold(chunk.subarray(from));
  }
  if (length > 0) yield held;
};

/** An exported agent: a head, rows, and a last line that says how many lines came before it. */
export const readLines: DocumentReader = async function* (chunks) {
  let before = 0;
  let isWhole = false;
  for await (const bytes of linesIn(chunks)) {
    const at = `line ${before + 1}`;
    if (isWhole) throw refused(at, "follows the last line, of the kind end");
    const json = jsonIn(bytes, at, `In the body: ${at} is not JSON in UTF-8, or was cut off.`);
    const line = checked(ExportedLine, json, [at]);
    if (before === 0 && line.kind !== "agent") throw refused(`${at}.kind`, "must be agent: the head comes first");
    if (before > 0 && line.kind === "agent") throw refused(`${at}.kind`, "must not be agent: the head came before");
    if (line.kind === "end") {
      if (line.lines !== before) throw refused(`${at}.lines`, `must be ${before}: so many lines came before it`);
      isWhole = true;
    } else yield { at, line };
    before += 1;
  }
  const detail = `The body is cut off after line ${before}: its last line has the kind end.`;
  if (!isWhole) throw new ColloquyError("invalid_json", detail);
};

/** The list of each kind of row in a document of version 1. */
const listOf = (kind: RowKind): string => {
  if (kind === "journal" || kind === "archival") return kind;
  return kind === "memory" ? "memories" : kind === "summary" ? "summaries" : `${kind}s`;
};
const Version1Head = ExportedHead.omit({ kind: true }).extend({ version: z.literal(1) });

/** The fields of a part of a document of version 1, which has no others than `known`. */
const fieldsOf = (value: unknown, under: string[], known: string[]): Record<string, unknown> => {
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    throw refused(under.join("."), "must be an object");
  }
  const unknown = Object.keys(value).find((name) => !known.includes(name));
  if (unknown !== undefined) throw refused([...under, unknown].join("."), "is no field of an exported agent");
  return { ...value };
};

/**
 * Reads a document of version 1: one JSON object with lists. Exports before version 2 wrote it; the next version no
 * longer reads it. It is held as a whole, so it is no longer than a line may be.
 */
export const readVersion1: DocumentReader = async function* (chunks) {
  const held: Uint8Array[] = [];
  let length = 0;
  for await (const chunk of chunks) {
    length += chunk.length;
    if (length > maxImportLineBytes) throw tooLarge("The import", maxImportLineBytes, "maxImportLineBytes");
    held.push(chunk);
  }
  const json = jsonIn(held, "", "The body is not JSON: check quotes, commas, brackets and that it is UTF-8.");
  const document = fieldsOf(json, [], ["format", "version", "exportedAt", "agent"]);
  const agent = fieldsOf(document.agent, ["agent"], [...Object.keys(agentHead), ...rowKinds.map(listOf)]);
  const own = Object.fromEntries(Object.entries(agent).filter(([name]) => name in agentHead));
  const head = checked(Version1Head, { ...document, agent: own }, []);
  yield { at: "agent", line: { ...head, kind: "agent", version: exportVersion } };
  for (const kind of rowKinds) {
    const list = listOf(kind);
    const rows = agent[list] ?? [];
    if (!Array.isArray(rows)) throw refused(`agent.${list}`, "must be a list");
    for (const [index, value] of rows.entries()) {
      const at = ["agent", list, index];
      yield { at: at.join("."), line: { kind, row: checked(exportedRows[kind], value, at) } as ExportedRow };
    }
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
