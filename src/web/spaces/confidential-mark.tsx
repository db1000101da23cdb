import { Icon } from "../look/icon.tsx";
import { confidentialWords } from "./space-items.ts";

/** Stands before the name of a confidential space, and says what that means. */
export const ConfidentialMark = () => (
  <span className="confidential-mark" title={confidentialWords}>
    <Icon name="lock" size={15} />
    <span className="visually-hidden">Confidential: </span>
  </span>
);
