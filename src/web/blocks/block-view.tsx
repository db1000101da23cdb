import { useEffect, useState } from "react";
import type { Block, BlockDetail, BlockState, LiveBlock, PendingEdit, SpaceState } from "../../client/index.ts";
import { useBlock } from "../../client/react.ts";
import { Button, IconButton } from "../look/button.tsx";
import { Icon } from "../look/icon.tsx";
import { short, Time } from "../look/time.tsx";
import { useSignedIn, useSignedOut } from "../session/session.ts";
import { BlockContent } from "./block-content.tsx";
import { BlockHistory } from "./block-history.tsx";
import { authorName, editWords } from "./block-words.ts";
import { mayNothing, mayWith } from "./part.tsx";

/** `shared`: the block as the list of the space's blocks has it. */
type BlockViewProps = { space: SpaceState; shared: Block };

/** One live block: its content, its permissions and its last change. */
export const BlockView = ({ space, shared }: BlockViewProps) => {
  const { label } = shared;
  const { agentId = "", agentName = "" } = shared.sharedFrom ?? {};
  const { client } = useSignedIn();
  const { state, live } = useBlock(client, space.spaceId, agentId, label);
  const [isHistoryShown, setHistoryShown] = useState(false);
  const { block, connection } = state;
  const announced = useAnnouncement(state, space);
  useSignedOut(connection);

  const ended = endedWords(state);
  if (!block) return <p className="block-note soft">{ended ?? "Loading …"}</p>;
  const may = connection.status === "closed" ? mayNothing : mayWith(block.permission);
  const tool = (icon: "undo" | "clock", title: string) => ({ icon, size: 18, label: title, title });
  return (
    <div className="block stack">
      <p className="small soft">
        {agentName} keeps it{permissionWords[block.permission] ?? "; you may read it"}.
        {block.confidential === "allowed" && " What is written here may be read in other spaces."}
      </p>
      {block.description !== "" && <p className="pretty wrap">{block.description}</p>}
      {ended && <p className="block-ended notice tone-warning">{ended}</p>}
      <RefusedEdits edits={state.edits} live={live} />
      <BlockContent block={block} state={state} live={live} space={space} may={may} />
      <div className="block-foot row between">
        <LastChange block={block} state={state} space={space} />
        <span>
          {may.change && (
            <IconButton {...tool("undo", "Undo your last change")} onClick={() => live?.edit([{ op: "undo" }])} />
          )}
          <IconButton
            {...tool("clock", "History")}
            aria-expanded={isHistoryShown}
            onClick={() => setHistoryShown((isShown) => !isShown)}
          />
        </span>
      </div>
      {isHistoryShown && (
        <BlockHistory block={{ spaceId: space.spaceId, agentId, label }} version={block.version} space={space} />
      )}
      <p className="visually-hidden" role="status">
        {announced}
      </p>
    </div>
  );
};

const permissionWords: Partial<Record<Block["permission"], string>> = {
  Append: "; you may add to it",
  ReadWrite: "; you may add to it and change it",
  Admin: "; you may add to it, change it and delete from it",
};

const endedWords = ({ connection, block }: BlockState): string | null => {
  if (connection.status !== "closed") return null;
  if (connection.reason === "deleted") return "This block was deleted.";
  if (connection.reason !== "removed") return null;
  return block ? "This block is not shared with this space any more." : "This block is not shared here.";
};

/** Tells a screen reader that somebody else changed the block. */
const useAnnouncement = ({ block, changedBy }: BlockState, space: SpaceState): string => {
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

const LastChange = ({ block, state, space }: { block: BlockDetail; state: BlockState; space: SpaceState }) => {
  const { connection, edits, changedBy } = state;
  const isLost = connection.status === "reconnecting" || connection.status === "offline";
  const isSaving = edits.some(({ status }) => status.kind !== "refused");
  if (isLost || isSaving) {
    return <span className="tiny soft">{isLost ? "The connection is lost. Reconnecting …" : "Saving …"}</span>;
  }
  const by = changedBy === null ? "Changed" : `${authorName(changedBy, space)} changed it`;
  return (
    <Time iso={block.updatedAt} className="tiny soft">
      {by} · {short(block.updatedAt)}
    </Time>
  );
};

/** Edits that were not stored, with the reason and the written text: to retry, copy or discard. */
const RefusedEdits = ({ edits, live }: { edits: readonly PendingEdit[]; live: LiveBlock | null }) => (
  <div role="alert" className="block-refusals stack">
    {edits.map(({ key, operations, status }) => {
      const [operation] = operations;
      if (status.kind !== "refused" || !operation) return null;
      const { doing, text } = editWords(operation);
      return (
        <div key={key} className="notice stack">
          <p className="icon-line danger wrap">
            <Icon name="warning" size={17} />
            <span>
              {doing} was not stored. {status.message}
            </span>
          </p>
          {text !== "" && <p className="block-text block-excerpt wrap">{text}</p>}
          <div className="buttons">
            <Button onClick={() => live?.retry(key)}>Try again</Button>
            <Button look="plain" onClick={() => live?.discard(key)}>
              Discard
            </Button>
          </div>
        </div>
      );
    })}
  </div>
);
