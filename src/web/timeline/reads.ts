import type { Message } from "../../client/index.ts";
import { list } from "./presence.ts";

/** The other spaces that an agent had read before it said this: `read "Board" (3 members, you are not one)`. */
export const readsInWords = (
  reads: NonNullable<Message["reads"]>,
  ownSpaces: Pick<ReadonlyMap<string, string>, "has">,
): string => {
  const each = reads.map(({ spaceId, name, members }) => {
    const count = `${members} ${members === 1 ? "member" : "members"}`;
    return `"${name}" (${count}${ownSpaces.has(spaceId) ? "" : ", you are not one"})`;
  });
  return `read ${list.format(each)}`;
};
