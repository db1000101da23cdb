/** Words as a label: lower case, joined by `_`, at most 64 characters of [a-z0-9_]. Empty if no letter is left. */
export const slug = (text: string): string =>
  text
    .normalize("NFKD")
    .replace(/\p{M}/gu, "")
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, "_")
    .slice(0, 64)
    .replace(/^_+|_+$/g, "");
