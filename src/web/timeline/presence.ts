import type { Message, Note, SpaceState } from "../../client/index.ts";

/** The activity of one participant right now. */
export type Doing = {
  entityId: string;
  name: string;
  doing:
    | "writing"
    | "using a tool"
    | "thinking"
    | "typing"
    | "trying again soon"
    | `${"waiting for" | "away:"} ${string}`;
};

export const nameOf = (state: Pick<SpaceState, "members">, entityId: string, fallback = "Someone"): string =>
  state.members.find((member) => member.id === entityId)?.name ?? fallback;

/** Whose tokens of an agent's day, or runs of its hour, are used up. Days end at midnight UTC. */
export const spentWords = (
  { entityId, personId, budget, resetsAt }: Extract<Note, { kind: "spent" }>,
  state: Pick<SpaceState, "members" | "you">,
): string => {
  const agent = nameOf(state, entityId, "An agent");
  if (budget === "workspace")
    return `The workspace has used its tokens for today. ${agent} answers again after 00:00 UTC.`;
  if (budget === "storage")
    return `There is no room to store more. ${agent} answers again once an admin has deleted something.`;
  if (personId === undefined) return `${agent} has used its tokens for today. It answers again after 00:00 UTC.`;
  const [person, again] =
    personId === state.you?.id
      ? ["You have", "answers you"]
      : [`${nameOf(state, personId, "Somebody")} has`, "answers them"];
  const [what, when] =
    budget === "runs" ? [`${agent}'s runs in an hour`, resetsAt.slice(11, 16)] : [`${agent}'s tokens today`, "00:00"];
  return `${person} used what one person may use of ${what}. It ${again} again after ${when} UTC.`;
};

/** "A, B, and C" */
export const list = new Intl.ListFormat("en", { type: "conjunction" });

/** The members whom a message asked and who have said nothing since; null for a message that waits for nobody. */
export const awaited = (message: Message, state: Pick<SpaceState, "members" | "messages">): string | null => {
  if (!message.expectsReply) return null;
  const later = state.messages.filter(({ seq, sender }) => seq > message.seq && sender.id !== message.sender.id);
  const spoke = new Set(later.map(({ sender }) => sender.id));
  const asked = message.mentions ?? [];
  if (asked.length === 0) return later.length === 0 ? "an answer" : null;
  const names = state.members.filter(({ id }) => asked.includes(id) && !spoke.has(id)).map(({ name }) => name);
  return names.length === 0 ? null : list.format(names);
};

/** One entry for each active participant. An activity of an agent counts in the order of the lines below. */
export const presence = (state: SpaceState): Doing[] => {
  const found = new Map<string, Doing["doing"]>();
  const add = (entityId: string, doing: Doing["doing"]): unknown => found.has(entityId) || found.set(entityId, doing);
  for (const { entityId, speaks } of state.streams) found.set(entityId, speaks ? "writing" : "using a tool");
  for (const { entityId } of state.active) add(entityId, "thinking");
  for (const { entityId, away } of state.backingOff) {
    add(
      entityId,
      away === undefined ? "trying again soon" : `away: ${away} ${away === 1 ? "event waits" : "events wait"}`,
    );
  }
  for (const message of state.messages) {
    const names = message.sender.type === "agent" ? awaited(message, state) : null;
    if (names !== null) add(message.sender.id, `waiting for ${names}`);
  }
  for (const { entityId } of state.typing) found.set(entityId, "typing");
  return [...found].map(([entityId, doing]) => ({ entityId, name: nameOf(state, entityId), doing }));
};

/** "Nova is writing", "Nova and Atlas are thinking · Sara is typing". */
export const presenceText = (doings: readonly Doing[]): string => {
  const kinds = [...new Set(doings.map(({ doing }) => doing))];
  return kinds
    .map((kind) => {
      const names = doings.filter(({ doing }) => doing === kind).map(({ name }) => name);
      const who = names.length > 3 ? `${names.length} participants` : list.format(names);
      return `${who} ${names.length === 1 ? "is" : "are"} ${kind}`;
    })
    .join(" · ");
};

/**
 * The other spaces that an agent had read before it said this: `read "Board" (3 members, you are not one)`. Those that
 * do not tell their names are named for who is in them: `read "Lab" and 2 spaces that you are not in`.
 */
export const readsInWords = (
  reads: NonNullable<Message["reads"]>,
  ownSpaces: Pick<ReadonlyMap<string, string>, "get">,
): string => {
  const named: string[] = [];
  let foreign = 0;
  let untold = 0;
  for (const { spaceId, name, members } of reads) {
    const own = spaceId === undefined ? undefined : ownSpaces.get(spaceId);
    const known = name ?? own;
    const count = members === undefined ? [] : [`${members} ${members === 1 ? "member" : "members"}`];
    const facts = [...count, ...(own === undefined ? ["you are not one"] : [])].join(", ");
    if (known !== undefined) named.push(`"${known}"${facts && ` (${facts})`}`);
    else if (spaceId === undefined) untold += 1;
    else foreign += 1;
  }
  const others = [
    foreign > 0 ? `${foreign === 1 ? "a space" : `${foreign} spaces`} that you are not in` : [],
    untold > 0 ? "another space" : [],
  ];
  return `read ${list.format([...named, ...others.flat()])}`;
};
