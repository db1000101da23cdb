import { WholeCharacters } from "./whole-characters.ts";

/**
 * Reads the string of one top-level field out of JSON that is still being written: what a model is about to say,
 * while it writes the call that says it. Feed it the deltas, however they are cut; it gives the text as it comes.
 * Each piece that it gives is well-formed; there is none once the field has ended.
 */
type Place = "before-key" | "key" | "after-key" | "value" | "text" | "other";

const escapes: Record<string, string> = { n: "\n", t: "\t", r: "\r", b: "\b", f: "\f" };

export class TextField {
  readonly #field: string;
  #place: Place = "before-key";
  #depth = 0;
  #key = "";
  /** What follows a backslash so far, or null outside an escape. */
  #escape: string | null = null;
  #inString = false;
  #ended = false;
  readonly #whole = new WholeCharacters();

  constructor(field: string) {
    this.#field = field;
  }

  push(delta: string): string {
    let text = "";
    for (const character of delta.split("")) text += this.#read(character);
    return this.#whole.push(text);
  }

  #read(character: string): string {
    if (this.#ended) return "";
    if (this.#escape !== null) return this.#readEscape(character);
    if (this.#place === "text" || this.#place === "key") return this.#readString(character);
    if (this.#inString) {
      if (character === "\\") this.#escape = "";
      else if (character === '"') this.#inString = false;
      return "";
    }
    this.#readStructure(character);
    return "";
  }

  #readString(character: string): string {
    if (character === "\\") {
      this.#escape = "";
      return "";
    }
    if (character === '"') {
      if (this.#place === "text") this.#ended = true;
      this.#place = "after-key";
      return "";
    }
    return this.#emit(character);
  }

  #readEscape(character: string): string {
    const escaped = `${this.#escape}${character}`;
    if (escaped[0] === "u" && escaped.length < 5) {
      this.#escape = escaped;
      return "";
    }
    this.#escape = null;
    if (escaped[0] !== "u") return this.#emit(escapes[escaped] ?? escaped);
    const code = Number.parseInt(escaped.slice(1), 16);
    return this.#emit(Number.isNaN(code) ? "" : String.fromCharCode(code));
  }

  /** A decoded character belongs to the key that is read, to the text, or to nothing that matters. */
  #emit(decoded: string): string {
    if (this.#place === "text") return decoded;
    if (this.#place === "key") this.#key += decoded;
    return "";
  }

  #readStructure(character: string): void {
    if (character === "{" || character === "[") {
      this.#depth += 1;
      if (this.#place === "value") this.#place = "other";
    } else if (character === "}" || character === "]") {
      this.#depth -= 1;
    } else if (character === ",") {
      if (this.#depth === 1) this.#place = "before-key";
    } else if (character === ":") {
      if (this.#depth === 1 && this.#place === "after-key") this.#place = "value";
    } else if (character === '"') {
      this.#openString();
    } else if (this.#place === "value" && character.trim() !== "") {
      this.#place = "other";
    }
  }

  #openString(): void {
    if (this.#depth === 1 && this.#place === "before-key") {
      this.#place = "key";
      this.#key = "";
    } else if (this.#depth === 1 && this.#place === "value") {
      if (this.#key === this.#field) this.#place = "text";
      else {
        this.#place = "other";
        this.#inString = true;
      }
    } else {
      this.#inString = true;
    }
  }
}
