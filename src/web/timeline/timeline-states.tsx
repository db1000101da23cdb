import type { SpaceState } from "../../client/index.ts";
import { Avatar } from "../look/avatar.tsx";
import { Button } from "../look/button.tsx";
import { day } from "../look/time.tsx";
import { list } from "./presence.ts";

export const TimelineLoading = () => (
  <div className="timeline centered" role="status">
    <span className="visually-hidden">Loading messages</span>
    <div className="timeline-skeleton" aria-hidden="true">
      {[72, 48, 86, 34, 60].map((width) => (
        <div key={width}>
          <span />
          <div>
            <i style={{ width: "7rem" }} />
            <i style={{ width: `${width}%` }} />
          </div>
        </div>
      ))}
    </div>
  </div>
);

export const TimelineFailed = ({ message, onRetry }: { message: string; onRetry: () => void }) => (
  <div className="timeline centered" role="alert">
    <h2 className="title">The messages could not be loaded</h2>
    <p className="soft">{message}</p>
    <Button onClick={onRetry}>Try again</Button>
  </div>
);

export const TimelineEmpty = ({ members, you, space }: Pick<SpaceState, "members" | "you" | "space">) => {
  const others = members.filter((member) => member.id !== you?.id);
  const agent = others.find((member) => member.type === "agent");
  // Here agents answer only messages that address them, and no router decides about the others.
  const addressed = space?.wakePolicy === "addressed" && space.router === undefined && others.length > 1;
  return (
    <div className="timeline centered">
      <div className="row">
        {others.slice(0, 5).map((member) => (
          <Avatar key={member.id} {...member} size={48} />
        ))}
      </div>
      <h2 className="title">Nothing said yet</h2>
      <p className="soft">
        {others.length === 0
          ? "You are alone here. What you write stays for whoever joins."
          : `${list.format(others.slice(0, 5).map((member) => member.name))} will see what you write.`}
        {agent && ` Ask ${addressed ? "@" : ""}${agent.name} something, and watch the answer being written.`}
      </p>
    </div>
  );
};

/** The line before the oldest loaded message. */
export const TimelineTop = ({ history, space }: Pick<SpaceState, "history" | "space">) => {
  if (history.status !== "ready") return null;
  const beginning = space ? `The beginning of ${space.name}, ${day(space.createdAt).toLocaleLowerCase()}` : "";
  const older = history.loadingOlder ? "Loading older messages …" : "";
  return (
    <p className="timeline-top small soft" role={history.hasOlder ? "status" : undefined}>
      {history.hasOlder ? older : beginning}
    </p>
  );
};
