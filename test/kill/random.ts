/** Numbers that look random and are the same for the same seed, so that a run can be repeated (mulberry32). */
export type Random = {
  /** From `low` up to, and not including, `high`. */
  between(low: number, high: number): number;
  chance(probability: number): boolean;
  pick<T>(choices: readonly T[]): T;
};

export const seededRandom = (seed: number): Random => {
  let state = Math.imul(seed, 0x9e3779b9) >>> 0;
  const next = (): number => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
  const between = (low: number, high: number): number => low + next() * (high - low);
  return {
    between,
    chance: (probability) => next() < probability,
    pick: (choices) => {
      const chosen = choices[Math.floor(between(0, choices.length))];
      if (chosen === undefined) throw new Error("there is nothing to pick from");
      return chosen;
    },
  };
};
