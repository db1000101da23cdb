import { messageOf, type SpaceState } from "../../client/index.ts";
import { Avatar } from "../look/avatar.tsx";
import { IconButton } from "../look/button.tsx";
import { Icon } from "../look/icon.tsx";
import { useSettings } from "../notifications/settings.ts";
import { confidentialWords } from "../spaces/space-items.ts";
import { presence } from "../timeline/presence.ts";
import { useToast } from "../toasts/toasts.tsx";

type SpaceHeaderProps = {
  name: string;
  state: SpaceState;
  /** The panel that is open beside the timeline. */
  panel: Panel | null;
  onPanel: (panel: Panel) => void;
  onMenu: () => void;
};

/** Whether what is said in this space alerts the person. */
const MuteButton = ({ spaceId }: { spaceId: string }) => {
  const { settings, change } = useSettings();
  const toast = useToast();
  if (!settings) return null;
  const isMuted = settings.spaces[spaceId]?.muted === true;
  const toggle = (): void => {
    const changes = { spaces: { [spaceId]: { muted: isMuted ? null : true } } };
    change(changes).catch((error: unknown) => toast(messageOf(error)));
  };
  const title = isMuted ? "This space is muted: only what needs you alerts you" : "Mute this space";
  return (
    <IconButton
      icon={isMuted ? "muted" : "bell"}
      label="Mute this space"
      title={title}
      aria-pressed={isMuted}
      onClick={toggle}
    />
  );
};

export type Panel = "members" | "blocks";

const shownFaces = 5;

export const SpaceHeader = ({ name, state, panel, onPanel, onMenu }: SpaceHeaderProps) => {
  const busy = new Set(presence(state).map(({ entityId }) => entityId));
  const { members } = state;
  const toggle = (name: Panel) => ({
    type: "button" as const,
    className: "panel-toggle icon-button medium",
    "aria-expanded": panel === name,
    onClick: () => onPanel(name),
  });
  return (
    <header className="space-header panel-head">
      <IconButton icon="menu" className="only-narrow" label="Show spaces" onClick={onMenu} />
      <h1 className="ellipsis">{name}</h1>
      {state.space?.confidential && (
        <button {...toggle("members")} className="panel-toggle icon-button confidential" title={confidentialWords}>
          <Icon name="lock" size={16} />
          <span className="small">Confidential</span>
        </button>
      )}
      <div className="space-header-faces" aria-hidden="true">
        {members.slice(0, shownFaces).map((member) => (
          <Avatar key={member.id} {...member} size={26} active={member.type === "agent" && busy.has(member.id)} />
        ))}
      </div>
      {state.space && <MuteButton spaceId={state.space.id} />}
      <button {...toggle("blocks")} aria-label="Blocks" title="What the agents here keep with you">
        <Icon name="notebook" />
      </button>
      <button {...toggle("members")} aria-label={`Members, ${members.length}`}>
        <Icon name="people" />
        <span>{members.length || ""}</span>
      </button>
    </header>
  );
};
