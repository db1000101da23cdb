import { useCallback, useState } from "react";
import type { Block, SpaceState } from "../../client/index.ts";
import { Avatar } from "../look/avatar.tsx";
import { IconButton } from "../look/icon.tsx";
import { useSignedIn } from "../session/signed-in.ts";
import { useRequest } from "../session/use-request.ts";
import { BlockView } from "./block-view.tsx";
import "./blocks-panel.css";
import "./block.css";

type BlocksPanelProps = { state: SpaceState; onClose: () => void };

type Chosen = { agentId: string; agentName: string; label: string };

const chosenFrom = ({ label, sharedFrom }: Block): Chosen => ({
  label,
  agentId: sharedFrom?.agentId ?? "",
  agentName: sharedFrom?.agentName ?? "",
});

/** Changes when an agent has said or done something, since it may have shared a block or stopped sharing one. */
const lastDoing = ({ messages, active, members }: SpaceState): string => {
  const agents = new Set(members.filter(({ type }) => type === "agent").map(({ id }) => id));
  const said = messages.findLast(({ sender }) => agents.has(sender.id));
  return [said?.id, ...active.map(({ entityId }) => entityId), ...agents].join(" ");
};

const takeFocus = (element: HTMLElement | null): void => element?.focus();

/** The blocks that the space's agents share with its people: beside the timeline, or as a sheet over it. */
export const BlocksPanel = ({ state, onClose }: BlocksPanelProps) => {
  const { client } = useSignedIn();
  const { spaceId } = state;
  const doing = lastDoing(state);
  // `doing` is a dependency so that each change of it requests the list again.
  const list = useRequest(useCallback(() => client.listBlocks(spaceId), [client, spaceId, doing]));
  const [chosen, setChosen] = useState<Chosen | null>(null);
  // The only block of a space opens by itself.
  const [only = null, ...others] = list.answer?.map(chosenFrom) ?? [];
  const alone = others.length === 0 ? only : null;
  // The open block stays when the list changes, since a person may be writing in it.
  if (chosen === null && alone !== null) setChosen(alone);
  const open = chosen ?? alone;
  const isBackShown = open !== null && (alone?.agentId !== open.agentId || alone.label !== open.label);
  return (
    <>
      <button type="button" className="blocks-veil" tabIndex={-1} aria-hidden="true" onClick={onClose} />
      <aside
        className="blocks"
        aria-label="Blocks"
        tabIndex={-1}
        ref={takeFocus}
        onKeyDown={(event) => event.key === "Escape" && onClose()}
      >
        <div className="blocks-head">
          {isBackShown && <IconButton icon="back" label="All blocks" onClick={() => setChosen(null)} />}
          <h2>{open?.label ?? "Blocks"}</h2>
          <IconButton icon="close" label="Close blocks" onClick={onClose} />
        </div>
        <div className="blocks-body">
          {open ? (
            <BlockView key={`${open.agentId} ${open.label}`} space={state} {...open} />
          ) : (
            <BlockList blocks={list.answer} problem={list.problem} onOpen={setChosen} onRetry={list.again} />
          )}
        </div>
      </aside>
    </>
  );
};

type BlockListProps = {
  blocks: readonly Block[] | null;
  problem: string | null;
  onOpen: (block: Chosen) => void;
  onRetry: () => void;
};

const BlockList = ({ blocks, problem, onOpen, onRetry }: BlockListProps) => {
  if (blocks === null && problem === null) return <p className="block-note">Loading …</p>;
  if (blocks === null) {
    return (
      <p className="block-note" role="alert">
        The blocks could not be loaded. {problem}{" "}
        <button type="button" className="link-button" onClick={onRetry}>
          Try again
        </button>
      </p>
    );
  }
  if (blocks.length === 0) {
    return (
      <p className="block-note">
        Nothing is kept together here yet. What an agent shares with this space, a list or a text, stands here, and you
        can change it while the agent does.
      </p>
    );
  }
  return (
    <ul className="blocks-list">
      {blocks.map((block) => {
        const one = chosenFrom(block);
        const preview = block.rendered.split("\n").find((line) => line.trim() !== "");
        return (
          <li key={`${one.agentId} ${block.label}`}>
            <button type="button" className="blocks-row" onClick={() => onOpen(one)}>
              <Avatar id={one.agentId} name={one.agentName} type="agent" size={30} />
              <span className="blocks-row-words">
                <span className="blocks-row-label">{block.label}</span>
                <span className="blocks-row-about">{block.description || preview || `kept by ${one.agentName}`}</span>
              </span>
            </button>
          </li>
        );
      })}
    </ul>
  );
};
