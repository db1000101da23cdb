import type { SpaceListState } from "../../client/index.ts";
import { Icon } from "../look/icon.tsx";
import "./no-space.css";

type NoSpaceProps = { list: SpaceListState; onMenu: () => void; onCreate: () => void };

export const NoSpace = ({ list, onMenu, onCreate }: NoSpaceProps) => (
  <div className="no-space">
    <button type="button" className="icon-button only-narrow no-space-menu" aria-label="Show spaces" onClick={onMenu}>
      <Icon name="menu" />
    </button>
    {list.status === "ready" && (
      <>
        <h1>No space is open</h1>
        <p>
          {list.spaces.length === 0
            ? "You are not in any space yet. Create one, or ask somebody to add you to theirs."
            : "Pick one at the side."}
        </p>
        <button type="button" className="button button-primary" onClick={onCreate}>
          <Icon name="plus" size={18} /> New space
        </button>
      </>
    )}
  </div>
);
