import { useEffect, useRef, useState } from "react";
import type { Block, SpaceState } from "../../client/index.ts";
import { Avatar } from "../look/avatar.tsx";
import { Icon } from "../look/icon.tsx";
import { BlockView } from "./block-view.tsx";
import { type SpaceBlocks, useSpaceBlocks } from "./use-space-blocks.ts";
import "./blocks-panel.css";
import "./block.css";

type BlocksPanelProps = { state: SpaceState; onClose: () => void };

type Chosen = { agentId: string; agentName: string; label: string };

const chosenFrom = ({ label, sharedFrom }: Block): Chosen => ({
  label,
  agentId: sharedFrom?.agentId ?? "",
  agentName: sharedFrom?.agentName ?? "",
});

/** The one that opens by itself, since there is no other. */
const onlyIn = (list: SpaceBlocks): Chosen | null => {
  if (list.status !== "ready") return null;
  const [only] = list.blocks;
  return only && list.blocks.length === 1 ? chosenFrom(only) : null;
};

/** The documents that the space's agents share with its people: beside the timeline, or as a sheet over it. */
export const BlocksPanel = ({ state, onClose }: BlocksPanelProps) => {
  const { list, retry } = useSpaceBlocks(state);
  const [chosen, setChosen] = useState<Chosen | null>(null);
  const panel = useRef<HTMLElement>(null);
  useEffect(() => panel.current?.focus(), []);
  const only = onlyIn(list);
  // What is open stays, whatever comes to the list or goes: a person may be writing in it.
  if (chosen === null && only !== null) setChosen(only);
  const open = chosen ?? only;
  const isBackShown = open !== null && (only?.agentId !== open.agentId || only.label !== open.label);
  return (
    <>
      <button type="button" className="blocks-veil" tabIndex={-1} aria-hidden="true" onClick={onClose} />
      <aside
        className="blocks"
        aria-label="Blocks"
        tabIndex={-1}
        ref={panel}
        onKeyDown={(event) => event.key === "Escape" && onClose()}
      >
        <div className="blocks-head">
          {isBackShown && (
            <button type="button" className="icon-button" aria-label="All blocks" onClick={() => setChosen(null)}>
              <Icon name="back" />
            </button>
          )}
          <h2>{open?.label ?? "Blocks"}</h2>
          <button type="button" className="icon-button" aria-label="Close blocks" onClick={onClose}>
            <Icon name="close" />
          </button>
        </div>
        <div className="blocks-body">
          {open ? (
            <BlockView key={`${open.agentId} ${open.label}`} space={state} {...open} />
          ) : (
            <BlockList list={list} onOpen={setChosen} onRetry={retry} />
          )}
        </div>
      </aside>
    </>
  );
};

type BlockListProps = { list: SpaceBlocks; onOpen: (block: Chosen) => void; onRetry: () => void };

const BlockList = ({ list, onOpen, onRetry }: BlockListProps) => {
  if (list.status === "loading") return <p className="block-note">Loading …</p>;
  if (list.status === "failed") {
    return (
      <p className="block-note" role="alert">
        The blocks could not be loaded. {list.message}{" "}
        <button type="button" className="link-button" onClick={onRetry}>
          Try again
        </button>
      </p>
    );
  }
  if (list.blocks.length === 0) {
    return (
      <p className="block-note">
        Nothing is kept together here yet. What an agent shares with this space, a list or a text, stands here, and you
        can change it while the agent does.
      </p>
    );
  }
  return (
    <ul className="blocks-list">
      {list.blocks.map((block) => {
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
