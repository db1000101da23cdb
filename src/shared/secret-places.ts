/** A place of a template, for an input or a secret, or what only looks like one. */
export const place = /\{\{\s*input((?:\.[A-Za-z0-9_-]+)*)\s*\}\}|\$\{\s*secret\.([A-Za-z0-9_-]{1,64})\s*\}|\{\{|\$\{/g;

const textsIn = (value: unknown): string[] => {
  if (typeof value === "string") return [value];
  return typeof value === "object" && value !== null ? Object.entries(value).flat().flatMap(textsIn) : [];
};

/**
 * The names of the secrets that stand in the texts of a value, each once. Who sends it and who checks what it may send
 * both read it by this (L9).
 */
export const secretNames = (value: unknown): string[] => {
  const places = textsIn(value).flatMap((text) => [...text.matchAll(place)]);
  return [...new Set(places.flatMap(([, , secret]) => secret ?? []))];
};
