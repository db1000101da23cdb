/** What was found wrong, each in a sentence. All three are empty where every promise was kept. */
export type Wrong = { lost: string[]; doubled: string[]; stuck: string[] };

export const counted = <Key>(keys: Iterable<Key>): Map<Key, number> => {
  const counts = new Map<Key, number>();
  for (const key of keys) counts.set(key, (counts.get(key) ?? 0) + 1);
  return counts;
};

/** Each expected one must be there once. */
export const once = (
  wrong: Wrong,
  expected: Iterable<string>,
  found: ReadonlyMap<string, number>,
  what: (id: string) => string,
): void => {
  for (const id of expected) {
    const times = found.get(id) ?? 0;
    if (times === 0) wrong.lost.push(`${what(id)}: not there`);
    if (times > 1) wrong.doubled.push(`${what(id)}: ${times} times`);
  }
};
