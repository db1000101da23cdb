import type { Entity } from "../protocol/entity.ts";
import type { Follows } from "../protocol/line.ts";
import type { Self } from "../protocol/person-rpc.ts";
import { ColloquyError, unwrap } from "../shared/errors.ts";
import { log } from "../shared/log.ts";
import { withTimeout } from "../shared/timeouts.ts";
import { askTimeoutMs, maxAsksAtOnce, renewMs } from "./bounds.ts";
import { followsNow } from "./hearing.ts";
import type { PersonServices } from "./services.ts";

/** Jobs: a space is asked to tell the person, and all are, as long as there are devices. */
const askKind = "ask";
const renewKind = "renew";
const askAgainMs = 2000;

/** Has a space tell the person from now on, and takes in how it stands. Throws where it could not be asked. */
const ask = async (services: PersonServices, self: Self, spaceId: string, follows: Follows): Promise<void> => {
  const { env, spaces, change } = services;
  const asked = env.SPACE.getByName(spaceId).attend(self.workspaceId, self.entityId, follows);
  const standing = await withTimeout(askTimeoutMs, asked);
  // They have left meanwhile, or the space is gone, or rests.
  const isOver = !standing.ok && ["not_found", "not_a_member", "suspended"].includes(standing.problem.code);
  if (isOver) return;
  const { readSeq: _, ...told } = unwrap(standing);
  if (follows === "all") change({ spaceId }, () => spaces.store(spaceId, told));
};

const spacesOf = async ({ env }: PersonServices, self: Self): Promise<{ entity: Entity; spaceIds: string[] }> => {
  const asked = env.WORKSPACE.getByName(self.workspaceId).lineOf(self.entityId);
  const told = unwrap(await withTimeout(askTimeoutMs, asked));
  if (told.entity.type === "human") return told;
  throw new ColloquyError("forbidden", "Only people have a line: a service follows a space's own stream");
};

/**
 * Has each space of the person tell them all from now on. Those that do so already are not asked. Those that cannot be reached
 * are asked again by a job.
 */
export const look = async (services: PersonServices, self: Self): Promise<Entity> => {
  const { spaces, change, jobs, clock } = services;
  const { entity, spaceIds } = await spacesOf(services, self);
  const own = new Set(spaceIds);
  for (const id of spaces.ids()) if (!own.has(id)) change({ spaceId: id }, () => spaces.remove(id));
  const unknown = spaceIds.filter((id) => !spaces.find(id));
  const askNext = async (): Promise<void> => {
    for (let id = unknown.pop(); id !== undefined; id = unknown.pop()) {
      try {
        await ask(services, self, id, "all");
      } catch (error) {
        jobs.set({ kind: askKind, key: id, dueAt: clock.now() + askAgainMs });
        log.warn("line.unasked", { spaceId: id, reason: error instanceof Error ? error.message : String(error) });
      }
    }
  };
  await Promise.all(Array.from({ length: maxAsksAtOnce }, askNext));
  return entity;
};

/** Throws where the person is no person of the workspace, or may not be told now. */
export const requirePerson = async (services: PersonServices, self: Self): Promise<void> =>
  void (await spacesOf(services, self));

/** Has a space that the person has joined asked to tell them. */
export const joined = ({ jobs }: Pick<PersonServices, "jobs">, spaceId: string): void =>
  jobs.set({ kind: askKind, key: spaceId });

/** Has each space tell what concerns the person, and all new ones, as long as there are devices. */
export const renew = ({ jobs }: Pick<PersonServices, "jobs">): void => jobs.set({ kind: renewKind, key: renewKind });

export const handleAsking = (services: PersonServices): void => {
  const { jobs, people, spaces, clock } = services;
  jobs.handle(askKind, {
    atOnce: maxAsksAtOnce,
    async run({ key }) {
      const [self, follows] = [people.self(), followsNow(services)];
      if (!self || !follows) return undefined;
      await ask(services, self, key, follows);
      // A line that was opened meanwhile asked for more, maybe before this did.
      return followsNow(services) === follows ? undefined : clock.now();
    },
  });
  jobs.handle(renewKind, {
    atOnce: 1,
    async run() {
      const self = people.self();
      if (!self || people.find()?.rests || services.devices.all().length === 0) return undefined;
      const { spaceIds } = await spacesOf(services, self);
      // A space that is known here already tells everything.
      for (const id of spaceIds) if (!spaces.find(id)) joined(services, id);
      return clock.now() + renewMs;
    },
  });
};
