/** A notification as the system shows it. The page and its service worker show the same, so that the one replaces the other. */
export type Shown = {
  id: string;
  kind: string;
  spaceId: string;
  messageId: string;
  title: string;
  body: string;
  /** A push has none. */
  cursor?: number;
};

const deeds: Record<string, string> = {
  mention: "mentioned you",
  reply: "replied to you",
  needs_you: "needs you",
  run_failed: "could not answer",
};

/** `count`: of how many more of its space it tells. */
export const asShown = ({ id, kind, spaceId, messageId, title, body, cursor }: Shown, count = 0) => {
  const deed = deeds[kind];
  const more = count > 0 ? `${count} more in this space` : "";
  return {
    title: deed === undefined ? title : `${title} ${deed}`,
    options: {
      tag: id,
      body: [body, more].filter((line) => line !== "").join("\n"),
      icon: "/icon.svg",
      data: { spaceId, messageId, cursor },
    },
  };
};

/** Where a notification leads: the space, at the message. */
export const addressOfMessage = (spaceId: string, messageId: string): string => `#${spaceId}/${messageId}`;
