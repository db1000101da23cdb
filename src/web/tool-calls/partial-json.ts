import { JSONParser } from "@streamparser/json";

const maxDepth = 64;

/**
 * The value that a JSON text has so far, while it is being written; undefined where it has none yet. Never throws: the
 * first mistake ends it, and what came before stays.
 */
export const parsePartialJson = (text: string): unknown => {
  const parser = new JSONParser({ emitPartialTokens: true, emitPartialValues: true });
  let root: unknown;
  parser.onError = () => undefined;
  parser.onValue = ({ value, key, parent, stack, partial }) => {
    if (stack.length > maxDepth) throw new Error("nested too deep to be shown");
    // The parser tells a text or number that breaks off, but does not store it. Half a `true` says nothing.
    const isShown = partial && (typeof value === "string" || typeof value === "number");
    if (isShown && parent && key !== undefined) Object.assign(parent, { [key]: value });
    if (!partial || isShown || parent) root = stack[1]?.value ?? parent ?? value;
  };
  parser.write(text.replace(endingsAndStrings, repaired));
  return root;
};

/** Strings, and what a number must not end with. */
const endingsAndStrings = /"[^"\\]*(?:\\.?[^"\\]*)*"?|(?<=\d)(?:\.|e[+-]?)$/gis;

/** A whole escape, one that breaks off, or a character that JSON wants escaped. */
const specials = /(\\(?:["\\/bfnrt]|u[\da-f]{4}))|(\\(?:u[\da-f]{0,3})?$)|[\\\p{Cc}]/giu;

/** Models write line breaks and unknown escapes into strings: these are shown as they were written. */
const repaired = (part: string): string =>
  part.startsWith('"')
    ? part.replace(specials, (found, whole?: string, cut?: string) =>
        cut === undefined ? (whole ?? JSON.stringify(found).slice(1, -1)) : "",
      )
    : "";
