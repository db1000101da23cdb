import { ExportedLine } from "../../protocol/exported-agent.ts";
import { ColloquyError } from "../../shared/errors.ts";
import { type Arrived, checked, maxImportLineBytes, refused, tooLarge } from "./import-pages.ts";

/** The lines of bytes that come in pieces. No more than one line is held. */
const linesIn = async function* (chunks: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
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
      yield Buffer.concat(held);
      held = [];
      length = 0;
      number += 1;
      from = end + 1;
    }
    if (from < chunk.length) hold(chunk.subarray(from));
  }
  if (length > 0) yield Buffer.concat(held);
};

const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: false });

const jsonIn = (bytes: Uint8Array, at: string): unknown => {
  try {
    return JSON.parse(decoder.decode(bytes));
  } catch {
    throw new ColloquyError("invalid_json", `In the body: ${at} is not JSON in UTF-8, or was cut off.`);
  }
};

/** An exported agent: a head, rows, and a last line that says how many lines came before it. */
export const readLines = async function* (chunks: AsyncIterable<Uint8Array>): AsyncGenerator<Arrived> {
  let before = 0;
  let isWhole = false;
  for await (const bytes of linesIn(chunks)) {
    const at = `line ${before + 1}`;
    if (isWhole) throw refused(at, "follows the last line, of the kind end");
    const line = checked(ExportedLine, jsonIn(bytes, at), [at]);
    if (before === 0 && line.kind !== "agent") throw refused(`${at}.kind`, "must be agent: the head comes first");
    if (before > 0 && line.kind === "agent") throw refused(`${at}.kind`, "must not be agent: the head came before");
    if (line.kind === "end") {
      if (line.lines !== before) throw refused(`${at}.lines`, `must be ${before}: so many lines came before it`);
      isWhole = true;
    } else yield { at, line };
    before += 1;
  }
  if (!isWhole) {
    throw new ColloquyError(
      "invalid_json",
      `The body is cut off after line ${before}: its last line has the kind end.`,
    );
  }
};
