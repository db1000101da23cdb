/** The text after an `@`, for completion. Positions are in UTF-16 units of the text. */
export type MentionQuery = { start: number; text: string };

const maxQueryLength = 64;

/** The mention at the caret, or null. An `@` counts only at the beginning of a word. */
export const mentionQueryAt = (text: string, caret: number): MentionQuery | null => {
  const before = text.slice(0, caret);
  const start = before.lastIndexOf("@");
  if (start < 0 || caret - start > maxQueryLength) return null;
  if (start > 0 && !/[\s([{"'“‘]/.test(before.charAt(start - 1))) return null;
  const query = before.slice(start + 1);
  return /^\s|\n|\s{2}/.test(query) ? null : { start, text: query };
};

/** Names that begin with a query, then names with a later word that begins with it. */
export const matchingNames = <Named extends { name: string }>(people: readonly Named[], query: string): Named[] => {
  const wanted = query.toLocaleLowerCase();
  const begins = people.filter(({ name }) => name.toLocaleLowerCase().startsWith(wanted));
  const within = people.filter(
    (one) =>
      !begins.includes(one) &&
      one.name
        .toLocaleLowerCase()
        .split(/[\s_-]+/)
        .some((word) => word.startsWith(wanted)),
  );
  return [...begins, ...within];
};

/** The text with the mention completed, and the new place of the caret. */
export const completeMention = (
  text: string,
  query: MentionQuery,
  caret: number,
  name: string,
): { text: string; caret: number } => {
  const rest = text.slice(caret);
  const inserted = `@${name}${rest.startsWith(" ") ? "" : " "}`;
  const completed = text.slice(0, query.start) + inserted + rest;
  return { text: completed, caret: query.start + inserted.length + (rest.startsWith(" ") ? 1 : 0) };
};
