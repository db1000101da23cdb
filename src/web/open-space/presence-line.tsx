import type { SpaceState } from "../../client/index.ts";
import { presence, presenceText } from "../timeline/presence.ts";
import "./presence-line.css";

/** Who is at work or typing. Not a live region: the announcer tells what comes of it. */
export const PresenceLine = ({ state }: { state: SpaceState }) => {
  const doings = presence(state);
  return (
    <p className="presence">
      {doings.length > 0 && state.connection.status === "open" && (
        <>
          <span className="presence-dots" aria-hidden="true">
            <i />
            <i />
            <i />
          </span>
          <span>{presenceText(doings)}</span>
        </>
      )}
    </p>
  );
};
