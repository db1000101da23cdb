import type { SpaceState } from "../../client/index.ts";
import { Avatar } from "../look/avatar.tsx";
import { day } from "../look/time.ts";

export const TimelineLoading = () => (
  <div className="timeline centered" role="status">
    <span className="visually-hidden">Loading messages</span>
    <div className="timeline-skeleton" aria-hidden="true">
      {[72, 48, 86, 34, 60].map((width) => (
        <div key={width} className="timeline-skeleton-row">
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
    <p className="timeline-state-text soft">{message}</p>
    <button type="button" className="button" onClick={onRetry}>
      Try again
    </button>
  </div>
);

const list = new Intl.ListFormat("en", { type: "conjunction" });

export const TimelineEmpty = ({ members, you, space }: Pick<SpaceState, "members" | "you" | "space">) => {
  const others = members.filter((member) => member.id !== you?.id);
  const agent = others.find((member) => member.type === "agent");
  // Here agents answer only messages that address them, and no router decides about the others.
  const addressed = space?.wakePolicy === "addressed" && space.router === undefined && others.length > 1;
  return (
    <div className="timeline centered">
      <div className="timeline-state-faces">
        {others.slice(0, 5).map((member) => (
          <Avatar key={member.id} id={member.id} name={member.name} type={member.type} size={48} />
        ))}
      </div>
      <h2 className="title">Nothing said yet</h2>
      <p className="timeline-state-text soft">
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
