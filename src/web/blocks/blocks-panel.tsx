import { useCallback, useState } from "react";
import type { Block, SpaceState } from "../../client/index.ts";
import { Avatar } from "../look/avatar.tsx";
import { IconButton, LinkButton } from "../look/button.tsx";
import { Panel } from "../look/panel.tsx";
import { useSignedIn } from "../session/session.ts";
import { useRequest } from "../session/use-request.ts";
import { BlockView } from "./block-view.tsx";
import "./blocks-panel.css";
import "./block.css";

type BlocksPanelProps = { state: SpaceState; onClose: () => void };

/** A block with its agent: no two blocks of a space have the same key. */
const keyOf = ({ label, sharedFrom }: Block): string => `${sharedFrom?.agentId} ${label}`;

/** Changes when an agent has said or done something, since it may have shared a block or stopped sharing one. */
const lastDoing = ({ messages, active, members }: SpaceState): string => {
  const agents = new Set(members.filter(({ type }) => type === "agent").map(({ id }) => id));
  const said = messages.findLast(({ sender }) => agents.has(sender.id));
  return [said?.id, ...active.map(({ entityId }) => entityId), ...agents].join(" ");
};

/** The blocks that the space's agents share with its people: beside the timeline, or as a sheet over it. */
export const BlocksPanel = ({ state, onClose }: BlocksPanelProps) => {
  const { client } = useSignedIn();
  const { spaceId } = state;
  const doing = lastDoing(state);
  // `doing` is a dependency so that each change of it requests the list again.
  const list = useRequest(useCallback(() => client.listBlocks(spaceId), [client, spaceId, doing]));
  const [chosen, setChosen] = useState<Block | null>(null);
  // The only block of a space opens by itself.
  const alone = list.answer?.length === 1 ? (list.answer[0] ?? null) : null;
  // The open block stays when the list changes, since a person may be writing in it.
  if (chosen === null && alone !== null) setChosen(alone);
  const open = chosen ?? alone;
  const isBackShown = open !== null && (alone === null || keyOf(alone) !== keyOf(open));
  const heading = (
    <>
      {isBackShown && <IconButton icon="back" label="All blocks" onClick={() => setChosen(null)} />}
      <h2 className="ellipsis">{open?.label ?? "Blocks"}</h2>
    </>
  );
  return (
    <>
      <button type="button" className="blocks-veil veil" tabIndex={-1} aria-hidden="true" onClick={onClose} />
      <Panel name="Blocks" heading={heading} className="blocks" onClose={onClose}>
        <div className="blocks-body">
          {open ? (
            <BlockView key={keyOf(open)} space={state} shared={open} />
          ) : (
            <BlockList blocks={list.answer} problem={list.problem} onOpen={setChosen} onRetry={list.again} />
          )}
        </div>
      </Panel>
    </>
  );
};

type BlockListProps = {
  blocks: readonly Block[] | null;
  problem: string | null;
  onOpen: (block: Block) => void;
  onRetry: () => void;
};

const BlockList = ({ blocks, problem, onOpen, onRetry }: BlockListProps) => {
  if (blocks === null && problem === null) return <p className="block-note soft">Loading …</p>;
  if (blocks === null) {
    return (
      <p className="block-note soft" role="alert">
        The blocks could not be loaded. {problem} <LinkButton onClick={onRetry}>Try again</LinkButton>
      </p>
    );
  }
  if (blocks.length === 0) {
    return (
      <p className="block-note soft">
        Nothing is kept together here yet. What an agent shares with this space, a list or a text, stands here, and you
        can change it while the agent does.
      </p>
    );
  }
  return (
    <ul>
      {blocks.map((block) => {
        const { agentId = "", agentName = "" } = block.sharedFrom ?? {};
        const preview = block.rendered.split("\n").find((line) => line.trim() !== "");
        return (
          <li key={keyOf(block)}>
            <button type="button" className="row hoverable" onClick={() => onOpen(block)}>
              <Avatar id={agentId} name={agentName} type="agent" size={30} />
              <span className="words">
                <span className="ellipsis medium">{block.label}</span>
                <span className="ellipsis small soft">{block.description || preview || `kept by ${agentName}`}</span>
              </span>
            </button>
          </li>
        );
      })}
    </ul>
  );
};
