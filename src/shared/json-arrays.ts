/** A bound parameter holds 2 MB of UTF-8 at most, of which a character takes three bytes at most. */
const maxArrayLength = 256 * 1024;

/**
 * The items, in their order, as the texts of JSON arrays: parameters of a query. None is longer than `maxLength`
 * characters, unless one item alone is.
 */
export const jsonArrays = (items: readonly unknown[], maxLength = maxArrayLength): string[] => {
  const arrays: string[] = [];
  let held: string[] = [];
  let length = 1;
  for (const item of items) {
    const text = JSON.stringify(item);
    if (held.length > 0 && length + text.length + 1 > maxLength) {
      arrays.push(`[${held.join()}]`);
      held = [];
      length = 1;
    }
    held.push(text);
    length += text.length + 1;
  }
  return held.length > 0 ? [...arrays, `[${held.join()}]`] : arrays;
};
