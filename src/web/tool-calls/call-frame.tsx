import type { ReactNode } from "react";
import { Icon } from "../look/icon.tsx";
import type { Chip } from "./standing.ts";
import { toolTitle } from "./titles.ts";
import "./call-frame.css";

/** The one shape of every call: its name, where it stands, and what there is to see of it. */
export const CallFrame = ({ name, chip, children }: { name: string; chip: Chip; children?: ReactNode }) => {
  const { title, server } = toolTitle(name);
  return (
    <section className="call" data-tone={chip.tone} tabIndex={-1} aria-label={`${title}, ${chip.words}`}>
      <header className="call-head">
        <Icon name="tool" size={16} />
        <h3 className="call-title" title={name}>
          {title}
          {server && <span className="call-server"> {server}</span>}
        </h3>
        <span className="call-chip">{chip.words}</span>
      </header>
      <div className="call-body">{children}</div>
    </section>
  );
};
