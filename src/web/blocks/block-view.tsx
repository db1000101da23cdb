import { useEffect, useState } from "react";
import type { Block, BlockDetail, BlockState, SpaceState } from "../../client/index.ts";
import { useBlock } from "../../client/react.ts";
import { IconButton } from "../look/icon.tsx";
import { full, short } from "../look/time.ts";
import { useSignedIn } from "../session/signed-in.ts";
import { BlockContent } from "./block-content.tsx";
import { BlockHistory } from "./block-history.tsx";
import { authorName } from "./block-words.ts";
import { mayNothing, mayWith } from "./part.ts";
import { RefusedEdits } from "./refused-edits.tsx";

/** `shared`: the block as the list of the space's blocks has it. */
type BlockViewProps = { space: SpaceState; shared: Block };

/** One live block: its content, its permissions and its last change. */
export const BlockView = ({ space, shared }: BlockViewProps) => {
  const { label } = shared;
  const { agentId = "", agentName = "" } = shared.sharedFrom ?? {};
  const { client, signOut } = useSignedIn();
  const { state, live } = useBlock(client, space.spaceId, agentId, label);
  const [isHistoryShown, setHistoryShown] = useState(false);
  const { block, connection } = state;
  const announced = useAnnouncement(state, space);

  useEffect(() => {
    if (connection.status === "closed" && connection.reason === "signed_out") signOut("expired");
  }, [connection, signOut]);

  const ended = endedWords(state);
  if (!block) return <p className="block-note soft">{ended ?? "Loading …"}</p>;
  const may = connection.status === "closed" ? mayNothing : mayWith(block.permission);
  const undo = (): void => void live?.edit([{ op: "undo" }]);
  return (
    <div className="block stack">
      <p className="small soft">
        {agentName} keeps it{permissionWords[block.permission] ?? "; you may read it"}.
      </p>
      {block.description !== "" && <p className="block-description wrap">{block.description}</p>}
      {ended && <p className="block-ended notice tone-warning">{ended}</p>}
      <RefusedEdits edits={state.edits} live={live} />
      <BlockContent block={block} state={state} live={live} space={space} may={may} />
      <div className="block-foot row between">
        <LastChange block={block} state={state} space={space} />
        <span className="block-foot-buttons">
          {may.change && (
            <IconButton
              icon="undo"
              size={18}
              label="Undo your last change"
              title="Undo your last change"
              onClick={undo}
            />
          )}
          <IconButton
            icon="clock"
            size={18}
            label="History"
            title="History"
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
  if (state.connection.status === "reconnecting" || state.connection.status === "offline") {
    return <span className="block-last tiny soft">The connection is lost. Reconnecting …</span>;
  }
  if (state.edits.some(({ status }) => status.kind !== "refused"))
    return <span className="block-last tiny soft">Saving …</span>;
  const by = state.changedBy === null ? "Changed" : `${authorName(state.changedBy, space)} changed it`;
  return (
    <time className="block-last tiny soft" dateTime={block.updatedAt} title={full(block.updatedAt)}>
      {by} · {short(block.updatedAt)}
    </time>
  );
};
