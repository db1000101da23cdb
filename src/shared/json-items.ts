import { ColloquyError } from "./errors.ts";

/** A value of a JSON document that was read in pieces: `path` are the names that lead to it, and its place in a list. */
export type JsonItem = { path: (string | number)[]; value: unknown };

type Container = { kind: "object" | "array"; path: (string | number)[]; next: number };
/** What may come next, beside white space. */
type Expecting = "value" | "first-value" | "first-name" | "name" | "colon" | "comma" | "end";
type Held = "name" | "text" | "nested" | "plain";

export type JsonReading = {
  /** Whether what begins here is looked into; what is not is handed over whole. */
  isOpened(path: (string | number)[], kind: "object" | "array"): boolean;
  /** A field was met, before its value is read: throws where it is not wanted. */
  met(path: (string | number)[]): void;
  /** Characters that a value at this path may have. Throws past it. */
  room(path: (string | number)[]): number;
};

const isBlank = (character: string): boolean =>
  character === " " || character === "\n" || character === "\r" || character === "\t";
const wrong = (what: string): ColloquyError => new ColloquyError("invalid_json", `The body is not JSON: ${what}.`);

/**
 * Reads one JSON document as it arrives, and hands it over value by value: no more than one of them is ever held.
 *
 * Invariants
 * 1. What is handed over was parsed by `JSON.parse`; what lies between is as JSON has it, or the reading ends.
 */
export class JsonItems {
  readonly #reading: JsonReading;
  readonly #open: Container[] = [];
  #expecting: Expecting = "value";
  /** Where the value that is read stands. */
  #path: (string | number)[] = [];
  #held: Held | undefined;
  #parts: string[] = [];
  #length = 0;
  #depth = 0;
  #inText = false;
  #isEscaped = false;

  constructor(reading: JsonReading) {
    this.#reading = reading;
  }

  /** The values that this piece completes. Throws `invalid_json`. */
  *feed(piece: string): Generator<JsonItem> {
    let at = 0;
    while (at < piece.length) {
      if (this.#held !== undefined) {
        const end = this.#endOf(piece, at);
        this.#keep(piece.slice(at, end ?? piece.length));
        if (end === undefined) return;
        at = end;
        yield* this.#completed();
        continue;
      }
      const character = piece[at] ?? "";
      if (isBlank(character)) at += 1;
      else at += this.#step(character);
    }
  }

  /** There is nothing more. Throws `invalid_json` where the document is not whole. */
  *end(): Generator<JsonItem> {
    if (this.#held === "plain" && this.#open.length === 0) yield* this.#completed();
    if (this.#held !== undefined || this.#expecting !== "end") throw wrong("it ends in the middle");
  }

  /** Answers how far it went: a character that begins a value is read again as a part of it. */
  #step(character: string): number {
    const container = this.#open.at(-1);
    switch (this.#expecting) {
      case "value":
      case "first-value":
        if (this.#expecting === "first-value" && character === "]") return this.#close(character);
        return this.#begin(character);
      case "first-name":
      case "name":
        if (this.#expecting === "first-name" && character === "}") return this.#close(character);
        if (character !== '"') throw wrong("a field has no name");
        this.#hold("name");
        return 0;
      case "colon":
        if (character !== ":") throw wrong("a colon is missing");
        this.#expecting = "value";
        return 1;
      case "comma":
        if (character !== ",") return this.#close(character);
        this.#expecting = container?.kind === "object" ? "name" : "value";
        if (container?.kind === "array") this.#path = [...container.path, container.next];
        return 1;
      case "end":
        throw wrong("something follows its end");
    }
  }

  #begin(character: string): number {
    const kind = character === "{" ? "object" : character === "[" ? "array" : undefined;
    if (kind && this.#reading.isOpened(this.#path, kind)) {
      this.#open.push({ kind, path: this.#path, next: 0 });
      this.#expecting = kind === "object" ? "first-name" : "first-value";
      if (kind === "array") this.#path = [...this.#path, 0];
      return 1;
    }
    this.#hold(kind ? "nested" : character === '"' ? "text" : "plain");
    return 0;
  }

  #close(character: string): number {
    const container = this.#open.pop();
    if (!container || character !== (container.kind === "object" ? "}" : "]"))
      throw wrong("a comma or a bracket is missing");
    this.#path = container.path;
    this.#settle();
    return 1;
  }

  /** A value has ended. */
  #settle(): void {
    const container = this.#open.at(-1);
    if (container?.kind === "array") container.next += 1;
    this.#expecting = container ? "comma" : "end";
  }

  #hold(what: Held): void {
    this.#held = what;
    this.#parts = [];
    this.#length = 0;
    this.#depth = 0;
    this.#inText = false;
    this.#isEscaped = false;
  }

  #keep(part: string): void {
    this.#parts.push(part);
    this.#length += part.length;
    const room = this.#held === "name" ? 1000 : this.#reading.room(this.#path);
    if (this.#length <= room) return;
    throw new ColloquyError(
      "payload_too_large",
      `${this.#path.join(".") || "A name"} has more than ${room} characters.`,
    );
  }

  /** Where what is held ends in this piece, from `from` on. */
  #endOf(piece: string, from: number): number | undefined {
    const isPlain = this.#held === "plain";
    for (let at = from; at < piece.length; at += 1) {
      const code = piece.charCodeAt(at);
      if (isPlain) {
        // , ] } or white space
        if (code === 44 || code === 93 || code === 125 || code === 32 || (code >= 9 && code <= 13)) return at;
        continue;
      }
      if (this.#inText) {
        if (this.#isEscaped) this.#isEscaped = false;
        else if (code === 92) this.#isEscaped = true;
        else if (code === 34) {
          this.#inText = false;
          if (this.#depth === 0) return at + 1;
        }
        continue;
      }
      if (code === 34) this.#inText = true;
      else if (code === 123 || code === 91) this.#depth += 1;
      else if (code === 125 || code === 93) {
        this.#depth -= 1;
        if (this.#depth === 0) return at + 1;
      }
    }
    return undefined;
  }

  *#completed(): Generator<JsonItem> {
    const held = this.#held;
    const value = parsed(this.#parts.join(""));
    this.#held = undefined;
    this.#parts = [];
    if (held === "name") {
      const container = this.#open.at(-1);
      this.#path = [...(container?.path ?? []), String(value)];
      this.#reading.met(this.#path);
      this.#expecting = "colon";
      return;
    }
    const path = this.#path;
    this.#settle();
    yield { path, value };
  }
}

const parsed = (text: string): unknown => {
  try {
    return JSON.parse(text);
  } catch {
    throw wrong("check quotes, commas and brackets");
  }
};
