const isObject = (value: unknown): value is Record<string, unknown> => typeof value === "object" && value !== null;

/** Whether two values are one JSON value: the order of an object's keys means nothing, an undefined one is none. */
export const sameJson = (one: unknown, other: unknown): boolean => {
  if (one === other) return true;
  if (!isObject(one) || !isObject(other) || Array.isArray(one) !== Array.isArray(other)) return false;
  const keys = new Set([...Object.keys(one), ...Object.keys(other)]);
  return [...keys].every((key) => sameJson(one[key], other[key]));
};
