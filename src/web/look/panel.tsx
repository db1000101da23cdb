import type { ReactNode } from "react";
import { IconButton } from "./button.tsx";

type PanelProps = { name: string; heading?: ReactNode; className: string; onClose: () => void; children: ReactNode };

const takeFocus = (element: HTMLElement | null): void => element?.focus();

/** What stands beside the timeline, or over it on a narrow screen. It takes the focus; Escape closes it. */
export const Panel = ({ name, heading = <h2>{name}</h2>, className, onClose, children }: PanelProps) => (
  <aside
    className={`${className} panel`}
    aria-label={name}
    tabIndex={-1}
    ref={takeFocus}
    onKeyDown={(event) => event.key === "Escape" && onClose()}
  >
    <div className="panel-head">
      {heading}
      <IconButton icon="close" label={`Close ${name.toLowerCase()}`} onClick={onClose} />
    </div>
    {children}
  </aside>
);
