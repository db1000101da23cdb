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
