import { useCallback, useEffect, useState } from "react";
import type { Block, SpaceState } from "../../client/index.ts";
import { useSignedIn } from "../session/signed-in.ts";

export type SpaceBlocks =
  | { status: "loading" }
  | { status: "ready"; blocks: readonly Block[] }
  | { status: "failed"; message: string };

/** What an agent has said or done last: after that, it may share another block, or none any more. */
const lastDoing = ({ messages, active, members }: SpaceState): string => {
  const agents = new Set(members.filter(({ type }) => type === "agent").map(({ id }) => id));
  const said = messages.findLast(({ sender }) => agents.has(sender.id));
  return [said?.id, ...active.map(({ entityId }) => entityId), ...agents].join(" ");
};

/** The blocks that agents share with a space, asked for again whenever one of its agents has done something. */
export const useSpaceBlocks = (state: SpaceState): { list: SpaceBlocks; retry: () => void } => {
  const { client } = useSignedIn();
  const [list, setList] = useState<SpaceBlocks>({ status: "loading" });
  const [tries, setTries] = useState(0);
  const { spaceId } = state;
  const doing = lastDoing(state);

  // Each doing and each try asks again.
  useEffect(() => {
    let isCurrent = true;
    client.listBlocks(spaceId).then(
      (blocks) => isCurrent && setList({ status: "ready", blocks }),
      (error: unknown) => {
        const message = error instanceof Error ? error.message : String(error);
        // What is shown stays: it is better than nothing, and the next doing asks again.
        if (isCurrent) setList((known) => (known.status === "ready" ? known : { status: "failed", message }));
      },
    );
    return () => {
      isCurrent = false;
    };
  }, [client, spaceId, doing, tries]);

  const retry = useCallback(() => {
    setList({ status: "loading" });
    setTries((count) => count + 1);
  }, []);
  return { list, retry };
};
