const list = new Intl.ListFormat("en", { type: "conjunction" });
const kinds = [
  ["human", "person", "people"],
  ["agent", "agent", "agents"],
  ["service", "service", "services"],
] as const;

/** How many people, agents and services read a space, in words: what people are shown before they let words out to it. */
export const readersIn = (members: readonly { type: string }[]): string => {
  const counts = kinds.flatMap(([kind, one, several]) => {
    const count = members.filter(({ type }) => type === kind).length;
    return count === 0 ? [] : `${count} ${count === 1 ? one : several}`;
  });
  return list.format(counts);
};
