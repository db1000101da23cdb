import type { Hash } from "node:crypto";
import type { z } from "zod";
import {
  CarriedHead,
  type CarriedItem,
  type CarriedItems,
  type CarriedList,
  carriedHead,
  carriedItems,
  carriedLists,
  ExportEnvelope,
  exportEnvelope,
} from "../../protocol/exported-agent.ts";
import { textBytes } from "../../protocol/text.ts";
import { ColloquyError } from "../../shared/errors.ts";
import { type JsonItem, JsonItems } from "../../shared/json-items.ts";
import { unsoundness } from "../../shared/sound-json.ts";
import { misshapen } from "../problems.ts";

/** The most that an exported agent may hold to be imported, in bytes: what Cloudflare takes of a request. */
export const maxImportBytes = 100_000_000;
/** What one item of it may hold, in bytes as JSON; a block comes with all of its history. */
const maxImportItemBytes = 2_000_000;
const maxImportBlockBytes = 16_000_000;
/** What is handed to the agent at a time. */
const pageCharacters = 1_000_000;
const pageItems = 500;

/** What a document holds beside its lists. */
export type ReadDocument = { envelope: ExportEnvelope; head: CarriedHead };

const isList = (name: unknown): name is CarriedList => carriedLists.some((list) => list === name);
const refused = (path: string, message: string): ColloquyError =>
  new ColloquyError("invalid_request", `In the body: ${path || "it"} ${message}.`, { issues: [{ path, message }] });

const check = <Schema extends z.ZodType>(
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

/**
 * Reads an exported agent as it arrives: each item is checked by itself, and items are handed on page by page. Throws
 * what is wrong, with its path.
 */
export class DocumentReader {
  readonly #hash: Hash;
  readonly #maxBytes: number;
  readonly #json: JsonItems;
  readonly #met = new Set<string>();
  readonly #top: Record<string, unknown> = {};
  readonly #head: Record<string, unknown> = {};
  #document: ReadDocument | undefined;
  #page: CarriedItems = {};
  #room = pageCharacters;
  #items = 0;
  #bytes = 0;

  /** `maxBytes`: of the whole document. */
  constructor(hash: Hash, maxBytes = maxImportBytes) {
    this.#hash = hash;
    this.#maxBytes = maxBytes;
    this.#json = new JsonItems({
      isOpened: (path, kind) => {
        const [first, list] = path;
        if (path.length === 0 || (path.length === 1 && first === "agent")) return kind === "object";
        return path.length === 2 && isList(list) && kind === "array";
      },
      met: (path) => this.#meet(path),
      room: ([, list]) => (list === "blocks" ? maxImportBlockBytes : maxImportItemBytes),
    });
  }

  /** A document without lists is one empty page. */
  async *pages(body: ReadableStream<Uint8Array>): AsyncGenerator<CarriedItems> {
    const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: false });
    for await (const bytes of arriving(body)) {
      this.#bytes += bytes.length;
      if (this.#bytes > this.#maxBytes) throw tooLarge(this.#maxBytes);
      this.#hash.update(bytes);
      for (const item of this.#json.feed(decoded(decoder, bytes))) {
        this.#take(item);
        if (this.#room <= 0 || this.#items >= pageItems) yield this.#turn();
      }
    }
    for (const item of this.#json.feed(decoded(decoder))) this.#take(item);
    for (const item of this.#json.end()) this.#take(item);
    this.#document = this.#whole();
    yield this.#turn();
  }

  /** What is no list. Once all pages were read. */
  get document(): ReadDocument {
    if (!this.#document) throw new Error("the document was not read to its end");
    return this.#document;
  }

  #meet(path: (string | number)[]): void {
    const name = path.join(".");
    const [first, field] = path;
    const isKnown =
      path.length === 1
        ? first === "agent" || String(first) in exportEnvelope
        : isList(field) || String(field) in carriedHead;
    // Own names only: an object has others.
    if (!isKnown || Object.hasOwn(Object.prototype, String(path.at(-1))))
      throw refused(name, "is no field of an exported agent");
    if (this.#met.has(name)) throw refused(name, "is there twice");
    this.#met.add(name);
  }

  #take({ path, value }: JsonItem): void {
    const [first, field, index] = path;
    if (first === undefined) throw refused("", "must be an exported agent: an object");
    if (first !== "agent") this.#top[String(first)] = value;
    else if (field === undefined) throw refused("agent", "must be an object");
    else if (!isList(field)) this.#head[String(field)] = value;
    else if (index === undefined) throw refused(`agent.${field}`, "must be a list");
    else this.#add(field, value, path);
  }

  #add<List extends CarriedList>(list: List, value: unknown, path: (string | number)[]): void {
    const item = check(carriedItems[list], value, path) as CarriedItem<List>;
    const text = JSON.stringify(item);
    if (list !== "blocks" && text.length * 3 > maxImportItemBytes && textBytes(text) > maxImportItemBytes) {
      throw new ColloquyError(
        "payload_too_large",
        `${path.join(".")} has more than ${maxImportItemBytes} bytes (maxImportItemBytes).`,
      );
    }
    const page = this.#page as { [Name in List]?: CarriedItem<List>[] };
    const items = page[list] ?? [];
    items.push(item);
    page[list] = items;
    this.#room -= text.length;
    this.#items += 1;
  }

  #turn(): CarriedItems {
    const page = this.#page;
    this.#page = {};
    this.#room = pageCharacters;
    this.#items = 0;
    return page;
  }

  #whole(): ReadDocument {
    return { envelope: check(ExportEnvelope, this.#top, []), head: check(CarriedHead, this.#head, ["agent"]) };
  }
}

export const tooLarge = (most = maxImportBytes): ColloquyError =>
  new ColloquyError("payload_too_large", `An import holds at most ${most} bytes (maxImportBytes).`);

/** A body whose sender went away is one that ends in the middle. */
const arriving = async function* (body: ReadableStream<Uint8Array>): AsyncGenerator<Uint8Array> {
  const reader = body.getReader();
  try {
    for (;;) {
      const { done, value } = await reader.read().catch(() => {
        throw new ColloquyError("invalid_json", "The body is not JSON: it ends in the middle.");
      });
      if (done) return;
      yield value;
    }
  } finally {
    await reader.cancel().catch(() => undefined);
  }
};

const decoded = (decoder: TextDecoder, bytes?: Uint8Array): string => {
  try {
    return bytes ? decoder.decode(bytes, { stream: true }) : decoder.decode();
  } catch {
    throw new ColloquyError("invalid_json", "The body is not JSON: it is not UTF-8.");
  }
};
