import type { ReactNode } from "react";

/** A button that stands in a text and looks like a link. */
export const LinkButton = ({ onClick, children }: { onClick: () => void; children: ReactNode }) => (
  <button type="button" className="link-button" onClick={onClick}>
    {children}
  </button>
);
