import { Avatar } from "../look/avatar.tsx";
import type { Reader } from "./readers.ts";
import "./reader-faces.css";

const shown = 3;
const list = new Intl.ListFormat("en", { type: "conjunction" });

/** Who has read up to here, as small faces at the message's end. */
export const ReaderFaces = ({ readers }: { readers: readonly Reader[] }) => {
  if (readers.length === 0) return null;
  const words = `Read by ${list.format(readers.map((reader) => reader.words))}`;
  return (
    <span className="readers" role="img" aria-label={words} title={words}>
      {readers.slice(0, shown).map(({ id, name, type }) => (
        <Avatar key={id} id={id} name={name} type={type} size={16} />
      ))}
    </span>
  );
};
