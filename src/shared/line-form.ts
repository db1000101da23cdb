import { jsonOf, quote } from "./quote.ts";

/** A place of a line: what may stand there, and how a value is written and read. */
type Slot<Names extends string> = {
  name: Names;
  pattern: string;
  write(value: string): string;
  read(written: string): string | undefined;
};
type Piece<Names extends string> = string | Slot<Names>;

/**
 * The form of a line of a prompt, which writes the line and reads it back. What participants wrote stands in it as JSON
 * strings, so none of it passes for the line's own structure (S2).
 */
export type LineForm<Names extends string> = {
  pieces: Piece<Names>[];
  write(values: Record<Names, string>): string;
  /** Undefined where the line as a whole does not have this form. */
  read(written: string): Record<Names, string> | undefined;
  /** The values of each place in a line that has this form, in order. */
  readAll(written: string): Record<Names, string>[];
};

const formOf = <Names extends string>(pieces: Piece<Names>[]): LineForm<Names> => {
  const slots = pieces.filter((piece) => typeof piece !== "string");
  const pattern = pieces
    .map((piece) => (typeof piece === "string" ? piece.replace(/[.*+?^${}()|[\]\\]/g, "\\$&") : `(${piece.pattern})`))
    .join("");
  const whole = new RegExp(`^${pattern}$`);
  const anywhere = new RegExp(pattern, "g");
  const isComplete = (values: object): values is Record<Names, string> =>
    Object.values(values).every((value) => typeof value === "string");
  const valuesOf = (groups: string[]): Record<Names, string> | undefined => {
    const values = Object.fromEntries(slots.map(({ name, read }, index) => [name, read(groups[index] ?? "")]));
    return isComplete(values) ? values : undefined;
  };
  return {
    pieces,
    // A loop: every line of every input is written here.
    write: (values) => {
      let written = "";
      for (const piece of pieces) written += typeof piece === "string" ? piece : piece.write(values[piece.name]);
      return written;
    },
    read: (written) => {
      const match = whole.exec(written);
      return match ? valuesOf(match.slice(1)) : undefined;
    },
    readAll: (written) => [...written.matchAll(anywhere)].flatMap((match) => valuesOf(match.slice(1)) ?? []),
  };
};

/** A form out of its literal text and smaller forms: line`${text("name")} (id: ${word("id")})`. */
export const line = <Names extends string>(
  literals: TemplateStringsArray,
  ...parts: Pick<LineForm<Names>, "pieces">[]
): LineForm<Names> =>
  formOf(
    literals.flatMap((literal, index): Piece<Names>[] => [
      ...(literal === "" ? [] : [literal]),
      ...(parts[index]?.pieces ?? []),
    ]),
  );

const stringIn = (json: string): string | undefined => {
  const value = jsonOf(json);
  return typeof value === "string" ? value : undefined;
};

export const quotedPattern = String.raw`"(?:[^"\\]|\\.)*"`;

/** Any text, quoted. */
export const text = <Name extends string>(name: Name): LineForm<Name> =>
  formOf([{ name, pattern: quotedPattern, write: quote, read: stringIn }]);

/** A text that matches the pattern, as it stands. The pattern holds no capturing group. */
export const raw = <Name extends string>(name: Name, pattern: string): LineForm<Name> =>
  formOf([{ name, pattern, write: (value) => value, read: (written) => written }]);

/** An id, a kind, a status. */
export const word = <Name extends string>(name: Name): LineForm<Name> => raw(name, String.raw`[\w.-]+`);

/** All that is left of the line. */
export const rest = <Name extends string>(name: Name): LineForm<Name> => raw(name, ".*");
