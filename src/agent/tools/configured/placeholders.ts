/**
 * A text with places for values: `{{input.x.y}}`, and `${secret.NAME}`. Parsed once, when it is written down; what
 * looks like a place and is none is refused, so that no slip is sent out as it stands.
 */
export type Part =
  | { kind: "text"; text: string }
  | { kind: "input"; path: string[] }
  | { kind: "secret"; name: string };

export type ParsedText = { ok: true; parts: Part[] } | { ok: false; message: string };

const place = /\{\{\s*input((?:\.[A-Za-z0-9_-]+)*)\s*\}\}|\$\{\s*secret\.([A-Za-z0-9_-]{1,64})\s*\}|\{\{|\$\{/g;

export const parsePlaceholders = (text: string): ParsedText => {
  const parts: Part[] = [];
  let from = 0;
  for (const match of text.matchAll(place)) {
    const [found, path, secret] = match;
    if (match.index > from) parts.push({ kind: "text", text: text.slice(from, match.index) });
    from = match.index + found.length;
    if (secret !== undefined) parts.push({ kind: "secret", name: secret });
    else if (path !== undefined) parts.push({ kind: "input", path: path.split(".").slice(1) });
    else {
      const near = JSON.stringify(text.slice(match.index, match.index + 40));
      return { ok: false, message: `must hold only {{input.…}} and \${secret.NAME} as places: ${near}` };
    }
  }
  if (from < text.length) parts.push({ kind: "text", text: text.slice(from) });
  return { ok: true, parts };
};

export const hasPlaces = (text: string): boolean => text.search(place) >= 0;

/** The value at a path of the input, own properties only; undefined where there is none. */
export const valueAt = (input: unknown, path: string[]): unknown =>
  path.reduce<unknown>((held, name) => {
    if (typeof held !== "object" || held === null || !Object.hasOwn(held, name)) return undefined;
    if (Array.isArray(held)) return /^\d+$/.test(name) ? held[Number(name)] : undefined;
    return (held as Record<string, unknown>)[name];
  }, input);
