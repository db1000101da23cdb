import { Icon } from "../look/icon.tsx";
import "./jump-button.css";

type JumpButtonProps = { isShown: boolean; count: number; onJump: () => void };

/** Back to the newest message, with how many came meanwhile. */
export const JumpButton = ({ isShown, count, onJump }: JumpButtonProps) => {
  if (!isShown) return null;
  const words = count === 0 ? "Jump to the newest message" : `${count} new ${count === 1 ? "message" : "messages"}`;
  return (
    <button type="button" className="jump" data-count={count} onClick={onJump} aria-label={words}>
      {count > 0 && <span>{words}</span>}
      <Icon name="down" size={18} />
    </button>
  );
};
