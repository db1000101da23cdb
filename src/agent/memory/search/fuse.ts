/** Reciprocal rank fusion: how far the first ranks stand out. */
const rankOffset = 60;

/** Several rankings as one, best first: each adds 1 / (60 + rank) for what it holds, ranks from 1 on. */
export const fuse = <Id extends string | number>(rankings: Id[][], limit: number): { id: Id; score: number }[] => {
  const scores = new Map<Id, number>();
  for (const ranking of rankings) {
    for (const [index, id] of ranking.entries()) {
      scores.set(id, (scores.get(id) ?? 0) + 1 / (rankOffset + index + 1));
    }
  }
  return [...scores]
    .map(([id, score]) => ({ id, score }))
    .toSorted((one, other) => other.score - one.score)
    .slice(0, limit);
};
