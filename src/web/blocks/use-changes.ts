import { useEffect, useState } from "react";
import type { BlockState, SpaceState } from "../../client/index.ts";
import { authorName } from "./block-words.ts";

/** Words for who hears the page: that somebody else changed the block. */
export const useChanges = ({ block, changedBy }: BlockState, space: SpaceState): string => {
  const [words, setWords] = useState("");
  const label = block?.label;
  const version = block?.version;
  const author = changedBy === null ? null : authorName(changedBy, space);
  useEffect(() => {
    if (author !== null && author !== "You" && label !== undefined && version !== undefined) {
      setWords(`${author} changed ${label} (version ${version})`);
    }
  }, [author, label, version]);
  return words;
};
