import { JSONParser } from "@streamparser/json";

/**
 * A text that comes in pieces, given on in pieces that are each well-formed Unicode: a half of a surrogate pair waits
 * for its other half, and becomes U+FFFD where none comes.
 */
export class WholeCharacters {
  #held = "";

  push(piece: string): string {
    const text = this.#held + piece;
    const last = text.charCodeAt(text.length - 1);
    this.#held = last >= 0xd800 && last <= 0xdbff ? text.slice(-1) : "";
    return (this.#held === "" ? text : text.slice(0, -1)).toWellFormed();
  }
}

const surrogate = /[\ud800-\udfff]/g;

/**
 * Reads `text` out of a call's input while the model writes it. Feed it the deltas, however they are cut; it gives the
 * text as it comes, in pieces that are each well-formed. After the first mistake in the JSON it gives none: such a call
 * is refused. A delta costs its own length and a copy of the text so far.
 */
export class TextField {
  readonly #parser = new JSONParser({ paths: ["$.text"], emitPartialTokens: true, emitPartialValues: true });
  readonly #whole = new WholeCharacters();
  #text = "";
  #ended = false;

  constructor() {
    this.#parser.onValue = ({ value, partial }) => {
      if (typeof value !== "string" || this.#ended) return;
      this.#text = value;
      this.#ended = partial !== true;
    };
    this.#parser.onError = () => undefined;
  }

  push(delta: string): string {
    const given = this.#text.length;
    // The parser keeps halves of a character apart, or joins them, only where they are escaped.
    this.#parser.write(delta.replace(surrogate, (half) => `\\u${half.charCodeAt(0).toString(16)}`));
    return this.#whole.push(this.#text.slice(given));
  }
}
