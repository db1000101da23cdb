/** Reads a line from left to right by its grammar; throws where the line is anything else. */
export class Reader {
  readonly #text: string;
  #at = 0;

  constructor(text: string) {
    this.#text = text;
  }

  get rest(): string {
    return this.#text.slice(this.#at);
  }

  fail(wanted: string): never {
    throw new Error(`expected ${wanted} at ${this.#at} of ${JSON.stringify(this.#text)}`);
  }

  /** Takes `text` if it comes next. */
  takes(text: string): boolean {
    if (!this.rest.startsWith(text)) return false;
    this.#at += text.length;
    return true;
  }

  take(text: string): void {
    if (!this.takes(text)) this.fail(text);
  }

  match(pattern: RegExp): string {
    const found = new RegExp(`^(?:${pattern.source})`).exec(this.rest)?.[0];
    if (found === undefined) this.fail(pattern.source);
    this.#at += found.length;
    return found;
  }

  string(): string {
    const value: unknown = JSON.parse(this.match(/"(?:[^"\\]|\\.)*"/));
    return typeof value === "string" ? value : this.fail("a string");
  }

  json(): unknown {
    const rest = this.rest;
    let depth = 0;
    let end = 0;
    do {
      const token = /^(?:"(?:[^"\\]|\\.)*"|[[\]{},:]|-?[\d.]+(?:[eE][+-]?\d+)?|true|false|null)/.exec(
        rest.slice(end),
      )?.[0];
      if (token === undefined) this.fail("JSON");
      if (token === "{" || token === "[") depth += 1;
      if (token === "}" || token === "]") depth -= 1;
      end += token.length;
    } while (depth > 0);
    this.#at += end;
    return JSON.parse(rest.slice(0, end));
  }

  /** A name as it is, or quoted where it holds anything unusual. */
  name(): string {
    return this.rest.startsWith('"') ? this.string() : this.match(/[A-Za-z0-9_*?#@/,.+ -]+/);
  }

  end(): void {
    if (this.rest !== "") this.fail("the line's end");
  }
}

/** A text's lines, as anything that reads it might break them. */
export const linesOf = (text: string): string[] => text.split(/\r\n|[\n\r\v\f\u0085\u2028\u2029]/);

type Origin = { [Field in "sender" | "event" | "space" | "type" | "name"]?: string | undefined };

/** `the plan "…" was due: "…"]`. */
const readRunOrigin = (reader: Reader): Origin => {
  const isNamed = reader.takes("the ");
  if (!isNamed) reader.take("a ");
  const type = reader.match(/plan|service/);
  reader.take(" ");
  const name = isNamed ? reader.string() : undefined;
  if (isNamed) reader.take(" ");
  const isBare = reader.takes(type === "plan" ? "was due]" : "sent an event]");
  if (isBare) return { type, name, event: undefined };
  reader.take(type === "plan" ? "was due: " : "sent ");
  const event = reader.string();
  reader.take("]");
  return { type, name, event };
};

/** `sent because …]`, after its bracket. */
export const readOrigin = (reader: Reader): Origin => {
  reader.take("sent because ");
  if (/^(?:a|the) (?:plan|service) /.test(reader.rest)) return readRunOrigin(reader);
  const where = (): string | undefined => (reader.takes("another space") ? undefined : reader.string());
  if (reader.takes("of an event in ")) {
    const space = where();
    reader.take("]");
    return { space };
  }
  const sender = reader.string();
  reader.take(" asked");
  let event: string | undefined;
  if (!reader.takes(" in ")) {
    reader.take(" ");
    event = reader.string();
    reader.take(" in ");
  }
  const space = where();
  reader.take("]");
  return { sender, event, space };
};
