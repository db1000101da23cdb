/**
 * Cuts bytes that arrive in chunks of any size into lines. A line longer than `maxLength` characters throws: a peer
 * that never ends its line must not fill the memory.
 */
export class LineDecoder {
  readonly #decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
  readonly #maxLength: number;
  #rest = "";

  constructor(maxLength: number) {
    this.#maxLength = maxLength;
  }

  /** The lines that this chunk completes, without blank ones. */
  push(chunk: Uint8Array): string[] {
    const lines = (this.#rest + this.#decoder.decode(chunk, { stream: true })).split("\n");
    this.#rest = lines.pop() ?? "";
    if (this.#rest.length > this.#maxLength)
      throw new RangeError(`a line is longer than ${this.#maxLength} characters`);
    return lines.filter((line) => line.trim().length > 0);
  }
}
