/**
 * The most that all checks of one request may cost together, whatever it asks for. Applying patterns and schemas from
 * outside holds up everybody in this isolate. A check is synchronous: no other request's comes in between.
 */
const bounds = {
  /** The most that tests of patterns cost: sizes of the patterns' programs times the lengths of the texts. */
  maxPatternSteps: 4_000_000,
  /** The most that values cost to check, in steps of about 100 ns. */
  maxSchemaSteps: 1_000_000,
  /** The most instructions of the patterns that are written down at once. */
  maxRequestPatternSizes: 60_000,
  /** The most places that one edit of a block changes, however many operations it has. */
  maxEditSplices: 2000,
};
type Bound = keyof typeof bounds;

let spent: Record<Bound, number> | undefined;

/** Does what is checked for one request. What it calls shares its budget, also where that asks for one of its own. */
export const inOneBudget = <T>(work: () => T): T => {
  if (spent) return work();
  spent = { maxPatternSteps: 0, maxSchemaSteps: 0, maxRequestPatternSizes: 0, maxEditSplices: 0 };
  try {
    return work();
  } finally {
    spent = undefined;
  }
};

/** Whether the budget holds so much more. Call it before what it pays for. */
export const isAffordable = (bound: Bound, steps: number): boolean => {
  if (!spent) return steps <= bounds[bound];
  spent[bound] += steps;
  return spent[bound] <= bounds[bound];
};
