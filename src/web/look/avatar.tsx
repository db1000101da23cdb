import type { CSSProperties } from "react";
import type { EntityType } from "../../client/index.ts";

/** One hue for one participant, the same everywhere and for everyone. */
const hueOf = (id: string): number => {
  let hash = 0x811c9dc5; // FNV-1a
  for (let index = 0; index < id.length; index += 1) hash = Math.imul(hash ^ id.charCodeAt(index), 0x01000193) >>> 0;
  return Math.round(((hash * 0.618_033_988_75) % 1) * 360);
};

const initialsOf = (name: string): string => {
  const words = name.split(/[\s_-]+/).filter(Boolean);
  const letters = words.length > 1 ? [words[0], words.at(-1)] : [words[0]];
  return letters.map((word) => [...(word ?? "?")][0]?.toUpperCase()).join("");
};

type AvatarProps = { id: string; name: string; type: EntityType; size?: number; active?: boolean };

export const Avatar = ({ id, name, type, size = 36, active = false }: AvatarProps) => {
  const style: CSSProperties & Record<`--${string}`, string | number> = {
    "--hue": hueOf(id),
    "--avatar-size": `${size}px`,
  };
  return (
    <span className="avatar" data-type={type} data-active={active} style={style} aria-hidden="true">
      {initialsOf(name)}
    </span>
  );
};

export const TypeBadge = ({ type }: { type: EntityType }) =>
  type === "human" ? null : <span className={`badge tone-${type === "service" ? "none" : "agent"}`}>{type}</span>;
