import { useEffect, useState } from "react";
import type { Entity } from "../../client/index.ts";
import { useSignedIn } from "../session/signed-in.ts";

const pageLimit = 100;
const maxPages = 10;

/** The people and agents that this person shares a space with; null while they load. Rejections become `problem`. */
export const useContacts = (): { contacts: readonly Entity[] | null; problem: string | null } => {
  const { client, entityId } = useSignedIn();
  const [contacts, setContacts] = useState<readonly Entity[] | null>(null);
  const [problem, setProblem] = useState<string | null>(null);
  useEffect(() => {
    let isWanted = true;
    const load = async (): Promise<Entity[]> => {
      const found: Entity[] = [];
      let cursor: string | null = null;
      for (let page = 0; page < maxPages; page += 1) {
        const answer: Awaited<ReturnType<typeof client.listEntities>> = await client.listEntities({
          limit: pageLimit,
          ...(cursor === null ? {} : { cursor }),
        });
        found.push(...answer.items.filter((entity) => entity.id !== entityId && entity.type !== "service"));
        cursor = answer.nextCursor;
        if (cursor === null) break;
      }
      return found;
    };
    load().then(
      (found) => isWanted && setContacts(found),
      (error: unknown) => isWanted && setProblem(error instanceof Error ? error.message : String(error)),
    );
    return () => {
      isWanted = false;
    };
  }, [client, entityId]);
  return { contacts, problem };
};
