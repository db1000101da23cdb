import { useEffect, useState } from "react";
import type { ConnectionState, SpaceState } from "../../client/index.ts";
import { useSignedIn } from "../session/session.ts";

/** A connection that is back within this time shows no banner. */
const patienceMs = 700;

const suspended = "This workspace is suspended. You can read it. What you write is sent once it is resumed.";

const wordsFor = (connection: ConnectionState, isSuspended: boolean): string | null => {
  switch (connection.status) {
    case "offline":
      return "You are offline. What you write is sent when the connection is back.";
    case "reconnecting":
      return isSuspended ? suspended : "The connection is lost. Reconnecting …";
    case "closed":
      if (connection.reason === "removed") return "You are no longer in this space.";
      return connection.reason === "deleted" ? "This space was deleted." : null;
    default:
      return null;
  }
};

export const ConnectionBanner = ({ state: { connection, isSuspended } }: { state: SpaceState }) => {
  // While another person is signed in, the page says so itself.
  const words = useSignedIn().isTheirs ? wordsFor(connection, isSuspended) : null;
  const [shown, setShown] = useState<string | null>(null);
  useEffect(() => {
    const timer = setTimeout(() => setShown(words), words === null ? 0 : patienceMs);
    return () => clearTimeout(timer);
  }, [words]);
  return (
    <div role="status">
      {shown !== null && words !== null && (
        <p className={`connection small medium tone-${connection.status === "closed" ? "danger" : "warning"}`}>
          {words}
        </p>
      )}
    </div>
  );
};
