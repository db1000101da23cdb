import { setTimeout as wait } from "node:timers/promises";
import type { SpaceListItem } from "../../src/protocol/space.ts";
import type { House, Person as Signed } from "../e2e/support/house.ts";
import type { FollowerEvidence, SpaceEvidence } from "./evidence.ts";
import { judgeFollowers } from "./followers-verdict.ts";
import { type Line, openLine } from "./line.ts";
import type { Random } from "./random.ts";
import type { Receiver } from "./receivers.ts";
import { insist } from "./taken-away.ts";

/**
 * Those who follow the spaces of a load from outside: a line for each person, and endpoints. Every second person reads now
 * and then, and all in the end; the others read nothing. The first two lines are subscribed to their space too.
 */
export type Followers = {
  /** Some who read do so now. */
  read(random: Random): Promise<void>;
  /** Everybody who reads does so; then all comes to rest. What was found when it did, or when patience ended. */
  settle(spaces: SpaceEvidence[]): Promise<FollowerEvidence>;
  close(): Promise<void>;
};

type Followed = { signed: Signed; space: { id: string; name: string } };
type Watched = Followed & { line: Line; isReader: boolean; isSubscribed: boolean };

const subscriptions = 2;
const lookEveryMs = 500;
/** A delivery that fails is tried again after 5 s. */
const patienceMs = 60_000;

export const openFollowers = (house: House, receivers: Receiver[], people: Followed[]): Followers => {
  const watched = people.map(({ signed, space }, index): Watched => {
    const isSubscribed = index < subscriptions;
    const line = openLine(house.url, signed, isSubscribed ? space.id : undefined);
    return { line, signed, space, isReader: index % 2 === 1, isSubscribed };
  });
  const readers = watched.filter(({ isReader }) => isReader);
  const readUpTo = ({ signed, space }: Watched, messageId: string): Promise<unknown> =>
    insist(() => signed.api.post(`/v1/spaces/${space.id}/read`, { messageId }).catch(unlessEmpty));

  const evidence = async (): Promise<FollowerEvidence> => ({
    lines: await Promise.all(
      watched.map(async ({ line, signed, space, isReader, isSubscribed }) => {
        const { items } = await signed.api.get<{ items: SpaceListItem[] }>("/v1/spaces");
        const { unread = 0, mentions = 0 } = line.summaries.get(space.id) ?? {};
        return {
          ...{ name: signed.name, personId: signed.id, space: space.name, isReader, isOpen: line.isOpen() },
          ...{ told: [...line.told], shown: [...line.shown], left: [...line.unread], needs: [...line.needsYou.keys()] },
          ...{ unread, mentions, listed: items.find(({ id }) => id === space.id)?.unreadCount ?? 0 },
          ...(isSubscribed && { frames: { ...line.frames, saw: [...line.frames.saw] } }),
          kept: await keptFor(house, signed),
        };
      }),
    ),
    receivers: await Promise.all(
      receivers.map(async ({ name, tries, unsigned, isDisabled }) => {
        return { name, tries: [...tries], unsigned: unsigned(), isDisabled: await isDisabled() };
      }),
    ),
  });

  return {
    read: async (random) => {
      const reader = random.pick(readers);
      const newest = reader.line.summaries.get(reader.space.id)?.preview?.messageId;
      if (newest !== undefined) await readUpTo(reader, newest);
    },
    settle: async (spaces) => {
      await Promise.all(
        readers.map(async (reader) => {
          const last = spaces.find(({ name }) => name === reader.space.name)?.log.at(-1);
          if (last) await readUpTo(reader, last.id);
        }),
      );
      const deadline = performance.now() + patienceMs;
      for (;;) {
        const found = await evidence();
        const { lost, doubled, stuck } = judgeFollowers(spaces, found);
        if (lost.length + doubled.length + stuck.length === 0 || performance.now() > deadline) return found;
        await wait(lookEveryMs);
      }
    },
    close: async () => {
      for (const { line } of watched) line.close();
      await Promise.all(receivers.map((receiver) => receiver.close()));
    },
  };
};

/** The notifications that somebody is told who comes back and knows of none. */
const keptFor = async (house: House, signed: Signed): Promise<string[]> => {
  const line = openLine(house.url, signed);
  while (!line.isOpen()) await wait(10);
  // They come with the welcome, in one turn.
  await wait(50);
  line.close();
  return [...line.told];
};

/** The answer of a read mark has no body. */
const unlessEmpty = (error: unknown): void => {
  if (!(error instanceof SyntaxError)) throw error;
};
