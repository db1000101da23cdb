import { JSONParser, TokenType } from "@streamparser/json";
import { z } from "zod";
import { agentHead, ExportedHead, exportedRows, exportVersion, type RowKind } from "../../protocol/exported-agent.ts";
import { ColloquyError } from "../../shared/errors.ts";
import { maxJsonDepth } from "../../shared/sound-json.ts";
import { type Arrived, checked, maxImportLineBytes, refused, tooLarge } from "./import-pages.ts";

/** The lists of a document of version 1, by the kinds of their rows. */
const lists = new Map<unknown, RowKind>(
  Object.entries({
    names: "name",
    memories: "memory",
    goals: "goal",
    plans: "plan",
    windows: "window",
    runs: "run",
    journal: "journal",
    summaries: "summary",
    blocks: "block",
    shares: "share",
    archival: "archival",
  } as const),
);
const headFields = Object.keys(agentHead);
const envelopeFields = ["format", "version", "exportedAt"];
const Head = ExportedHead.omit({ kind: true }).extend({ version: z.literal(1) });

const notJson = (why: string): ColloquyError => new ColloquyError("invalid_json", `The body is not JSON: ${why}.`);

/**
 * Reads a document of version 1: one JSON object with lists, in any order. Exports before version 2 wrote it; the next
 * version no longer reads it.
 */
export const readVersion1 = async function* (chunks: AsyncIterable<Uint8Array>): AsyncGenerator<Arrived> {
  const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: false });
  const parser = new JSONParser({
    paths: [
      ...envelopeFields.map((name) => `$.${name}`),
      ...headFields.map((name) => `$.agent.${name}`),
      ...[...lists.keys()].map((name) => `$.agent.${name}.*`),
    ],
    keepStack: false,
  });
  const head: { [field: string]: unknown } = {};
  const agent: { [field: string]: unknown } = {};
  let rows: Arrived[] = [];
  /** Bytes since the last value was whole. */
  let held = 0;

  const path: unknown[] = [];
  const met = new Set<string>();
  let depth = 0;
  let lastText: unknown;
  let opening: [TokenType, string] | undefined = [TokenType.LEFT_BRACE, "an object"];
  const meetField = (): void => {
    path.splice(depth - 1, 2, lastText);
    const name = path.join(".");
    const isKnown =
      depth === 1
        ? name === "agent" || envelopeFields.includes(name)
        : lists.has(lastText) || headFields.some((field) => field === lastText);
    if (!isKnown) throw refused(name, "is no field of an exported agent");
    if (met.has(name)) throw refused(name, "is there twice");
    met.add(name);
    if (name === "agent") opening = [TokenType.LEFT_BRACE, "an object"];
    if (depth === 2 && lists.has(lastText)) opening = [TokenType.LEFT_BRACKET, "a list"];
  };
  parser.onToken = ({ token, value }) => {
    if (opening && token !== opening[0]) throw refused(path.join("."), `must be ${opening[1]}`);
    opening = undefined;
    if (token === TokenType.STRING) lastText = value;
    if (token === TokenType.COLON && (depth === 1 || (depth === 2 && path[0] === "agent"))) meetField();
    if (token === TokenType.LEFT_BRACE || token === TokenType.LEFT_BRACKET) depth += 1;
    if (token === TokenType.RIGHT_BRACE || token === TokenType.RIGHT_BRACKET) depth -= 1;
    if (depth > 2 * maxJsonDepth) throw refused(path.join("."), `must not nest deeper than ${maxJsonDepth} levels`);
  };
  parser.onValue = ({ value, key, stack }) => {
    held = 0;
    if (stack.length === 1) head[String(key)] = value;
    else if (stack.length === 2) agent[String(key)] = value;
    else {
      const list = String(path[1]);
      const kind = lists.get(list);
      if (!kind) return;
      const at = ["agent", list, Number(key)];
      const row = checked(exportedRows[kind], value, at);
      rows.push({ at: at.join("."), line: { kind, row } as Arrived["line"] });
    }
  };
  const feed = (bytes?: Uint8Array): void => {
    try {
      parser.write(bytes ? decoder.decode(bytes, { stream: true }) : decoder.decode());
    } catch (error) {
      throw error instanceof ColloquyError ? error : notJson("check quotes, commas, brackets and that it is UTF-8");
    }
  };

  for await (const chunk of chunks) {
    held += chunk.length;
    feed(chunk);
    if (held > maxImportLineBytes) throw tooLarge(path.join("."), maxImportLineBytes, "maxImportLineBytes");
    yield* rows;
    rows = [];
  }
  feed();
  // A number alone never becomes a token: more digits may follow.
  if (!parser.isEnded && opening && held > 0) throw refused("", `must be ${opening[1]}`);
  if (!parser.isEnded) throw notJson("it ends in the middle");
  yield { at: "agent", line: { ...checked(Head, { ...head, agent }, []), kind: "agent", version: exportVersion } };
};
