import { useEffect, useState } from "react";
import { type BlockChange, type BlockRef, messageOf, type Page, type SpaceState } from "../../client/index.ts";
import { LinkButton } from "../look/button.tsx";
import { Time } from "../look/time.tsx";
import { useSignedIn } from "../session/session.ts";
import { authorName, changeWords } from "./block-words.ts";

type BlockHistoryProps = { block: BlockRef; version: number; space: SpaceState };

/** Who changed a block, when and how; each version can be read. */
export const BlockHistory = ({ block, version, space }: BlockHistoryProps) => {
  const { client } = useSignedIn();
  const { spaceId, agentId, label } = block;
  const [pages, setPages] = useState<Page<BlockChange> | null>(null);
  const [problem, setProblem] = useState<string | null>(null);
  const [read, setRead] = useState<{ version: number; rendered: string } | null>(null);
  const fail = (error: unknown): void => setProblem(messageOf(error));

  // `version` is a dependency so that each new version requests the history again.
  useEffect(() => {
    let isCurrent = true;
    client.blockHistory({ spaceId, agentId, label }, { limit: 20 }).then(
      (page) => isCurrent && setPages(page),
      (error: unknown) => isCurrent && setProblem(messageOf(error)),
    );
    return () => {
      isCurrent = false;
    };
  }, [client, spaceId, agentId, label, version]);

  const more = async (cursor: string, items: readonly BlockChange[]): Promise<void> => {
    const next = await client.blockHistory(block, { cursor, limit: 50 });
    setPages({ items: [...items, ...next.items], nextCursor: next.nextCursor });
  };

  const look = async (wanted: number): Promise<void> => {
    if (read?.version === wanted) return setRead(null);
    const { rendered } = await client.getBlock(block, wanted);
    setRead({ version: wanted, rendered });
    setProblem(null);
  };

  const { items = [], nextCursor = null } = pages ?? {};
  return (
    <section aria-label="History">
      {problem && (
        <p className="small danger" role="alert">
          {problem}
        </p>
      )}
      <ol>
        {items.map((change) => {
          const author = authorName(change.author, space, change.authorName);
          const isRead = read?.version === change.version;
          return (
            <li key={change.version}>
              <button
                type="button"
                className="block-version baseline between small hoverable"
                aria-expanded={isRead}
                aria-label={`Version ${change.version}: ${author} ${changeWords(change)}`}
                onClick={() => void look(change.version).catch(fail)}
              >
                <span className="wrap">
                  <strong>{author}</strong> {changeWords(change)}
                </span>
                <Time iso={change.createdAt} className="soft numeric" />
              </button>
              {isRead && <pre className="wrap tiny">{read.rendered || "(it was empty)"}</pre>}
            </li>
          );
        })}
      </ol>
      {nextCursor && <LinkButton onClick={() => void more(nextCursor, items).catch(fail)}>Show older</LinkButton>}
    </section>
  );
};
