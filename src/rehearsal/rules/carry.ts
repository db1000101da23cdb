import type { SpaceView } from "../prompt-view.ts";
import { answer, type Doing, enter, rule, sayIn, type Turn } from "../turn.ts";
import { longestNameFirst } from "../words.ts";

/** The receiver of a message: a space, or a person in one. */
type Target = { space: SpaceView; person?: string };

const startsWithName = (text: string, name: string): string | undefined => {
  const bare = text.replace(/^\s*(?:the\s+)?/i, "");
  for (const form of [`"${name}"`, `“${name}”`, `@${name}`, name]) {
    if (!bare.toLowerCase().startsWith(form.toLowerCase())) continue;
    const rest = bare.slice(form.length);
    if (/^[\p{L}\p{N}_]/u.test(rest)) continue;
    return rest
      .replace(/^\s+(?:space|room|channel)\b/i, "")
      .replace(/^[\s,:]+/, "")
      .replace(/^that\s+/i, "");
  }
  return undefined;
};

const targetIn = (turn: Turn, text: string): { target: Target; words: string } | undefined => {
  for (const space of turn.view.spaces.toSorted(longestNameFirst)) {
    const words = startsWithName(text, space.name);
    if (words) return { target: { space }, words };
  }
  const isElsewhere = ({ id }: SpaceView): number => Number(id !== turn.event.spaceId);
  for (const space of turn.view.spaces.toSorted((one, other) => isElsewhere(one) - isElsewhere(other))) {
    for (const { name } of space.members.toSorted(longestNameFirst)) {
      const words = name === turn.view.name ? undefined : startsWithName(text, name);
      if (words) return { target: { space, person: name }, words };
    }
  }
  return undefined;
};

function* carry(turn: Turn, target: Target, words: string): Doing {
  const { space, person } = target;
  const message = `${person === undefined ? "" : `${person}, `}${turn.event.senderName} asks me to tell you: ${words}`;
  const told = person === undefined ? `"${space.name}"` : `${person} in "${space.name}"`;
  if (!(yield* sayIn(turn.cycle, space.id, message))) {
    return yield* answer(turn, `I could not tell ${told}.`, `could not tell ${told}`);
  }
  if (space.id === turn.event.spaceId) return `told ${told}`;
  if (!(yield* enter(turn.cycle, turn.event.spaceId))) return `told ${told}, but could not come back`;
  return yield* answer(turn, `${turn.tone.done} I told ${told}.`, `told ${told}`);
}

export const carryMessage = rule(
  /^\s*(tell|inform|notify|let)\s+(?!\s|(?:me|us|everyone|everybody|all|an?)\b)(.+)$/is,
  (turn, verb = "", text = "") => {
    const found = targetIn(turn, text.replace(/^(.{1,80}?) know\b/is, "$1"));
    if (found) return carry(turn, found.target, found.words);
    if (!/^tell$/i.test(verb)) return undefined;
    const names = turn.view.spaces.map(({ name }) => `"${name}"`).join(", ");
    return [
      `I know no space or person of that name, or no message followed. My spaces are ${names || "none"}.`,
      "found nobody to tell",
    ];
  },
);
