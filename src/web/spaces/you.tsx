import { useEffect, useState } from "react";
import type { Entity } from "../../client/index.ts";
import { Avatar } from "../look/avatar.tsx";
import { useSignedIn } from "../session/signed-in.ts";
import "./you.css";

/** Who is signed in here. */
export const You = () => {
  const { client, entityId } = useSignedIn();
  const [you, setYou] = useState<Entity | null>(null);
  useEffect(() => {
    let isWanted = true;
    client.getEntity(entityId).then(
      (entity) => isWanted && setYou(entity),
      () => undefined, // the list of spaces says what is wrong; a name alone is no reason to speak up
    );
    return () => {
      isWanted = false;
    };
  }, [client, entityId]);
  return (
    <span className="you">
      {you && (
        <>
          <Avatar id={you.id} name={you.name} type={you.type} size={28} />
          <span className="you-name">{you.name}</span>
        </>
      )}
    </span>
  );
};
