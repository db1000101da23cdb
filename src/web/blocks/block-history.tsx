import { useCallback, useEffect, useState } from "react";
import type { BlockChange, BlockRef, SpaceState } from "../../client/index.ts";
import { full, short } from "../look/time.ts";
import { useSignedIn } from "../session/signed-in.ts";
import { authorName, changeWords } from "./block-words.ts";
import "./block-history.css";

type BlockHistoryProps = { block: BlockRef; version: number; space: SpaceState };

type Pages = { items: readonly BlockChange[]; nextCursor: string | null };

const wordsOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));

/** Who changed a block, when and how; each version can be read. */
export const BlockHistory = ({ block, version, space }: BlockHistoryProps) => {
  const { client } = useSignedIn();
  const { spaceId, agentId, label } = block;
  const [pages, setPages] = useState<Pages | null>(null);
  const [problem, setProblem] = useState<string | null>(null);
  const [read, setRead] = useState<{ version: number; rendered: string } | null>(null);

  // Each new version asks again.
  useEffect(() => {
    let isCurrent = true;
    client.blockHistory({ spaceId, agentId, label }, { limit: 20 }).then(
      (page) => isCurrent && setPages(page),
      (error: unknown) => isCurrent && setProblem(wordsOf(error)),
    );
    return () => {
      isCurrent = false;
    };
  }, [client, spaceId, agentId, label, version]);

  const more = useCallback(async (): Promise<void> => {
    if (!pages?.nextCursor) return;
    try {
      const next = await client.blockHistory({ spaceId, agentId, label }, { cursor: pages.nextCursor, limit: 50 });
      setPages({ items: [...pages.items, ...next.items], nextCursor: next.nextCursor });
    } catch (error) {
      setProblem(wordsOf(error));
    }
  }, [client, spaceId, agentId, label, pages]);

  const look = async (wanted: number): Promise<void> => {
    if (read?.version === wanted) return setRead(null);
    try {
      const { rendered } = await client.getBlock(block, wanted);
      setRead({ version: wanted, rendered });
      setProblem(null);
    } catch (error) {
      setProblem(wordsOf(error));
    }
  };

  return (
    <section className="block-history" aria-label="History">
      {problem && (
        <p className="field-error" role="alert">
          {problem}
        </p>
      )}
      <ol>
        {pages?.items.map((change) => (
          <li key={change.version}>
            <button
              type="button"
              className="block-version"
              aria-expanded={read?.version === change.version}
              aria-label={`Version ${change.version}: ${authorName(change.author, space, change.authorName)} ${changeWords(change)}`}
              onClick={() => void look(change.version)}
            >
              <span className="block-version-words">
                <strong>{authorName(change.author, space, change.authorName)}</strong> {changeWords(change)}
              </span>
              <time dateTime={change.createdAt} title={full(change.createdAt)}>
                {short(change.createdAt)}
              </time>
            </button>
            {read?.version === change.version && (
              <pre className="block-version-read">{read.rendered || "(it was empty)"}</pre>
            )}
          </li>
        ))}
      </ol>
      {pages?.nextCursor && (
        <button type="button" className="link-button" onClick={() => void more()}>
          Show older
        </button>
      )}
    </section>
  );
};
