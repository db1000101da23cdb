import { createHash } from "node:crypto";

/** JSON in its one form (RFC 8785): without blanks, each object's keys in order. What JSON does not know is left out. */
export const canonicalJson = (value: unknown): string => {
  if (Array.isArray(value)) return `[${value.map(canonicalJson).join(",")}]`;
  if (typeof value !== "object" || value === null) return JSON.stringify(value) ?? "null";
  const entries = Object.entries(value).filter(([, item]) => item !== undefined);
  // By UTF-16 code units, as `<` compares.
  entries.sort(([one], [other]) => (one < other ? -1 : 1));
  return `{${entries.map(([key, item]) => `${JSON.stringify(key)}:${canonicalJson(item)}`).join(",")}}`;
};

/** SHA-256 of a value's canonical JSON, in hexadecimal: the same for the same JSON value, whoever computes it. */
export const jsonHash = (value: unknown): string => createHash("sha256").update(canonicalJson(value)).digest("hex");
